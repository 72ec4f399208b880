// An optimizer: its state for each parameter, its update op, an optional refresh between the two programs of a step,
// and how its state follows when ranks are cut or a run is saved.
#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/config/optimizers.h"
#include "core/layers/layer.h"

namespace comera {

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // Declares the state of `param`: once a parameter before allocate, and again after its shape has changed.
  virtual void attach(Param& param) = 0;
  // Gives every state tensor its shape and dtype without an address, for dry runs before allocate().
  virtual void describe(DType dtype) = 0;
  virtual MemoryByPurpose planned(DType dtype) const = 0;
  // Takes exactly planned() bytes and sets the state to its start.
  virtual void allocate(Device& device, Memory& memory, DType dtype) = 0;
  virtual void release() = 0;
  // The update program: w from w, grad and state, of all parameters in as few calls of ops as the rule allows.
  void update(Ctx& ctx, std::deque<Param>& params) {
    for (Param& param : params) step(ctx, param);
    finish(ctx);
  }
  void update(Ctx& ctx, Param& param) {
    step(ctx, param);
    finish(ctx);
  }
  // Between grad and update program, never captured; dry once in a plan, for its working memory. `step` is 1-based.
  virtual bool refresh_due(uint64_t step) const { return false; }
  virtual void refresh(Ctx& ctx, Param& param, uint64_t step) {}
  // Every state tensor by name ("m", "v", "projection"), for checkpoints: their bytes are the whole state.
  virtual void states(Param& param, const std::function<void(const std::string& name, Tensor& value)>& visit) = 0;
  // When a parameter's shape changes: its state as numbers on the host before release(), m then v (after a projection
  // if there is one), 8-bit ones dequantised, so the caller can cut them like the value. restore() takes them after
  // attach() and allocate() with the new shape, in the format that the new size asks for.
  virtual std::vector<std::vector<double>> capture(Device& device, Ctx& ctx, Param& param) = 0;
  virtual void restore(Device& device, Ctx& ctx, Param& param, const std::vector<std::vector<double>>& elementwise) = 0;

 protected:
  // The step of one parameter: made at once, or left to finish(), which is behind those of all.
  virtual void step(Ctx& ctx, Param& param) = 0;
  virtual void finish(Ctx& ctx) = 0;
};

std::unique_ptr<Optimizer> make_adamw(const AdamConfig& config);
std::unique_ptr<Optimizer> make_adam8bit(const AdamConfig& config, const Adam8bitConfig& options);
// Projects weights of kind `weight` that are matrices inside blocks (not tables, heads or biases); others get AdamW.
std::unique_ptr<Optimizer> make_galore(const AdamConfig& config, const GaloreConfig& options);

}  // namespace comera
