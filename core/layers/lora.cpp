// Low-rank adaptation (METHODS.md 4.1): y = base(x) + s (d(x) A^T) B^T with a frozen base, A (r, I), B (O, r), s = alpha / r and
// dropout d; of a table the rows of A^T at ids stand for d(x) A^T. Letters: T tokens, I and O the sizes of the matrix, of a table rows
// and columns.
#include "core/layers/lora.h"

#include <cmath>

#include "core/config/method.h"
#include "core/layers/frozen.h"
#include "core/layers/grads.h"
#include "core/layers/weights.h"

namespace comera {
namespace {

constexpr const char *kLoraFactor = ".lora.a", *kOther = ".lora.b";

class LoraLinear final : public Layer {
 public:
  LoraLinear(const MatrixSpec& spec, const LoraConfig& config, std::shared_ptr<const double> scale, std::unique_ptr<Layer> base,
             LayerFactory& build)
      : scale_(std::move(scale)), base_(std::move(base)) {
    ParamSet& params = build.params();
    a_ = &params.add(spec.name + kLoraFactor, {config.rank, spec.in}, ParamKind::factor, ParamGroup::rest,
                     {Init::uniform, 1 / std::sqrt(static_cast<double>(spec.in))});
    b_ = &params.add(spec.name + kOther, {spec.out, config.rank}, ParamKind::factor, ParamGroup::rest, {Init::zeros});
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

// A table looks up rows; A has its columns, so it is turned for a lookup and its gradient is turned back.
class LoraTable final : public Layer {
 public:
  LoraTable(const MatrixSpec& spec, const LoraConfig& config, std::shared_ptr<const double> scale, std::unique_ptr<Layer> base,
            LayerFactory& build)
      : scale_(std::move(scale)), base_(std::move(base)) {
    ParamSet& params = build.params();
    a_ = &params.add(spec.name + kLoraFactor, {config.rank, spec.in}, ParamKind::factor, ParamGroup::rest, {Init::zeros});
    b_ = &params.add(spec.name + kOther, {spec.out, config.rank}, ParamKind::factor, ParamGroup::rest, {Init::normal, 1});
  }

  Tensor forward(Ctx& ctx, Tensor ids) override {
    const int64_t rank = a_->shape[0];
    Tensor h = ctx.temp({ids.size(0), rank}, "lora rows of A^T");
    {
      const Tensor turned = ctx.temp({a_->shape[1], rank}, "lora A^T");
      ctx.ops.permute(turned, numbers_of(ctx, *a_), {1, 0});
      ctx.ops.gather_rows(h, turned, ids, false);
    }
    if (ctx.keeps()) ids_ = ids;
    Tensor y = base_->forward(ctx, std::move(ids));
    ctx.ops.gemm(y, h, false, numbers_of(ctx, *b_), true, *scale_, 1);
    if (ctx.keeps()) h_ = std::move(h);
    return y;
  }

  Tensor backward(Ctx& ctx, Tensor dy, Tensor) override {
    CHECK(ids_, "backward of a LoRA table without its forward");
    Tensor da = grad_room(ctx, *a_), db = grad_room(ctx, *b_);
    ctx.ops.gemm(db, dy, true, h_, false, *scale_);
    {
      const Tensor dh = ctx.temp(h_.shape(), "lora dh"), turned = ctx.temp({a_->shape[1], a_->shape[0]}, "lora dA^T");
      ctx.ops.gemm(dh, dy, false, numbers_of(ctx, *b_), false, *scale_);
      ctx.ops.scatter_rows(turned, dh, ids_);
      ctx.ops.permute(da, turned, {1, 0});
    }
    h_ = ids_ = {};
    grad_ready(ctx, *a_, std::move(da));
    grad_ready(ctx, *b_, std::move(db));
    return {};
  }

 private:
  const std::shared_ptr<const double> scale_;
  const std::unique_ptr<Layer> base_;  // without gradient
  Param *a_ = nullptr, *b_ = nullptr;
  Tensor ids_, h_;  // (T); the rows of A^T at ids (T, r)
};

class LoraForm final : public FrozenForm {
 public:
  explicit LoraForm(const LoraConfig& config)
      : FrozenForm(config.rest), config_(config), scale_(std::make_shared<double>(config.scale())) {}

  void change(const MethodConfig& method) override { *scale_ = method.lora.scale(); }

  std::unique_ptr<Layer> table(const MatrixSpec& spec, LayerFactory& build) override {
    if (!config_.tables) return nullptr;
    auto layer = std::make_unique<LoraTable>(spec, config_, scale_, frozen_table(spec, build), build);
    hold(spec, build.params(), true);
    return layer;
  }

  void dense(Device& device, const Put& put) const override {  // W + s B A; of a table W + s (B A)^T
    const double scale = *scale_;
    for (const Held& held : held_) {
      HostTensor sum{held.w->name, held.w->shape, to_host(device, *held.w)};
      const std::vector<double> a = to_host(device, held.a->value), b = to_host(device, held.b->value);
      const auto rank = static_cast<size_t>(held.a->shape[0]), in = static_cast<size_t>(held.a->shape[1]);
      const size_t columns = static_cast<size_t>(held.w->shape[1]);
      for (size_t place = 0; place < sum.values.size(); ++place) {
        const size_t row = place / columns, column = place % columns, of_a = held.table ? row : column, of_b = held.table ? column : row;
        for (size_t k = 0; k < rank; ++k) sum.values[place] += scale * b[of_b * rank + k] * a[k * in + of_a];
      }
      put(sum, {held.w, held.a, held.b});
    }
  }

 protected:
  std::unique_ptr<Layer> factored(const MatrixSpec& spec, std::unique_ptr<Layer> base, LayerFactory& build) override {
    auto layer = std::make_unique<LoraLinear>(spec, config_, scale_, std::move(base), build);
    hold(spec, build.params(), false);
    return layer;
  }

 private:
  struct Held {
    const Param *w, *a, *b;
    bool table;
  };
  void hold(const MatrixSpec& spec, ParamSet& params, bool table) {
    held_.push_back({params.find(spec.name + ".weight"), params.find(spec.name + kLoraFactor), params.find(spec.name + kOther), table});
  }

  const LoraConfig config_;  // as the run began
  const std::shared_ptr<double> scale_;
  std::vector<Held> held_;
};

}  // namespace

std::vector<LoraFactors> lora_factors(ParamSet& params) {
  std::vector<LoraFactors> out;
  for (Param& param : params.params())
    if (param.name.ends_with(kLoraFactor)) out.push_back({&param, params.find(param.name.substr(0, param.name.size() - 1) + "b")});
  return out;
}

WeightForms LoraConfig::make_forms(const MethodConfig&, const TTKinds&) const { return {std::make_shared<LoraForm>(*this)}; }

}  // namespace comera
