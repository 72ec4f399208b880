// Two TT layers with a tanh between them on a fixed batch: the smallest thing whose ranks can be trained and cut.
#pragma once
#include "core/layers/factory.h"
#include "core/methods/rank_grow.h"
#include "core/methods/tables.h"
#include "tests/optim/harness.h"

namespace comera::test {

struct TinyNet {
  static constexpr int64_t kTokens = 9, kIn = 12, kHidden = 10, kOut = 6;

  explicit TinyNet(std::unique_ptr<Optimizer> made, DType dtype = DType::f64, const MethodConfig& method = {},
                   std::unique_ptr<Stash> keeper = std::make_unique<NoStash>())
      : rig(dtype), optimizer(std::move(made)), stash_(std::move(keeper)) {
    TTKinds kinds;
    kinds.attention.in_modes = {3, 4};
    kinds.attention.out_modes = {5, 2};
    kinds.attention.ranks = {1, 3, 6, 2, 1};
    kinds.ffn_out.in_modes = {2, 5};
    kinds.ffn_out.out_modes = {3, 2};
    kinds.ffn_out.ranks = {1, 2, 5, 2, 1};
    LayerFactory factory(params, *stash_, make_forms(method, kinds));
    first = factory.linear("a", kIn, kHidden, LinearKind::attention);
    second = factory.linear("b", kHidden, kOut, LinearKind::ffn_out);
    for (Param& param : params.params()) optimizer->attach(param);
    params.allocate(rig.memory, dtype);
    optimizer->allocate(*rig.device, rig.memory, dtype);
    params.initialise(*rig.device, 7);
    buffer_ = Buffer(rig.memory, 4096, Purpose::data);
    x = Tensor(buffer_.data(), {kTokens, kIn}, dtype);
    labels = Tensor(static_cast<char*>(buffer_.data()) + 2048, {kTokens}, DType::i32);
    from_host(*rig.device, x, random_values(x.count(), 11));
    Values classes;
    for (int64_t t = 0; t < kTokens; ++t) classes.push_back(static_cast<double>((t * 5) % kOut));
    from_host(*rig.device, labels, classes);
    make_table();
  }

  void make_table() {
    if (params.rank_layers().empty()) return;
    Values bond_begin{0}, layer_bond{0}, modes;
    for (const RankLayer& layer : params.rank_layers()) {
      for (const Param* rank : layer.ranks) bond_begin.push_back(bond_begin.back() + static_cast<double>(rank->count()));
      layer_bond.push_back(layer_bond.back() + static_cast<double>(layer.ranks.size()));
      for (int64_t size : layer.mode_sizes) modes.push_back(static_cast<double>(size));
    }
    table_ = Buffer(rig.memory, 4096, Purpose::data);
    int64_t offset = 0;
    const auto place = [&](const Values& values, DType dtype) {
      Tensor tensor(static_cast<char*>(table_.data()) + offset, {static_cast<int64_t>(values.size())}, dtype);
      from_host(*rig.device, tensor, values);
      offset += 1024;
      return tensor;
    };
    table = {params.ranks(), place(bond_begin, DType::i32), place(layer_bond, DType::i32), place(modes, DType::i32),
             place(Values(params.rank_layers().size(), 1.0), rig.dtype)};
  }

  Tensor forward(Ctx& ctx) {
    Tensor hidden = first->forward(ctx, x);
    activated_ = ctx.temp(hidden.shape(), "activated");
    ctx.ops.activation_forward(Activation::tanh, activated_, hidden);
    hidden = {};
    return second->forward(ctx, activated_);
  }

  // Forward, backward, and what a look at the step needs: logits, gradients in place, results.
  StepResults gradients(uint64_t t) {
    rig.begin(t);
    Ctx ctx = rig.ctx(*stash_);
    const bool ranks = !params.rank_layers().empty();
    rig.run([&] {
      Tensor y = forward(ctx);
      Tensor dy = ctx.temp(y.shape(), "dlogits");
      ctx.ops.cross_entropy(ctx.results, dy, {}, y, labels);
      if (ranks) {
        ctx.ops.rank_objective(ctx.results, table, ctx.step);
        ctx.ops.scale_by_ce_weight(dy, ctx.results);
      }
      if (!ctx.ops.dry) logits = to_host(*rig.device, y);
      y = {};
      ctx.stash.forget();
      Tensor dhidden = second->backward(ctx, std::move(dy));
      ctx.ops.activation_backward(Activation::tanh, dhidden, dhidden, activated_);
      activated_ = {};
      first->backward(ctx, std::move(dhidden));
      if (ranks) ctx.ops.rank_objective_backward(params.rank_grads(), table, ctx.results, ctx.step);
    });
    return rig.read_results();
  }
  void update() {
    Ctx ctx = rig.ctx();
    if (optimizer->refresh_due(rig.scalars.step)) rig.run([&] { optimizer->refresh(ctx, params.params(), rig.scalars.step); });
    rig.run([&] { optimizer->update(ctx, params.params()); });
  }
  void cut(const BondEntries& what) {
    Ctx ctx = rig.ctx();
    resize_bonds(*rig.device, rig.memory, params, *optimizer, ctx, what);
    make_table();
  }
  void grow(const BondEntries& bonds, uint64_t step) {
    Ctx ctx = rig.ctx();
    apply_growth(*rig.device, rig.memory, params, *optimizer, ctx, bonds, rig.scalars.threshold, 7, step);
    make_table();
  }
  void set(const std::string& name, const Values& values) { from_host(*rig.device, params.find(name)->value, values); }
  Values get(const std::string& name) { return to_host(*rig.device, params.find(name)->value); }

  Rig rig;
  ParamSet params;
  std::unique_ptr<Optimizer> optimizer;

 private:
  std::unique_ptr<Stash> stash_;

 public:
  std::unique_ptr<Layer> first, second;
  Tensor x, labels;
  RankTable table;
  Values logits;

 private:
  Buffer buffer_, table_;
  Tensor activated_;
};

}  // namespace comera::test
