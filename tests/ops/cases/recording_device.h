// A device for tests that captures as a GPU does, and refuses what a GPU could not do in a captured program. It computes
// with the CPU's ops.
//   capture   each op call is kept with copies of its arguments and does not run; launch() makes the kept calls. So a
//             replayed step knows only what is in device memory: a value or a branch that the host took into a call
//             stays as it was when the program was captured, and the run no longer equals one on the CPU.
//   rules     upload, download, synchronize, allocate, release, launch and ops that are never captured fail inside of a
//             capture, with the name of the op before them.
//   memory    its addresses are not the host's: reading or writing there without upload and download is a fault of the
//             process. Every tensor of an op must lie in memory that is allocated, also when it is launched: an address
//             that was given back since the capture is found even where the same one was given out again. New memory
//             holds bytes of 0xff, which are no numbers.
#pragma once
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/ops/device.h"
#include "tests/ops/cases/kept.h"

namespace comera::test {

class RecordingDevice : public Device {
 public:
  explicit RecordingDevice(int threads = 1);

  std::string name() const override { return "recording device"; }
  Ops& ops() override { return *ops_; }
  void* allocate(int64_t bytes) override;
  void release(void* data) noexcept override;
  void upload(void* device, const void* host, int64_t bytes) override;
  void download(void* host, const void* device, int64_t bytes) override;
  void synchronize() override { outside_capture("synchronize"); }
  int64_t total_bytes() const override { return int64_t{1} << 40; }  // memory of its own

  bool captures() const override { return true; }
  void begin_capture() override;
  std::unique_ptr<CapturedProgram> end_capture() override;
  void abandon_capture() noexcept override;

  // Since the start. A launched call is no eager one.
  int64_t captured = 0, launches = 0, eager_calls = 0;

  // For the device's ops and programs ---------------------------------------------------------------------------------
  struct Recording {
    std::vector<std::shared_ptr<KeptCall>> calls;
    std::set<int64_t> pieces;  // of memory that the calls name
  };
  void outside_capture(const char* what) const;  // throws inside
  void take(std::shared_ptr<KeptCall> call);     // makes it now, or keeps it
  void launch(const Recording& recording);

 private:
  struct Piece {
    int64_t id = 0, bytes = 0;
  };
  // The CPU's address of memory that `what` names; throws where it is not allocated.
  void* on_cpu(const void* address, int64_t bytes, const char* what);

  const std::unique_ptr<Device> cpu_;
  const std::unique_ptr<Ops> ops_;
  std::map<uintptr_t, Piece> pieces_;  // by the CPU's address
  int64_t next_piece_ = 0;
  bool capturing_ = false;
  Recording recording_;
  const char* last_op_ = "none";
  const char* released_after_ = nullptr;  // the op before a release inside of the capture
};

}  // namespace comera::test
