#include "tests/ops/cases/recording_device.h"

#include <cstring>
#include <utility>

#include "core/base/error.h"

namespace comera::test {
namespace {

// What is added to an address of the CPU. The sum is no address that a process can have here.
constexpr uintptr_t kAway = uintptr_t{1} << 47;

class RecordedProgram final : public CapturedProgram {
 public:
  RecordedProgram(RecordingDevice& device, RecordingDevice::Recording recording) : device_(device), recording_(std::move(recording)) {}
  void launch() override { device_.launch(recording_); }

 private:
  RecordingDevice& device_;
  const RecordingDevice::Recording recording_;
};

}  // namespace

RecordingDevice::RecordingDevice(int threads)
    : cpu_(open_cpu_device(threads)), ops_(std::make_unique<KeptOps>([this](auto call) { take(std::move(call)); })) {}

// ---- memory -------------------------------------------------------------------------------------------------------

void* RecordingDevice::allocate(int64_t bytes) {
  outside_capture("allocate");
  void* data = cpu_->allocate(bytes);
  std::memset(data, 0xff, static_cast<size_t>(bytes));
  const auto address = reinterpret_cast<uintptr_t>(data);
  pieces_[address] = {next_piece_++, bytes};
  return reinterpret_cast<void*>(address + kAway);
}

void RecordingDevice::release(void* data) noexcept {
  if (capturing_ && !released_after_) released_after_ = last_op_;  // end_capture() tells: this call must not throw
  const uintptr_t address = reinterpret_cast<uintptr_t>(data) - kAway;
  pieces_.erase(address);
  cpu_->release(reinterpret_cast<void*>(address));
}

void* RecordingDevice::on_cpu(const void* address, int64_t bytes, const char* what) {
  if (bytes == 0) return nullptr;
  const uintptr_t begin = reinterpret_cast<uintptr_t>(address) - kAway;
  auto piece = pieces_.upper_bound(begin);
  CHECK(piece != pieces_.begin(), what << " names memory that is not the device's");
  --piece;
  const uintptr_t end = begin + static_cast<uintptr_t>(bytes), piece_end = piece->first + static_cast<uintptr_t>(piece->second.bytes);
  CHECK(end <= piece_end, what << " names memory that is not the device's");
  if (capturing_) recording_.pieces.insert(piece->second.id);
  return reinterpret_cast<void*>(begin);
}

void RecordingDevice::upload(void* device, const void* host, int64_t bytes) {
  outside_capture("upload");
  cpu_->upload(on_cpu(device, bytes, "upload"), host, bytes);
}

void RecordingDevice::download(void* host, const void* device, int64_t bytes) {
  outside_capture("download");
  cpu_->download(host, on_cpu(device, bytes, "download"), bytes);
}

// ---- capture ------------------------------------------------------------------------------------------------------

void RecordingDevice::outside_capture(const char* what) const {
  CHECK(!capturing_, what << " inside of a capture, after op '" << last_op_ << "'");
}

void RecordingDevice::take(std::shared_ptr<KeptCall> call) {
  if (call->never_captured()) outside_capture(call->name());
  // Without the lease on a block of the arena: a kept one would count as a temporary that is still held.
  call->each_tensor([&](const ArgumentTensor& t) {
    if (t.tensor) t.tensor = Tensor(on_cpu(t.tensor.raw(), t.tensor.bytes(), call->name()), t.tensor.shape(), t.tensor.dtype());
  });
  last_op_ = call->name();
  if (capturing_) return recording_.calls.push_back(std::move(call));
  ++eager_calls;
  call->make(cpu_->ops());
}

void RecordingDevice::begin_capture() {
  outside_capture("begin_capture");
  recording_ = {};
  last_op_ = "none";
  released_after_ = nullptr;
  capturing_ = true;
}

std::unique_ptr<CapturedProgram> RecordingDevice::end_capture() {
  CHECK(capturing_, "end_capture without a beginning");
  capturing_ = false;
  CHECK(!released_after_, "release inside of a capture, after op '" << released_after_ << "'");
  ++captured;
  return std::make_unique<RecordedProgram>(*this, std::exchange(recording_, {}));
}

void RecordingDevice::abandon_capture() noexcept {
  capturing_ = false;
  recording_ = {};
}

void RecordingDevice::launch(const Recording& recording) {
  outside_capture("launch");
  std::set<int64_t> there;
  for (const auto& [address, piece] : pieces_) there.insert(piece.id);
  for (const int64_t id : recording.pieces) CHECK(there.count(id) == 1, "a program is launched after memory it names was given back");
  ++launches;
  for (const auto& call : recording.calls) call->make(cpu_->ops());
}

}  // namespace comera::test
