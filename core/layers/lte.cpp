// LoRA-the-Explorer (METHODS.md 4.2). In training head h sees its own examples, an equal run of rows of x (heads_of_part()):
//   y_h = base(x_h) + s [(x_h A_h^T) B_h^T - (x_h A'_h^T) B'_h^T], s = alpha / r,
// where A', B' are the factors that the last merge added to W. Evaluation computes base(x) alone. Merges: core/methods/lte.cpp.
#include "core/layers/lte.h"

#include <cmath>

#include "core/config/method.h"
#include "core/layers/frozen.h"
#include "core/layers/grads.h"

namespace comera {
namespace {

constexpr const char* kLteFactor = ".lte.a";

class LteLinear final : public Layer {
 public:
  LteLinear(const MatrixSpec& spec, const LteConfig& config, std::unique_ptr<Layer> base, LayerFactory& build)
      : scale_(config.scale()), heads_(config.heads), base_(std::move(base)) {
    ParamSet& params = build.params();
    const Shape a{heads_, config.rank, spec.in}, b{heads_, spec.out, config.rank};
    const double scale = std::sqrt(static_cast<double>(spec.in) / static_cast<double>(config.rank));
    const auto add = [&](const std::string& name, const Shape& shape, Init init) {
      return &params.add(spec.name + name, shape, ParamKind::factor, ParamGroup::rest, init);
    };
    a_ = add(kLteFactor, a, {Init::orthonormal, scale});
    b_ = add(".lte.b", b, {Init::zeros});
    merged_a_ = add(".lte.merged_a", a, {Init::zeros});
    merged_b_ = add(".lte.merged_b", b, {Init::zeros});
    merged_a_->trainable = merged_b_->trainable = false;
    slot_ = build.stash().slot(params, spec.name.c_str(), spec.in, build.next_site());
  }

  Tensor forward(Ctx& ctx, Tensor x) override {
    if (!ctx.training) return base_->forward(ctx, std::move(x));
    here_ = heads_of_part(heads_, ctx.part, ctx.parts);
    const int64_t first = here_.first, count = here_.count;
    CHECK(x.size(0) % count == 0, x.size(0) << " rows for " << count << " heads");
    // Sampled rows would not say which head they are of.
    if (ctx.keeps()) kept_ = ctx.stash.keep(ctx, slot_, x, count == 1 ? Use::product : Use::other);
    Tensor h = ctx.temp({x.size(0), a_->shape[1]}, "lte x A^T"), merged = ctx.temp(h.shape(), "lte merged x A^T");
    for (int64_t head = first; head < first + count; ++head) {
      ctx.ops.gemm(part(h, head), part(x, head), false, head_of(a_->value, head), true);
      ctx.ops.gemm(part(merged, head), part(x, head), false, head_of(merged_a_->value, head), true);
    }
    Tensor y = base_->forward(ctx, std::move(x));
    for (int64_t head = first; head < first + count; ++head) {
      ctx.ops.gemm(part(y, head), part(h, head), false, head_of(b_->value, head), true, scale_, 1);
      ctx.ops.gemm(part(y, head), part(merged, head), false, head_of(merged_b_->value, head), true, -scale_, 1);
    }
    if (ctx.keeps()) h_ = std::move(h);
    return y;
  }

  Tensor backward(Ctx& ctx, Tensor dy, Tensor into) override {
    CHECK(kept_, "backward of an LTE layer without its forward");
    const int64_t first = here_.first, count = here_.count;
    Tensor da = grad_room(ctx, *a_), db = grad_room(ctx, *b_), dh = ctx.temp(h_.shape(), "lte dh"),
           dmerged = ctx.temp(h_.shape(), "lte merged dh");
    if (count < heads_)
      for (const Tensor& of_other_heads : {da, db}) ctx.ops.fill(of_other_heads, 0);
    for (int64_t head = first; head < first + count; ++head) {
      ctx.ops.gemm(head_of(db, head), part(dy, head), true, part(h_, head), false, scale_);
      ctx.ops.gemm(part(dh, head), part(dy, head), false, head_of(b_->value, head), false, scale_);
      ctx.ops.gemm(part(dmerged, head), part(dy, head), false, head_of(merged_b_->value, head), false, -scale_);
    }
    h_ = {};
    {
      const Tensor rows = rows_for(ctx, kept_, dh), x = ctx.stash.load(ctx, slot_, kept_);
      for (int64_t head = first; head < first + count; ++head)
        ctx.ops.gemm(head_of(da, head), part(rows, head), true, part(x, head), false);
    }
    kept_ = {};
    Tensor dx = base_->backward(ctx, std::move(dy), std::move(into));
    for (int64_t head = first; head < first + count; ++head) {
      ctx.ops.gemm(part(dx, head), part(dh, head), false, head_of(a_->value, head), false, 1, 1);
      ctx.ops.gemm(part(dx, head), part(dmerged, head), false, head_of(merged_a_->value, head), false, 1, 1);
    }
    grad_ready(ctx, *a_, std::move(da));
    grad_ready(ctx, *b_, std::move(db));
    return dx;
  }

 private:
  // The rows that a head sees.
  Tensor part(const Tensor& x, int64_t head) const {
    const int64_t rows = x.size(0) / here_.count;
    return x.rows((head - here_.first) * rows, rows);
  }

  const double scale_;
  const int64_t heads_;
  const std::unique_ptr<Layer> base_;
  Param *a_ = nullptr, *b_ = nullptr, *merged_a_ = nullptr, *merged_b_ = nullptr;
  StashSlot slot_;
  HeadsOfPart here_{0, 1};  // of the pass under way
  Kept kept_;
  Tensor h_;  // x_h A_h^T of these heads (T, r)
};

class LteForm final : public FrozenForm {
 public:
  explicit LteForm(const LteConfig& config) : FrozenForm(config.rest), config_(config) {}

  void dense(Device& device, const Put& put) const override {  // W, as evaluation uses it
    for (const auto& [w, parts] : held_) put({w->name, w->shape, to_host(device, w->value)}, parts);
  }

 protected:
  std::unique_ptr<Layer> factored(const MatrixSpec& spec, std::unique_ptr<Layer> base, LayerFactory& build) override {
    auto layer = std::make_unique<LteLinear>(spec, config_, std::move(base), build);
    ParamSet& params = build.params();
    const Param* w = params.find(spec.name + ".weight");
    held_.push_back({w, {w}});
    for (const char* name : {".lte.a", ".lte.b", ".lte.merged_a", ".lte.merged_b"})
      held_.back().parts.push_back(params.find(spec.name + name));
    return layer;
  }

 private:
  struct Held {
    const Param* w;
    std::vector<const Param*> parts;
  };
  const LteConfig config_;
  std::vector<Held> held_;
};

}  // namespace

std::vector<LteMatrix> lte_matrices(ParamSet& params) {
  std::vector<LteMatrix> out;
  for (Param& param : params.params()) {
    if (!param.name.ends_with(kLteFactor)) continue;
    const std::string name = param.name.substr(0, param.name.size() - std::string(kLteFactor).size());
    out.push_back({params.find(name + ".weight"), &param, params.find(name + ".lte.b"), params.find(name + ".lte.merged_a"),
                   params.find(name + ".lte.merged_b")});
  }
  return out;
}

WeightForms LteConfig::make_forms(const MethodConfig&, const TTKinds&) const { return {std::make_shared<LteForm>(*this)}; }

}  // namespace comera
