// The part of NCCL that gpu/nccl.cu uses, between the devices of the GPU in software, whose threads stand for processes. It records the
// calls, and refuses what the library's documentation forbids. Messages are work of streams: they are sent and awaited when it runs.
#include "tests/gpu/ptx/nccl.h"

#include <cuda_runtime_api.h>

#include <condition_variable>
#include <cstring>
#include <deque>
#include <memory>
#include <set>

#include "tests/gpu/ptx/runtime.h"
#include "tests/gpu/ptx/warp.h"

// Where the processes of a link meet.
struct NcclMeeting {
  struct Message {
    std::vector<char> data;
    bool captured;
  };
  int processes = 0;
  std::set<int> joined, devices;
  std::map<std::pair<int, int>, std::deque<Message>> under_way;  // by sender and receiver; touched by work of streams alone
  bool refused = false;                                          // of seen().mutex: two processes have one device
  bool ended = false;                                            // by an error: nobody waits any more
};
struct ncclComm {
  std::shared_ptr<NcclMeeting> link;
  int process, processes, groups = 0;
};

namespace {

using comera::ptx::Fault;
using comera::ptx::NcclDouble;

enum Result { kSuccess = 0, kSystemError = 2, kInvalidArgument = 4, kInvalidUsage = 5 };

struct Id {
  char bytes[128];
};

NcclDouble& seen() {
  static NcclDouble all;
  return all;
}
std::condition_variable somebody_joined;
std::map<std::string, std::shared_ptr<NcclMeeting>> links;  // by id; of seen().mutex
int made = 0;

struct NcclCall {
  bool sends;
  char* data;
  size_t bytes;
  int other;
};

thread_local bool in_group = false;
thread_local std::vector<NcclCall> group_calls;
thread_local ncclComm* comm_of_group = nullptr;
thread_local cudaStream_t stream_of_group = nullptr;

int wrong(const std::string& what) {
  const std::lock_guard lock(seen().mutex);
  seen().wrong.push_back(what);
  return kInvalidUsage;
}

int add(const NcclCall& call, int type, ncclComm* comm, cudaStream_t stream) {
  if (!in_group) return wrong("a message outside of a group");
  if (type != 0 || call.bytes == 0) return wrong("a message of another type, or empty");
  if (call.other < 0 || call.other >= comm->processes || call.other == comm->process) return wrong("a message to nobody");
  if (comm_of_group && (comm_of_group != comm || stream_of_group != stream)) return wrong("a group of two streams");
  if (!comera::ptx::is_device_memory(call.data, static_cast<int64_t>(call.bytes))) return kInvalidArgument;
  comm_of_group = comm;
  stream_of_group = stream;
  group_calls.push_back(call);
  return kSuccess;
}

void end(NcclMeeting& link) {
  {
    const std::lock_guard lock(seen().mutex);
    link.ended = true;
  }
  somebody_joined.notify_all();
  comera::ptx::wake_others();
}

void run(NcclMeeting& link, int me, const std::vector<NcclCall>& group, bool captured) {
  for (const NcclCall& call : group) {
    if (!call.sends) continue;
    link.under_way[{me, call.other}].push_back({{call.data, call.data + call.bytes}, captured});
    const std::lock_guard lock(seen().mutex);
    seen().sent[me] += static_cast<int64_t>(call.bytes);
  }
  comera::ptx::wake_others();
  for (const NcclCall& call : group) {
    if (call.sends) continue;
    auto& from = link.under_way[{call.other, me}];
    comera::ptx::wait_for_others([&] { return !from.empty() || link.ended; });
    if (from.empty()) return;
    if (from.front().data.size() != call.bytes) throw Fault("a message of another size than its receiver wants");
    if (from.front().captured != captured) throw Fault("a message that one process captured and another did not");
    std::memcpy(call.data, from.front().data.data(), call.bytes);
    from.pop_front();
  }
}

}  // namespace

extern "C" {

NcclDouble* comera_nccl_double() { return &seen(); }

int ncclGetVersion(int* version) {
  *version = seen().version;
  return kSuccess;
}
const char* ncclGetErrorString(int result) {
  switch (result) {
    case kSuccess:
      return "no error";
    case kSystemError:
      return "unhandled system error";
    case kInvalidArgument:
      return "invalid argument";
    default:
      return "invalid usage";
  }
}
int ncclGetUniqueId(Id* id) {
  const std::lock_guard lock(seen().mutex);
  std::memset(id->bytes, 0, sizeof id->bytes);  // as in NCCL, not a text
  id->bytes[1] = static_cast<char>(++made);
  id->bytes[100] = '\n';
  return kSuccess;
}
int ncclCommInitRank(ncclComm** comm, int processes, Id id, int process) {
  int device = 0;
  cudaGetDevice(&device);
  std::unique_lock lock(seen().mutex);
  std::shared_ptr<NcclMeeting>& link = links[std::string(id.bytes, sizeof id.bytes)];
  if (!link) link = std::make_shared<NcclMeeting>();
  link->processes = processes;
  const bool is_first = link->joined.insert(process).second && link->devices.insert(device).second;
  if (!is_first) link->refused = true;  // "Duplicate GPU detected"
  somebody_joined.notify_all();
  const std::shared_ptr<NcclMeeting> own = link;
  somebody_joined.wait(lock, [&] { return own->refused || static_cast<int>(own->joined.size()) == processes; });
  if (own->refused) return kInvalidUsage;
  *comm = new ncclComm{own, process, processes};
  return kSuccess;
}
int ncclCommDestroy(ncclComm* comm) {
  {
    const std::lock_guard lock(seen().mutex);
    seen().ended[comm->process].push_back("destroyed");
  }
  delete comm;
  return kSuccess;
}
int ncclCommAbort(ncclComm* comm) {
  {
    const std::lock_guard lock(seen().mutex);
    seen().ended[comm->process].push_back("aborted");
  }
  end(*comm->link);
  delete comm;
  return kSuccess;
}
int ncclGroupStart() {
  if (in_group) return wrong("a group in a group");
  in_group = true;
  group_calls.clear();
  comm_of_group = nullptr;
  return kSuccess;
}
int ncclSend(const void* data, size_t count, int type, int to, ncclComm* comm, cudaStream_t stream) {
  return add({true, static_cast<char*>(const_cast<void*>(data)), count, to}, type, comm, stream);
}
int ncclRecv(void* data, size_t count, int type, int from, ncclComm* comm, cudaStream_t stream) {
  return add({false, static_cast<char*>(data), count, from}, type, comm, stream);
}
int ncclGroupEnd() {
  if (!in_group) return wrong("the end of a group that did not begin");
  in_group = false;
  if (!comm_of_group) return kSuccess;
  ncclComm& comm = *comm_of_group;
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  cudaStreamIsCapturing(stream_of_group, &status);
  const bool captured = status == cudaStreamCaptureStatusActive;
  if (captured && comm.groups == 0) return wrong("the first messages of a link in a capture");
  {
    const std::lock_guard lock(seen().mutex);
    NcclDouble::Group group;
    group.captured = captured;
    for (const NcclCall& call : group_calls)
      (call.sends ? group.sent : group.received).emplace_back(call.other, static_cast<int64_t>(call.bytes));
    seen().groups[comm.process].push_back(group);
  }
  if (comm.process == seen().fails_in && comm.groups == seen().fails_at) {
    end(*comm.link);
    return kSystemError;
  }
  ++comm.groups;
  const auto work = [link = comm.link, me = comm.process, group = group_calls, captured] { run(*link, me, group, captured); };
  return comera::ptx::enqueue(stream_of_group, work) == cudaSuccess ? kSuccess : kSystemError;
}

}  // extern "C"
