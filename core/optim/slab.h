// What the optimizers share: the state tensors of all parameters in one block of memory, and Adam's moments in plain
// or 8-bit form. An optimizer says which tensors a parameter has (declare) and what a step does (update).
#pragma once
#include <unordered_map>

#include "core/optim/optimizer.h"

namespace comera {

enum class SlotFormat : unsigned char {
  real,            // the run's dtype
  signed_codes,    // u8, followed by its absmax slot
  unsigned_codes,  // u8, followed by its absmax slot
  absmax,          // f32, one a block of kQuantBlock codes
};

struct Slot {
  const char* name;
  Shape shape;
  SlotFormat format = SlotFormat::real;
  Tensor tensor = {};  // set by describe (no address) and allocate

  DType dtype(DType run) const { return format == SlotFormat::real ? run : format == SlotFormat::absmax ? DType::f32 : DType::u8; }
};
using Slots = std::vector<Slot>;

// Appends m and v for a gradient of `shape`.
void declare_moments(Slots& slots, const Shape& shape, bool eight_bit);

class SlabOptimizer : public Optimizer {
 public:
  void attach(Param& param) final;
  void describe(DType dtype) final { place(nullptr, dtype); }
  MemoryByPurpose planned(DType dtype) const final;
  void allocate(Device& device, Memory& memory, DType dtype) final;
  void release() final;
  void states(Param& param, const std::function<void(const std::string& name, Tensor& value)>& visit) final;
  std::vector<std::vector<double>> capture(Device& device, Ctx& ctx, Param& param) final;
  void restore(Device& device, Ctx& ctx, Param& param, const std::vector<std::vector<double>>& elementwise) final;

 protected:
  virtual Slots declare(const Param& param) const = 0;
  Slots& slots_of(const Param& param);

  // Adam with the moments that are the parameter's only state, in whichever format: those that were enlisted take their
  // step together.
  void enlist(const Param& param);
  void step_enlisted(Ctx& ctx, const AdamRule& rule);

 private:
  void place(char* base, DType dtype);
  Tensor scratch(int64_t count, Buffer& buffer) const;  // f32, counted as workspace while `buffer` lives

  std::vector<Slots> slots_;  // in order of attach
  std::unordered_map<const Param*, size_t> index_;
  std::vector<AdamTensors> enlisted_;
  std::vector<Adam8bitTensors> enlisted_8bit_;
  Memory* memory_ = nullptr;
  Buffer buffer_;
};

}  // namespace comera
