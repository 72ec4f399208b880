// Processes over MPI. Waits give the core away after a moment: another process may need it, and process 0 may be paused for hours.
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <thread>

#include "core/comm/communicator.h"

namespace comera {
namespace {

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator() {
    int level = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level);  // the trainer's thread calls, not the one that begins and ends
    CHECK(level >= MPI_THREAD_SERIALIZED, "this MPI knows one thread");
    MPI_Comm_rank(MPI_COMM_WORLD, &process_);
    MPI_Comm_size(MPI_COMM_WORLD, &processes_);
    MPI_Comm here = MPI_COMM_NULL;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, process_, MPI_INFO_NULL, &here);
    MPI_Comm_rank(here, &process_here_);
    MPI_Comm_size(here, &processes_here_);
    MPI_Comm_free(&here);
  }
  ~MpiCommunicator() override { MPI_Finalize(); }

  int process() const override { return process_; }
  int processes() const override { return processes_; }
  int process_here() const override { return process_here_; }
  int processes_here() const override { return processes_here_; }

  [[noreturn]] void abort(const std::string& why) override {
    std::fprintf(stderr, "error: process %d: %s\n", process_, why.c_str());
    MPI_Abort(MPI_COMM_WORLD, 1);
    std::terminate();
  }

 private:
  void do_trade(const void* mine, void* all, int64_t bytes) override {
    MPI_Request request;
    MPI_Ialltoall(mine, count(bytes), MPI_BYTE, all, count(bytes), MPI_BYTE, MPI_COMM_WORLD, &request);
    wait(request);
  }
  void do_gather(const void* mine, void* all, int64_t bytes) override {
    MPI_Request request;
    MPI_Iallgather(mine, count(bytes), MPI_BYTE, all, count(bytes), MPI_BYTE, MPI_COMM_WORLD, &request);
    wait(request);
  }

  void do_spread(void* data, int64_t bytes) override {
    MPI_Request request;
    MPI_Ibcast(data, count(bytes), MPI_BYTE, 0, MPI_COMM_WORLD, &request);
    wait(request);
  }

  // Most texts are short and need one message.
  struct Begin {
    int length = 0;
    char text[252] = {};
  };

  std::vector<std::string> trade_texts(const std::string& mine) override {
    Begin own{count(static_cast<int64_t>(mine.size())), {}};
    std::copy_n(mine.begin(), std::min(mine.size(), sizeof own.text), own.text);
    std::vector<Begin> begins(static_cast<size_t>(processes_));
    do_gather(&own, begins.data(), sizeof own);
    std::vector<std::string> all;
    std::vector<int> lengths, places;
    int total = 0;
    for (const Begin& begin : begins) {
      const bool is_long = static_cast<size_t>(begin.length) > sizeof begin.text;
      all.emplace_back(begin.text, is_long ? 0 : static_cast<size_t>(begin.length));
      lengths.push_back(is_long ? begin.length : 0);
      places.push_back(total);
      total += lengths.back();
    }
    if (total == 0) return all;
    std::string joined(static_cast<size_t>(total), ' ');
    const int length = lengths[static_cast<size_t>(process_)];
    MPI_Request request;
    MPI_Iallgatherv(mine.data(), length, MPI_BYTE, joined.data(), lengths.data(), places.data(), MPI_BYTE, MPI_COMM_WORLD, &request);
    wait(request);
    for (size_t p = 0; p < all.size(); ++p)
      if (lengths[p] > 0) all[p] = joined.substr(static_cast<size_t>(places[p]), static_cast<size_t>(lengths[p]));
    return all;
  }

  static int count(int64_t bytes) {
    CHECK(bytes >= 0 && bytes <= std::numeric_limits<int>::max(), bytes << " bytes in one message");
    return static_cast<int>(bytes);
  }

  static void wait(MPI_Request& request) {
    using Clock = std::chrono::steady_clock;
    const auto begin = Clock::now();
    for (int done = 0; MPI_Test(&request, &done, MPI_STATUS_IGNORE), !done;) {
      const auto waited = Clock::now() - begin;
      if (waited > std::chrono::milliseconds(20))
        std::this_thread::sleep_for(std::chrono::microseconds(500));
      else if (waited > std::chrono::microseconds(50))
        std::this_thread::yield();
    }
  }

  int process_ = 0, processes_ = 1, process_here_ = 0, processes_here_ = 1;
};

}  // namespace
}  // namespace comera

extern "C" {  // core/comm/mpi.cpp
const char* comera_mpi_library() {
  static char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  for (char* at = text; *at; ++at)
    if (*at == ',' || *at == '\n') *at = 0;  // then come who built it and when
  return text;
}
comera::Communicator* comera_mpi_join() { return new comera::MpiCommunicator; }
}
