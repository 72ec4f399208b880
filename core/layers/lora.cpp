// Low-rank adaptation (METHODS.md 4.1): y = base(x) + s (d(x) A^T) B^T with a frozen base, A (r, I), B (O, r), s = alpha / r and
// dropout d. Letters: T tokens, I and O the sizes of the matrix.
#include "core/layers/lora.h"

#include <cmath>

#include "core/config/method.h"
#include "core/layers/frozen.h"
#include "core/layers/grads.h"
#include "core/layers/weights.h"

namespace comera {
namespace {

constexpr const char* kFactor = ".lora.a";

class LoraLinear final : public Layer {
 public:
  LoraLinear(const MatrixSpec& spec, const LoraConfig& config, std::shared_ptr<const double> scale, std::unique_ptr<Layer> base,
             LayerFactory& build)
      : scale_(std::move(scale)), base_(std::move(base)) {
    ParamSet& params = build.params();
    a_ = &params.add(spec.name + kFactor, {config.rank, spec.in}, ParamKind::factor, ParamGroup::rest,
                     {Init::uniform, 1 / std::sqrt(static_cast<double>(spec.in))});
    b_ = &params.add(spec.name + ".lora.b", {spec.out, config.rank}, ParamKind::factor, ParamGroup::rest, {Init::zeros});
    slot_ = build.stash().slot(params, spec.name.c_str(), spec.in, build.next_site());
    dropout_ = {config.dropout, build.next_site()};
  }

  Tensor forward(Ctx& ctx, Tensor x) override {
    // Dropout draws by the place of an element, so it needs all rows again.
    if (ctx.keeps()) kept_ = ctx.stash.keep(ctx, slot_, x, dropout_.probability > 0 ? Use::other : Use::product);
    Tensor h = ctx.temp({x.size(0), a_->shape[0]}, "lora x A^T");
    ctx.ops.gemm(h, dropped(ctx, x), false, numbers_of(ctx, *a_), true);
    Tensor y = base_->forward(ctx, std::move(x));
    ctx.ops.gemm(y, h, false, numbers_of(ctx, *b_), true, *scale_, 1);
    if (ctx.keeps()) h_ = std::move(h);
    return y;
  }

  Tensor backward(Ctx& ctx, Tensor dy, Tensor into) override {
    CHECK(kept_, "backward of a LoRA layer without its forward");
    Tensor da = grad_room(ctx, *a_), db = grad_room(ctx, *b_), dh = ctx.temp(h_.shape(), "lora dh");
    ctx.ops.gemm(db, dy, true, h_, false, *scale_);
    h_ = {};
    ctx.ops.gemm(dh, dy, false, numbers_of(ctx, *b_), false, *scale_);
    {
      const Tensor rows = rows_for(ctx, kept_, dh);
      ctx.ops.gemm(da, rows, true, dropped(ctx, ctx.stash.load(ctx, slot_, kept_)), false);
    }
    kept_ = {};
    Tensor dx = base_->backward(ctx, std::move(dy), std::move(into));
    if (dropout_.probability > 0) {
      const Tensor branch = ctx.temp(dx.shape(), "lora dx");
      ctx.ops.gemm(branch, dh, false, numbers_of(ctx, *a_), false);
      ctx.ops.dropout(branch, branch, dropout_, ctx.step);
      ctx.ops.add(dx, dx, branch);
    } else {
      ctx.ops.gemm(dx, dh, false, numbers_of(ctx, *a_), false, 1, 1);
    }
    grad_ready(ctx, *a_, std::move(da));
    grad_ready(ctx, *b_, std::move(db));
    return dx;
  }

 private:
  Tensor dropped(Ctx& ctx, Tensor x) const {
    if (!ctx.training || dropout_.probability == 0) return x;
    Tensor y = ctx.temp(x.shape(), "lora dropout");
    ctx.ops.dropout(y, x, dropout_, ctx.step);
    return y;
  }

  const std::shared_ptr<const double> scale_;  // that of its form
  const std::unique_ptr<Layer> base_;
  Param *a_ = nullptr, *b_ = nullptr;
  StashSlot slot_;
  Dropout dropout_;
  Kept kept_;
  Tensor h_;  // d(x) A^T (T, r)
};

class LoraForm final : public FrozenForm {
 public:
  explicit LoraForm(const LoraConfig& config)
      : FrozenForm(config.rest), config_(config), scale_(std::make_shared<double>(config.scale())) {}

  void change(const MethodConfig& method) override { *scale_ = method.lora.scale(); }

  void dense(Device& device, const Put& put) const override {  // W + s B A
    const double scale = *scale_;
    for (const Held& held : held_) {
      HostTensor sum{held.w->name, held.w->shape, to_host(device, *held.w)};
      const std::vector<double> a = to_host(device, held.a->value), b = to_host(device, held.b->value);
      const auto rank = static_cast<size_t>(held.a->shape[0]), columns = static_cast<size_t>(held.a->shape[1]);
      for (size_t place = 0; place < sum.values.size(); ++place)
        for (size_t k = 0; k < rank; ++k) sum.values[place] += scale * b[place / columns * rank + k] * a[k * columns + place % columns];
      put(sum, {held.w, held.a, held.b});
    }
  }

 protected:
  std::unique_ptr<Layer> factored(const MatrixSpec& spec, std::unique_ptr<Layer> base, LayerFactory& build) override {
    auto layer = std::make_unique<LoraLinear>(spec, config_, scale_, std::move(base), build);
    ParamSet& params = build.params();
    held_.push_back({params.find(spec.name + ".weight"), params.find(spec.name + kFactor), params.find(spec.name + ".lora.b")});
    return layer;
  }

 private:
  struct Held {
    const Param *w, *a, *b;
  };
  const LoraConfig config_;  // as the run began
  const std::shared_ptr<double> scale_;
  std::vector<Held> held_;
};

}  // namespace

std::vector<LoraFactors> lora_factors(ParamSet& params) {
  std::vector<LoraFactors> out;
  for (Param& param : params.params())
    if (param.name.ends_with(kFactor)) out.push_back({&param, params.find(param.name.substr(0, param.name.size() - 1) + "b")});
  return out;
}

std::shared_ptr<WeightForm> make_lora_form(const LoraConfig& config) { return std::make_shared<LoraForm>(config); }

}  // namespace comera
