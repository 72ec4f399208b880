// NCCL behind DeviceLink. Names, values and rules of its functions: NVIDIA, "NCCL API" and "Using NCCL with CUDA Graphs",
// https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/
#include "gpu/nccl.h"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <exception>

#include "core/base/error.h"
#include "gpu/check.h"
#include "gpu/pinned.h"

namespace comera::gpu {
namespace {

// ---- the library ---------------------------------------------------------------------------------------------------

using Comm = struct ncclComm*;
struct UniqueId {  // ncclUniqueId, which is passed by value
  char bytes[128];
};
constexpr int kSuccess = 0;       // ncclSuccess
constexpr int kBytes = 0;         // ncclInt8
constexpr int kOldest = 2'09'00;  // 2.9, the first whose messages can be captured; ncclGetVersion: 10000 major + 100 minor + patch
constexpr int kTooNew = 3'00'00;

struct Functions {
  int (*version)(int*);
  const char* (*error_text)(int);
  int (*unique_id)(UniqueId*);
  int (*join)(Comm*, int processes, UniqueId, int process);
  int (*destroy)(Comm);
  int (*abort)(Comm);
  int (*begin_group)();
  int (*end_group)();
  int (*send)(const void*, size_t count, int type, int to, Comm, cudaStream_t);
  int (*receive)(void*, size_t count, int type, int from, Comm, cudaStream_t);
};

[[noreturn]] void not_usable(const std::string& why) {
  throw Error(ErrorCode::device, "NCCL cannot be used", why,
              "install NVIDIA's NCCL 2.9 or later for CUDA 13, or leave it out by COMERA_NCCL=off");
}

template <class F>
void find_in(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
  if (!function) not_usable("libnccl.so.2 has no function " + std::string(name));
}

void check(const Functions& nccl, int result, const std::string& what) {
  if (result == kSuccess) return;
  throw Error(ErrorCode::device, "NCCL failed " + what + ": " + nccl.error_text(result), "its result was " + std::to_string(result),
              "start it with NCCL_DEBUG=WARN to see more, or with COMERA_NCCL=off to send through the hosts");
}

std::string version_text(int version) {
  const int major = version < 10000 ? 1000 : 10000;  // before 2.9: 1000 major + 100 minor + patch
  return std::to_string(version / major) + "." + std::to_string(version % major / 100) + "." + std::to_string(version % 100);
}

int version_of(const Functions& nccl) {
  int version = 0;
  check(nccl, nccl.version(&version), "at its version");
  return version;
}

// Throws Error(device) where it cannot be used. Never closed: it has threads of its own.
Functions open_nccl() {
  const char* wanted = std::getenv("COMERA_NCCL");
  if (wanted && std::strcmp(wanted, "off") == 0) not_usable("COMERA_NCCL=off");
  void* library = nullptr;
  for (const char* name : {COMERA_NCCL_FILE, "libnccl.so.2"})  // where it was at build time, else on the system's search path
    if (!library && *name) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* why = dlerror();
    not_usable(why ? why : "there is no libnccl.so.2");
  }
  Functions nccl{};
  find_in(library, "ncclGetVersion", nccl.version);
  find_in(library, "ncclGetErrorString", nccl.error_text);
  find_in(library, "ncclGetUniqueId", nccl.unique_id);
  find_in(library, "ncclCommInitRank", nccl.join);
  find_in(library, "ncclCommDestroy", nccl.destroy);
  find_in(library, "ncclCommAbort", nccl.abort);
  find_in(library, "ncclGroupStart", nccl.begin_group);
  find_in(library, "ncclGroupEnd", nccl.end_group);
  find_in(library, "ncclSend", nccl.send);
  find_in(library, "ncclRecv", nccl.receive);
  if (const int version = version_of(nccl); version < kOldest || version >= kTooNew)
    not_usable("its version " + version_text(version) + " is not one of 2.9 to 2.99");
  return nccl;
}

// ---- a link --------------------------------------------------------------------------------------------------------

// A stream of the highest priority: messages take few of the multiprocessors, and work of `stream` waits for them.
class MessageStream {
 public:
  MessageStream() {
    int lowest = 0, highest = 0;
    CUDA_CHECK(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "asking for priorities of streams");
    CUDA_CHECK(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, highest), "making a stream for messages");
  }
  ~MessageStream() { cudaStreamDestroy(stream_); }
  MessageStream(const MessageStream&) = delete;
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class NcclLink final : public DeviceLink {
 public:
  NcclLink(const UniqueId& id, int process, int processes, cudaStream_t stream) : nccl_(open_nccl()), stream_(stream) {
    check(nccl_, nccl_.join(&comm_, processes, id, process), "to join the GPUs of " + std::to_string(processes) + " processes");
  }
  // After an error others may never come to the end of their messages, which ncclCommDestroy would wait for.
  ~NcclLink() override { failed_ || std::uncaught_exceptions() > 0 ? nccl_.abort(comm_) : nccl_.destroy(comm_); }
  NcclLink(const NcclLink&) = delete;

 private:
  // In one group, so that they go both ways at the same time. Events order the two streams, which become two branches of a captured graph
  // (CUDA C++ programming guide, "Cross-stream dependencies and events").
  void do_start(std::span<const Piece> sent, std::span<const Piece> received) override {
    failed_ = true;  // until all has gone well
    issued_.record(stream_);
    CUDA_CHECK(cudaStreamWaitEvent(messages_.get(), issued_.get(), 0), "ordering messages behind gradients");
    check(nccl_, nccl_.begin_group(), "to begin messages");
    int result = kSuccess;
    for (const Piece& piece : sent)
      if (result == kSuccess && piece.bytes > 0)
        result = nccl_.send(piece.data, static_cast<size_t>(piece.bytes), kBytes, piece.process, comm_, messages_.get());
    for (const Piece& piece : received)
      if (result == kSuccess && piece.bytes > 0)
        result = nccl_.receive(piece.data, static_cast<size_t>(piece.bytes), kBytes, piece.process, comm_, messages_.get());
    const int ended = nccl_.end_group();  // also after an error: a group belongs to the thread
    check(nccl_, result != kSuccess ? result : ended, "to send gradients between GPUs");
    arrived_.record(messages_.get());
    failed_ = false;
  }
  void finish() override { CUDA_CHECK(cudaStreamWaitEvent(stream_, arrived_.get(), 0), "ordering sums behind messages"); }

  const Functions nccl_;
  const cudaStream_t stream_;
  const MessageStream messages_;
  Event issued_{cudaEventDisableTiming}, arrived_{cudaEventDisableTiming};
  Comm comm_ = nullptr;
  bool failed_ = false;
};

}  // namespace

std::string new_nccl_link() {
  const Functions nccl = open_nccl();
  UniqueId id;
  check(nccl, nccl.unique_id(&id), "to begin a link of GPUs");
  return std::string(id.bytes, sizeof id.bytes);
}

std::unique_ptr<DeviceLink> join_nccl(const std::string& made, int process, int processes, cudaStream_t stream) {
  UniqueId id;
  CHECK(made.size() == sizeof id.bytes, "a link of " << made.size() << " bytes");
  std::memcpy(id.bytes, made.data(), sizeof id.bytes);
  return std::make_unique<NcclLink>(id, process, processes, stream);
}

}  // namespace comera::gpu

namespace comera {

NcclStatus nccl_status() try { return {true, gpu::version_text(gpu::version_of(gpu::open_nccl())), ""}; } catch (const Error& error) {
  return {false, "", error.why()};
}

}  // namespace comera
