// Gradients of the parts of a batch that several processes computed, summed as one process sums them: of each number the parts' one after
// another, whichever process had them; likewise states that follow each part. A process sums a slice of the numbers, then all get all
// slices. Where devices are linked, they send and sum (linked_sum.h); else the host does, and a device with memory of its own is downloaded
// from and uploaded to. The bits are the same.
#pragma once
#include <vector>

#include "core/comm/communicator.h"
#include "core/ops/device.h"
#include "core/ops/device_link.h"

namespace comera {

inline bool computes_on_host(const Device& device) { return device.total_bytes() < 0; }

class SharedGradients {
 public:
  // `parts` of a batch, over all processes; `link`: of the devices, or null.
  SharedGradients(Communicator& communicator, int64_t parts, DeviceLink* link = nullptr);
  bool linked() const { return link_ != nullptr; }

  // Numbers [begin, end) of all gradients, those of a parameter: apart, in ascending order.
  struct Gradient {
    int64_t begin = 0, end = 0;
    bool left_out = false;  // stays what this process has
    Tensor second = {};     // added to it, of a parameter that is used twice a pass
  };
  // For the sum of `count` numbers and of `states` further ones. Neighbours are one segment, which ends where it has `least` numbers.
  void plan(const std::vector<Gradient>& gradients, int64_t count, DType dtype, int64_t states = 0, int64_t least = kNever);
  static constexpr int64_t kNever = int64_t{1} << 62;
  int64_t bytes() const { return bytes_; }  // where it sums: of the device where it is linked(), else of the host
  // Of a step, by this process to others (Communicator::sent_bytes, DeviceLink::sent_bytes).
  int64_t sent_bytes() const { return sent_bytes_; }
  // From now on `memory`, of bytes(), serves to sum these: what was planned, with addresses.
  void attach(void* memory, const Tensor& grads, const std::vector<Gradient>& gradients, const Tensor& states = {});

  int64_t rounds() const { return rounds_; }  // parts of a process at most
  // Adds the gradients of round `round`, that of process p being part round * P + p; after the last one `grads` is the sum, on all. Not
  // where it is linked().
  void add(Device& device, int64_t round);
  // Through hosts:
  // Of `all`, one equal block of rows for each part of a batch: a block is that of the process which computes its part, on all.
  void collect(Device& device, const Tensor& all);
  // The mean of all processes' `values` goes to all; likewise those of process 0.
  void average(Device& device, const Tensor& values);
  void spread(Device& device, const Tensor& values);
  // What this process sends for each.
  int64_t bytes_to_collect(const Tensor& all) const { return rounds_ * (all.bytes() / parts_) * (communicator_.processes() - 1); }
  int64_t bytes_to_average(const Tensor& values) const {
    return 2 * (communicator_.processes() - 1) * slice_of(values.count()) * static_cast<int64_t>(size_of(values.dtype()));
  }
  int64_t bytes_to_spread(const Tensor& values) const {
    return communicator_.process() == 0 ? (communicator_.processes() - 1) * values.bytes() : 0;
  }

 private:
  friend class LinkedSum;
  enum class Of : unsigned char { gradients, used_twice, states };
  struct Segment {  // a run of these
    int64_t begin, count;
    Of of;
    int64_t slice;                   // numbers of it that a process sums
    int64_t kept;                    // where those of this process are between rounds
    int64_t gradients;               // of so many parameters
    Tensor first = {}, second = {};  // the latter where it is used twice
  };
  template <class T>
  void add_segment(Device& device, const Segment& segment, int64_t round);
  template <class T>
  void average_of(Device& device, const Tensor& values);
  int64_t piece_bytes() const { return host_piece_ * static_cast<int64_t>(size_of(dtype_)); }
  char* host_memory();
  int64_t slice_of(int64_t count) const { return (count + communicator_.processes() - 1) / communicator_.processes(); }

  Communicator& communicator_;
  DeviceLink* const link_;
  const int64_t parts_, rounds_;
  std::vector<Segment> segments_;
  DType dtype_ = DType::f32;
  int64_t piece_ = 0, kept_ = 0, bytes_ = 0, sent_bytes_ = 0;  // piece_: numbers a message at most; kept_: numbers between rounds
  int64_t host_piece_ = 0;                                     // numbers of a message through hosts
  std::vector<char> host_;                                     // for them where gradients are not summed on the host
  bool any_twice_ = false;
  char* memory_ = nullptr;
};

}  // namespace comera
