// Threads of this program in the place of the processes of a run.
#pragma once
#include <condition_variable>
#include <cstring>
#include <exception>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/comm/communicator.h"

namespace comera {

// Where they meet.
class ProcessThreads {
 public:
  explicit ProcessThreads(int count) : given_(static_cast<size_t>(count)) {}

  int count() const { return static_cast<int>(given_.size()); }

  struct Given {
    const void* data = nullptr;
    int64_t bytes = 0;
  };
  // Every process gives something, sees what all gave, and gets on when all have seen it.
  void meet(int process, Given mine, const std::function<void(const std::vector<Given>&)>& see) {
    given_[static_cast<size_t>(process)] = mine;
    wait();
    see(given_);
    wait();
  }
  void end() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }

 private:
  void wait() {
    std::unique_lock lock(mutex_);
    const int64_t round = round_;
    if (++here_ == count()) {
      here_ = 0;
      ++round_;
      changed_.notify_all();
    }
    changed_.wait(lock, [&] { return round_ != round || ended_; });
    if (round_ == round) throw std::runtime_error("the processes were ended");
  }

  std::vector<Given> given_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int here_ = 0;
  int64_t round_ = 0;
  bool ended_ = false;
};

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(ProcessThreads& all, int process) : all_(all), process_(process) {}
  int process() const override { return process_; }
  int processes() const override { return all_.count(); }
  int process_here() const override { return process_; }
  int processes_here() const override { return all_.count(); }
  ProcessThreads& threads() { return all_; }

  [[noreturn]] void abort(const std::string& why) override {
    all_.end();
    throw std::runtime_error(why);
  }

 private:
  void do_trade(const void* mine, void* all, int64_t bytes) override {
    all_.meet(process_, {mine, bytes}, [&](const auto& given) {
      for (size_t p = 0; p < given.size(); ++p) {
        CHECK(given[p].bytes == bytes, "messages of " << given[p].bytes << " and " << bytes << " bytes");
        copy(all, p, static_cast<const char*>(given[p].data) + process_ * bytes, bytes);
      }
    });
  }
  void do_gather(const void* mine, void* all, int64_t bytes) override {
    all_.meet(process_, {mine, bytes}, [&](const auto& given) {
      for (size_t p = 0; p < given.size(); ++p) {
        CHECK(given[p].bytes == bytes, "messages of " << given[p].bytes << " and " << bytes << " bytes");
        copy(all, p, given[p].data, bytes);
      }
    });
  }
  void do_spread(void* data, int64_t bytes) override {
    all_.meet(process_, {data, bytes}, [&](const auto& given) {
      CHECK(given[0].bytes == bytes, "messages of " << given[0].bytes << " and " << bytes << " bytes");
      if (process_ > 0) copy(data, 0, given[0].data, bytes);
    });
  }
  static void copy(void* to, size_t piece, const void* from, int64_t bytes) {
    std::memcpy(static_cast<char*>(to) + static_cast<int64_t>(piece) * bytes, from, static_cast<size_t>(bytes));
  }
  std::vector<std::string> trade_texts(const std::string& mine) override {
    std::vector<std::string> texts;
    all_.meet(process_, {mine.data(), static_cast<int64_t>(mine.size())}, [&](const auto& given) {
      for (const auto& one : given) texts.emplace_back(static_cast<const char*>(one.data), static_cast<size_t>(one.bytes));
    });
    return texts;
  }

  ProcessThreads& all_;
  const int process_;
};

// Runs `body` as so many processes; returns what ended each of them, "" where it returned. An Error goes to the others as in the program.
inline std::vector<std::string> run_processes(int count, const std::function<void(Communicator&)>& body) {
  ProcessThreads all(count);
  std::vector<std::string> ends(static_cast<size_t>(count));
  std::vector<std::thread> threads;
  for (int process = 0; process < count; ++process)
    threads.emplace_back([&, process] {
      ThreadCommunicator communicator(all, process);
      try {
        body(communicator);
      } catch (const Error& error) {
        ends[static_cast<size_t>(process)] = error.what();
        communicator.fail(error);
      } catch (const std::exception& error) {
        ends[static_cast<size_t>(process)] = error.what();
        all.end();
      }
    });
  for (std::thread& thread : threads) thread.join();
  return ends;
}

}  // namespace comera
