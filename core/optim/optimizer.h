// An optimizer: its state for each parameter, its update op, an optional refresh between the two programs of a step,
// and how its state follows when ranks are cut or a run is saved.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/fields.h"
#include "core/layers/layer.h"

namespace comera {

// Which slices of a core survive: core (a, l.., b) -> core[keep_first][:][keep_last]. Empty = all.
struct CoreSlice {
  std::vector<int64_t> keep_first, keep_last;
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // Declares the state of `param` (called once a parameter, before allocate).
  virtual void attach(Param& param) = 0;
  // Sets every state to its shape without an address: enough for a dry run of update(), nothing is taken.
  virtual void describe(DType dtype) = 0;
  virtual MemoryByPurpose planned(DType dtype) const = 0;
  virtual void allocate(Memory& memory, DType dtype) = 0;  // and sets the state to its start
  virtual void release() = 0;
  // Part of the update program: w from w, grad and state.
  virtual void update(Ctx& ctx, Param& param) = 0;
  // Between grad and update program, never captured; true steps only (never dry). `step` is 1-based.
  virtual bool refresh_due(uint64_t step) const { return false; }
  virtual void refresh(Ctx& ctx, Param& param, uint64_t step) {}
  // Every state tensor by name ("m", "v", "projection"), for checkpoints.
  virtual void states(Param& param, const std::function<void(const std::string& name, Tensor& value)>& visit) = 0;
  // When ranks are cut: capture the state of a parameter on the host, cut as `slice` says, before release();
  // restore after attach() and allocate() with the new shapes. Elementwise state only; 8-bit state is dequantised.
  virtual std::vector<std::vector<double>> capture(Device& device, Ctx& ctx, Param& param) = 0;
  virtual void restore(Device& device, Ctx& ctx, Param& param, const std::vector<std::vector<double>>& elementwise) = 0;
};

struct AdamConfig {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  void fields(FieldVisitor& v);
};
struct Adam8bitConfig {
  int64_t min_size = 4096;       // smaller tensors keep plain moments
  bool embeddings = false;       // false: tables keep plain moments
  void fields(FieldVisitor& v);
};
struct GaloreConfig {
  int64_t rank = 128, gap = 200;
  double scale = 0.25;
  bool eight_bit = false;        // inner moments in 8 bits
  void fields(FieldVisitor& v);
};

std::unique_ptr<Optimizer> make_adamw(const AdamConfig& config);
std::unique_ptr<Optimizer> make_adam8bit(const AdamConfig& config, const Adam8bitConfig& options);
// Projects weights of kind `weight` that are matrices inside blocks (not tables, heads or biases); others get AdamW.
std::unique_ptr<Optimizer> make_galore(const AdamConfig& config, const GaloreConfig& options);

}  // namespace comera
