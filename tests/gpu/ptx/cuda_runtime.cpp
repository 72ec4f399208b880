// The calls of CUDA's runtime that this project makes, on a GPU in software: kernels are the PTX that nvcc put into the
// program, run by warp.h. Linked in the place of cudart. As late as a device may be: what a stream was given runs only when
// somebody waits for it. Memory is NaN before it is written; what is not the device's, or was given back, cannot be touched.
// What a capture forbids fails, and the device is lost after a fault. Threads may stand for processes, each with a device of its own.
#include "tests/gpu/ptx/runtime.h"

#include <cuda_runtime_api.h>
#include <cxxabi.h>
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/gpu/ptx/warp.h"

namespace {

using Work = std::function<void()>;

std::recursive_mutex everything;
std::condition_variable_any others_went_on;
constexpr int kDevices = 3;
thread_local int device_of_thread = 0;
thread_local cudaError_t last_error = cudaSuccess;
cudaError_t lost = cudaSuccess;  // after a fault

cudaError_t note(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

// ---- memory

constexpr int64_t kTotalBytes = int64_t{2} << 30, kCodeBytes = int64_t{1} << 20;  // code: of a kernel, from its first launch on
std::map<uintptr_t, int64_t> of_device, of_host;                                  // begin, bytes
int64_t taken = 0;
size_t changes = 1;  // memory that was taken or given back

bool lies_in(const std::map<uintptr_t, int64_t>& all, uintptr_t address, int64_t bytes) {
  const auto behind = all.upper_bound(address);
  if (behind == all.begin()) return false;
  const auto& [begin, size] = *std::prev(behind);
  return static_cast<int64_t>(address - begin) + bytes <= size;
}

// Mostly of the same memory as before.
bool allowed(uintptr_t address, int64_t bytes) {
  static uintptr_t begin = 0, end = 0;
  static size_t of = 0;
  if (of == changes && address >= begin && address + static_cast<uint64_t>(bytes) <= end) return true;
  if (!lies_in(of_device, address, bytes)) return false;
  const auto& [at, size] = *std::prev(of_device.upper_bound(address));
  begin = at, end = at + static_cast<uint64_t>(size), of = changes;
  return true;
}

}  // namespace

// ---- streams

struct CUgraph_st {
  std::vector<Work> nodes;
};
struct CUgraphExec_st {
  std::shared_ptr<std::vector<Work>> nodes;
};
struct CUevent_st {
  struct State {
    bool done = true;
    std::chrono::steady_clock::time_point when;
  };
  std::shared_ptr<State> last = std::make_shared<State>();
  cudaStream_t stream = nullptr;
  size_t nodes = 0;  // recorded in a capture: behind so many of its stream
};
struct CUstream_st {
  std::deque<Work> given;
  // A stream that waits for an event of a capture joins it. What it is given then comes into the graph as late as it may: where the stream
  // that is captured waits for it.
  std::unique_ptr<CUgraph_st> capture;
  cudaStream_t captured_with = nullptr;  // of a stream that joined: the one that is captured
  bool spoilt = false;                   // the capture, by a call that it forbids
  bool runs = false;                     // some thread is at its work
  bool helped = false;                   // a thread of its own has begun, or will
  const int device = device_of_thread;
};

namespace {

std::vector<cudaStream_t> streams;

// Runs what was given first, or waits until another thread has done so.
void run_next(cudaStream_t stream) {
  if (stream->runs) return others_went_on.wait(everything, [stream] { return !stream->runs; });
  const Work work = std::move(stream->given.front());
  stream->given.pop_front();
  if (lost != cudaSuccess) return;
  stream->runs = true;
  try {
    work();
  } catch (const comera::ptx::Fault& fault) {
    std::fprintf(stderr, "GPU in software: %s\n", fault.what());
    lost = cudaErrorIllegalAddress;
  }
  stream->runs = false;
  others_went_on.notify_all();
}

cudaError_t finish(cudaStream_t stream) {
  while (stream->runs || !stream->given.empty()) run_next(stream);
  return lost;
}

// Lets a thread of its own run what the stream was given.
void help(cudaStream_t stream) {
  if (stream->runs || stream->helped || stream->given.empty()) return;
  stream->helped = true;
  std::thread([stream] {
    const std::lock_guard lock(everything);
    finish(stream);
    stream->helped = false;
    others_went_on.notify_all();
  }).detach();
}

// Of the thread's device.
cudaError_t finish_all() {
  std::vector<cudaStream_t> own;
  for (cudaStream_t stream : streams)
    if (stream->device == device_of_thread) own.push_back(stream);
  for (cudaStream_t stream : own) finish(stream);
  return lost;
}

bool spoil(cudaStream_t stream) { return (stream->captured_with ? stream->captured_with : stream)->spoilt = true; }

// A call that no stream of the device may be captured under.
bool spoils_captures() {
  bool spoilt = false;
  for (cudaStream_t stream : streams)
    if (stream->capture && stream->device == device_of_thread) spoilt = spoil(stream);
  return spoilt;
}

}  // namespace

namespace comera::ptx {

cudaError_t enqueue(cudaStream_t stream, std::function<void()> work) {
  const std::lock_guard lock(everything);
  if (lost != cudaSuccess) return lost;
  if (!stream) return cudaErrorInvalidResourceHandle;  // no call here uses the stream that all wait for
  if (stream->capture)
    stream->capture->nodes.push_back(std::move(work));
  else
    stream->given.push_back(std::move(work));
  others_went_on.notify_all();
  return cudaSuccess;
}

bool is_device_memory(const void* data, int64_t bytes) {
  const std::lock_guard lock(everything);
  return lies_in(of_device, std::bit_cast<uintptr_t>(data), bytes);
}

// The call which runs the work holds the lock once; while it waits, others have it. Streams whose threads wait for something else get on,
// too, as a device does by itself.
void wait_for_others(const std::function<bool()>& done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!done()) {
    for (cudaStream_t stream : streams) help(stream);
    if (others_went_on.wait_until(everything, end) == std::cv_status::timeout) throw Fault("work waits for other devices in vain");
  }
}

void wake_others() {
  const std::lock_guard lock(everything);
  others_went_on.notify_all();
}

}  // namespace comera::ptx

// ---- kernels, as nvcc's code registers and launches them

namespace {

struct Binary {
  std::unique_ptr<comera::ptx::Program> program;
};
struct Function {
  Binary* binary = nullptr;
  std::string name;
  int64_t most_shared = 48 << 10;
  bool loaded = false;
  std::map<std::array<size_t, 3>, int> watched;  // launches watched for races, by blocks, threads, shared bytes
};
constexpr int kMostWatched = 8;                 // launches of a shape, not every step of a long run
std::map<const void*, Function>& functions() {  // filled before main()
  static std::map<const void*, Function> all;
  return all;
}
constexpr int64_t kMostShared = 99 << 10;  // of the smallest device that is built for

template <class T>
T at(const char* data, int64_t offset) {
  T value;
  std::memcpy(&value, data + offset, sizeof value);
  return value;
}

// The PTX among what nvcc made for several devices: a header, then entries, each with a header of its own.
std::string ptx_of(const char* fat) {
  if (at<uint32_t>(fat, 0) != 0xba55ed50) throw std::runtime_error("GPU in software: the program's kernels are of an unknown form");
  const char *entry = fat + at<uint16_t>(fat, 6), *end = entry + at<uint64_t>(fat, 8);
  while (entry < end) {
    const auto kind = at<uint16_t>(entry, 0);
    const auto header = at<uint32_t>(entry, 4);
    const auto bytes = at<uint64_t>(entry, 8);
    if (kind == 1) {
      const auto packed = at<uint32_t>(entry, 16);
      const auto flags = at<uint64_t>(entry, 40);
      const auto unpacked = at<uint64_t>(entry, 56);
      constexpr uint64_t kZstd = 0x8000, kLz4 = 0x2000;
      if (!(flags & (kZstd | kLz4))) return std::string(entry + header, bytes);
      if (flags & kLz4) throw std::runtime_error("GPU in software: the program's kernels are packed in a way that is not known here");
      void* library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
      const auto unpack =
          library ? reinterpret_cast<size_t (*)(void*, size_t, const void*, size_t)>(dlsym(library, "ZSTD_decompress")) : nullptr;
      if (!unpack) throw std::runtime_error("GPU in software: libzstd.so.1 is missing, which unpacks the program's kernels");
      std::string text(unpacked, '\0');
      if (unpack(text.data(), text.size(), entry + header, packed) != unpacked)
        throw std::runtime_error("GPU in software: the program's kernels are damaged");
      return text;
    }
    entry += header + bytes;
  }
  throw std::runtime_error("GPU in software: the program has no PTX");
}

// COMERA_PTX_COUNTS=FILE: what kernels ask of a GPU (warp.h), as a table, written when the program ends.
class Table {
 public:
  static Table* get() {
    static Table table;
    return table.file_ ? &table : nullptr;
  }
  comera::ptx::Counts* of(const std::string& kernel) { return &rows_[kernel]; }
  ~Table() {
    if (!file_) return;
    std::FILE* out = std::fopen(file_, "w");
    if (!out) return;
    std::fprintf(out, "launches\tblocks\twarps\tinstructions\tlongest\tsectors\tleast\tpasses\taccesses\tshared\tkernel\n");
    for (const auto& [kernel, c] : rows_) {
      char* name = abi::__cxa_demangle(kernel.c_str(), nullptr, nullptr, nullptr);
      std::fprintf(out, "%ld\t%ld\t%ld\t%ld\t%ld\t%ld\t%ld\t%ld\t%ld\t%ld\t%s\n", c.launches, c.blocks, c.warps, c.instructions, c.longest,
                   c.sectors, c.sectors_least, c.bank_passes, c.bank_accesses, c.shared, name ? name : kernel.c_str());
      std::free(name);
    }
    std::fclose(out);
  }

 private:
  const char* file_ = std::getenv("COMERA_PTX_COUNTS");
  std::map<std::string, comera::ptx::Counts> rows_;
};

struct Call {
  dim3 grid, block;
  size_t shared;
  cudaStream_t stream;
};
thread_local std::vector<Call> calls;

}  // namespace

extern "C" {

void** __cudaRegisterFatBinary(void* wrapper) {
  // { magic, version, data, ... }
  auto* binary = new Binary;
  binary->program = std::make_unique<comera::ptx::Program>(ptx_of(at<const char*>(static_cast<const char*>(wrapper), 8)));
  return reinterpret_cast<void**>(binary);
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int) {}
void __cudaRegisterFunction(void** handle, const char* host, char*, const char* name, int, uint3*, uint3*, dim3*, dim3*, int*) {
  Function& function = functions()[host];
  function.binary = reinterpret_cast<Binary*>(handle), function.name = name;
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, CUstream_st* stream) {
  calls.push_back({grid, block, shared, stream});
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
  const Call call = calls.back();
  calls.pop_back();
  *grid = call.grid, *block = call.block, *shared = call.shared;
  *static_cast<cudaStream_t*>(stream) = call.stream;
  return cudaSuccess;
}

cudaError_t cudaLaunchKernel(const void* host, dim3 grid, dim3 block, void** args, size_t shared, cudaStream_t stream) {
  const std::lock_guard lock(everything);
  const auto found = functions().find(host);
  if (found == functions().end()) return note(cudaErrorInvalidDeviceFunction);
  Function& function = found->second;
  comera::ptx::Program& program = *function.binary->program;
  const comera::ptx::Kernel* kernel = program.find(function.name);
  if (!kernel) return note(cudaErrorInvalidDeviceFunction);
  if (grid.x == 0 || grid.y != 1 || grid.z != 1 || block.x == 0 || block.x > 1024 || block.y != 1 || block.z != 1)
    return note(cudaErrorInvalidConfiguration);
  if (static_cast<int64_t>(shared) + kernel->static_shared_bytes > function.most_shared) return note(cudaErrorInvalidValue);
  if (!function.loaded) {
    if (taken + kCodeBytes > kTotalBytes) return note(cudaErrorMemoryAllocation);
    taken += kCodeBytes;
    function.loaded = true;
  }
  auto params = std::make_shared<std::vector<char>>(static_cast<size_t>(kernel->param_bytes));
  for (size_t k = 0; k < kernel->params.size(); ++k)
    std::memcpy(params->data() + kernel->params[k].offset, args[k], static_cast<size_t>(kernel->params[k].bytes));
  const bool watch = !Table::get() && ++function.watched[{size_t{grid.x}, size_t{block.x}, shared}] <= kMostWatched;
  return note(comera::ptx::enqueue(stream, [&program, kernel, grid, block, shared, params, watch] {
    comera::ptx::run(program, *kernel, {grid.x, static_cast<int>(block.x), static_cast<int64_t>(shared), params->data(), watch}, allowed,
                     Table::get() ? Table::get()->of(kernel->name) : nullptr);
  }));
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(host));
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** args, size_t shared, cudaStream_t stream) {
  return cudaLaunchKernel(reinterpret_cast<const void*>(kernel), grid, block, args, shared, stream);
}
cudaError_t cudaFuncSetAttribute(const void* host, cudaFuncAttribute attribute, int value) {
  const std::lock_guard lock(everything);
  const auto found = functions().find(host);
  if (found == functions().end()) return note(cudaErrorInvalidDeviceFunction);
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  if (value > kMostShared) return note(cudaErrorInvalidValue);
  found->second.most_shared = std::max<int64_t>(found->second.most_shared, value);
  return cudaSuccess;
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* host) {
  const auto found = functions().find(host);
  if (found == functions().end()) return note(cudaErrorInvalidDeviceFunction);
  *attributes = {};
  attributes->ptxVersion = attributes->binaryVersion = found->second.binary->program->capability();
  attributes->maxThreadsPerBlock = 1024;
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void*, int, size_t, unsigned) {
  *blocks = 2;
  return cudaSuccess;
}

// ---- the device

// Several, which share their memory: a call that forgets to choose its device is on the wrong one.
cudaError_t cudaGetDeviceCount(int* count) {
  *count = kDevices;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = device_of_thread;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= kDevices) return note(cudaErrorInvalidDevice);
  device_of_thread = device;
  return note(lost);
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  *properties = {};
  properties->uuid.bytes[0] = static_cast<char>(device);
  std::strcpy(properties->name, "GPU in software");
  properties->totalGlobalMem = static_cast<size_t>(kTotalBytes);
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor:
      *value = 10;  // a B200; it also runs PTX for earlier devices
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
      *value = 0;
      return cudaSuccess;
    case cudaDevAttrMultiProcessorCount:
      *value = 2;
      return cudaSuccess;
    case cudaDevAttrMaxGridDimX:
      *value = INT32_MAX;
      return cudaSuccess;
    default:
      std::fprintf(stderr, "GPU in software: attribute %d is not known\n", static_cast<int>(attribute));
      return note(cudaErrorInvalidValue);
  }
}
cudaError_t cudaGetLastError() {
  const cudaError_t error = last_error;
  last_error = cudaSuccess;
  return error;
}
cudaError_t cudaPeekAtLastError() { return last_error; }
const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorIllegalAddress:
      return "cudaErrorIllegalAddress";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorInvalidConfiguration:
      return "cudaErrorInvalidConfiguration";
    case cudaErrorStreamCaptureUnsupported:
      return "cudaErrorStreamCaptureUnsupported";
    case cudaErrorStreamCaptureInvalidated:
      return "cudaErrorStreamCaptureInvalidated";
    default:
      return "cudaError";
  }
}
const char* cudaGetErrorString(cudaError_t error) { return error == cudaSuccess ? "no error" : "see the name"; }

// ---- memory

cudaError_t cudaMalloc(void** data, size_t bytes) {
  const std::lock_guard lock(everything);
  if (spoils_captures()) return note(cudaErrorStreamCaptureUnsupported);
  if (lost != cudaSuccess) return note(lost);
  const auto size = static_cast<int64_t>(bytes);
  if (taken + size > kTotalBytes) return note(cudaErrorMemoryAllocation);
  *data = std::aligned_alloc(512, (bytes + 511) / 512 * 512);
  if (!*data) return note(cudaErrorMemoryAllocation);
  std::memset(*data, 0xff, bytes);
  of_device[std::bit_cast<uintptr_t>(*data)] = size;
  taken += size;
  ++changes;
  return cudaSuccess;
}
cudaError_t cudaFree(void* data) {
  const std::lock_guard lock(everything);
  if (!data) return cudaSuccess;
  if (spoils_captures()) return note(cudaErrorStreamCaptureUnsupported);
  finish_all();
  const auto found = of_device.find(std::bit_cast<uintptr_t>(data));
  if (found == of_device.end()) return note(cudaErrorInvalidValue);
  taken -= found->second;
  of_device.erase(found);
  ++changes;
  std::free(data);
  return note(lost);
}
cudaError_t cudaHostAlloc(void** data, size_t bytes, unsigned) {
  const std::lock_guard lock(everything);
  if (spoils_captures()) return note(cudaErrorStreamCaptureUnsupported);
  *data = std::malloc(std::max<size_t>(bytes, 1));
  std::memset(*data, 0xff, bytes);
  of_host[std::bit_cast<uintptr_t>(*data)] = static_cast<int64_t>(bytes);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* data) {
  const std::lock_guard lock(everything);
  if (!data) return cudaSuccess;
  finish_all();
  of_host.erase(std::bit_cast<uintptr_t>(data));
  std::free(data);
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  const std::lock_guard lock(everything);
  *total = static_cast<size_t>(kTotalBytes);
  *free = static_cast<size_t>(kTotalBytes - taken);
  return note(lost);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  const std::lock_guard lock(everything);
  if (!stream) return note(cudaErrorInvalidResourceHandle);
  const auto size = static_cast<int64_t>(bytes);
  const auto lies = [&](const std::map<uintptr_t, int64_t>& all, const void* data) {
    return lies_in(all, std::bit_cast<uintptr_t>(data), size);
  };
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if ((to_device && !lies(of_device, to)) || (from_device && !lies(of_device, from))) return note(cudaErrorInvalidValue);
  if (stream->capture && ((!to_device && !lies(of_host, to)) || (!from_device && !lies(of_host, from)))) {
    spoil(stream);
    return note(cudaErrorStreamCaptureUnsupported);
  }
  if (!from_device && !lies(of_host, from)) {  // memory of the host that a device cannot read by itself is copied at once
    auto copied = std::make_shared<std::vector<char>>(bytes);
    std::memcpy(copied->data(), from, bytes);
    return note(comera::ptx::enqueue(stream, [=] { std::memcpy(to, copied->data(), bytes); }));
  }
  const cudaError_t error = comera::ptx::enqueue(stream, [=] { std::memmove(to, from, bytes); });
  if (!to_device && !lies(of_host, to)) finish(stream);
  return note(error == cudaSuccess ? lost : error);
}
cudaError_t cudaMemsetAsync(void* data, int value, size_t bytes, cudaStream_t stream) {
  if (!comera::ptx::is_device_memory(data, static_cast<int64_t>(bytes))) return note(cudaErrorInvalidValue);
  return note(comera::ptx::enqueue(stream, [=] { std::memset(data, value, bytes); }));
}

// ---- streams, events, graphs

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  const std::lock_guard lock(everything);
  streams.push_back(*stream = new CUstream_st);
  return note(lost);
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* lowest, int* highest) {
  *lowest = 0, *highest = -5;
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) { return cudaStreamCreateWithFlags(stream, flags); }
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const std::lock_guard lock(everything);
  finish(stream);
  others_went_on.wait(everything, [stream] { return !stream->helped; });
  std::erase(streams, stream);
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const std::lock_guard lock(everything);
  if (stream->capture) {
    spoil(stream);
    return note(cudaErrorStreamCaptureUnsupported);
  }
  return note(finish(stream));
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  const std::lock_guard lock(everything);
  if (stream->capture) return note(cudaErrorIllegalState);
  if (lost != cudaSuccess) return note(lost);
  stream->capture = std::make_unique<CUgraph_st>();
  stream->spoilt = false;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const std::lock_guard lock(everything);
  *graph = nullptr;
  if (!stream->capture) return note(cudaErrorIllegalState);
  const auto captured = std::move(stream->capture);
  bool joined = true;
  for (cudaStream_t other : streams)
    if (other->captured_with == stream) {
      joined &= other->capture->nodes.empty();
      other->capture.reset();
      other->captured_with = nullptr;
    }
  if (!joined) return note(cudaErrorStreamCaptureUnjoined);
  if (stream->spoilt) return note(cudaErrorStreamCaptureInvalidated);
  *graph = new CUgraph_st(*captured);
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  const std::lock_guard lock(everything);
  *status = !stream->capture ? cudaStreamCaptureStatusNone
            : stream->spoilt ? cudaStreamCaptureStatusInvalidated
                             : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t graph, unsigned long long) {
  const std::lock_guard lock(everything);
  *made = new CUgraphExec_st{std::make_shared<std::vector<Work>>(graph->nodes)};
  return note(lost);
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  return note(comera::ptx::enqueue(stream, [nodes = graph->nodes] {
    for (const Work& node : *nodes) node();
  }));
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new CUevent_st;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const std::lock_guard lock(everything);
  event->last = std::make_shared<CUevent_st::State>();
  event->last->done = false;
  event->stream = stream;
  const cudaError_t error = comera::ptx::enqueue(stream, [state = event->last] {
    state->when = std::chrono::steady_clock::now();
    state->done = true;
  });
  event->nodes = stream->capture ? stream->capture->nodes.size() : 0;
  return note(error);
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const std::lock_guard lock(everything);
  const cudaStream_t other = event->stream;
  if (!other || other == stream) return cudaSuccess;
  if (event->nodes > 0 && other->capture) {
    const cudaStream_t captured = other->captured_with ? other->captured_with : other;
    if (!stream->capture) {
      stream->capture = std::make_unique<CUgraph_st>();
      stream->captured_with = captured;
    } else if (stream == captured) {
      std::vector<Work>&from = other->capture->nodes, &to = stream->capture->nodes;
      const auto end = from.begin() + static_cast<std::ptrdiff_t>(event->nodes);
      std::move(from.begin(), end, std::back_inserter(to));
      from.erase(from.begin(), end);
      event->nodes = 0;
    }
    return cudaSuccess;
  }
  if (stream->capture && !event->last->done) {
    spoil(stream);
    return note(cudaErrorStreamCaptureIsolation);
  }
  return note(comera::ptx::enqueue(stream, [state = event->last, other] {
    while (!state->done && lost == cudaSuccess && (other->runs || !other->given.empty()))
      other->runs ? others_went_on.wait(everything) : run_next(other);  // which may wait for this stream, behind the event
  }));
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const std::lock_guard lock(everything);
  if (event->stream && event->stream->capture) {
    spoil(event->stream);
    return note(cudaErrorStreamCaptureUnsupported);
  }
  while (!event->last->done && lost == cudaSuccess && (event->stream->runs || !event->stream->given.empty())) run_next(event->stream);
  return note(lost);
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t begin, cudaEvent_t end) {
  if (!begin->last->done || !end->last->done) return note(cudaErrorNotReady);
  *ms = std::chrono::duration<float, std::milli>(end->last->when - begin->last->when).count();
  return cudaSuccess;
}

}  // extern "C"
