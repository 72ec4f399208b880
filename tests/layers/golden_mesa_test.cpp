// The int8 stash against the published code (Mesa): running ranges, codes, and the gradients that they give. The published
// random draws are in the files and take the place of ours: all else, the range, the pair that is kept with the codes and
// what is restored from them, is the stash's own.
//
// Two faults of the published code are not ours, and the files hold the right values, too: codes above 255 wrap there
// (dx_clamped), and a second forward pass changes the range of the codes that are kept already (dx_right_pair).
#include "tests/layers/golden.h"

#include "core/layers/blocks.h"
#include "core/ops/quant_math.h"
#include "tests/layers/check_layer.h"

namespace comera::layer_test {
namespace {

// The int8 stash with draws that are given: (groups, rows, columns of the group).
class FedStash final : public Stash {
 public:
  FedStash(int64_t groups, double decay) : groups_(groups), decay_(decay) {}
  Values draws;

  StashSlot slot(ParamSet& params, const char* owner, int64_t features, uint32_t site) override {
    EXPECT_EQ(features % groups_, 0);
    return {site, &params.add_state(std::string(owner) + ".range", {groups_, 2}, -1).value, groups_};
  }
  Kept keep(Ctx& ctx, const StashSlot& slot, const Tensor& x, Use) override {
    Kept kept;
    kept.codes = ctx.temp(x.shape(), DType::u8, "int8 codes");
    kept.used = ctx.temp({groups_, 2}, "int8 range");
    ctx.ops.int8_keep(kept.codes, kept.used, *slot.range, x, groups_, decay_, slot.site, ctx.step);
    if (!ctx.ops.dry) code(static_cast<uint8_t*>(kept.codes.raw()), kept.used.data<double>(), x);
    return kept;
  }
  Tensor load(Ctx& ctx, const StashSlot&, const Kept& kept) override {
    Tensor x = ctx.temp(kept.codes.shape(), "int8 restored");
    ctx.ops.int8_load(x, kept.codes, kept.used, groups_);
    return x;
  }

 private:
  // On the CPU device, whose memory is the host's.
  void code(uint8_t* codes, const double* pair, const Tensor& x) const {
    const int64_t rows = x.size(0), columns = x.size(1), part = columns / groups_;
    ASSERT_EQ(static_cast<int64_t>(draws.size()), x.count());
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 0; column < columns; ++column) {
        const int64_t group = column / part, place = row * columns + column;
        const double draw = draws[static_cast<size_t>((group * rows + row) * part + column % part)];
        codes[place] = static_cast<uint8_t>(stash_code(x.data<double>()[place], pair[2 * group + 1], 255 / pair[2 * group], draw));
      }
  }

  const int64_t groups_;
  const double decay_;
};

struct Mesa {
  explicit Mesa(const std::string& path)
      : file(path),
        layer(golden_setting<std::string>(file, "layer")),
        groups(golden_setting<int64_t>(file, "groups")),
        rig(DType::f64, std::make_unique<FedStash>(groups, golden_setting<double>(file, "decay"))),
        factory(rig.params, *rig.stash) {
    EXPECT_EQ(golden_setting<int64_t>(file, "levels"), 256);
  }
  FedStash& stash() { return static_cast<FedStash&>(*rig.stash); }
  int64_t calls(const char* name = "dy") const { return file.entry(name).shape[0]; }
  Values of_call(const std::string& name, int64_t call) const {
    const Values all = file.values(name);
    const int64_t count = static_cast<int64_t>(all.size()) / file.entry(name).shape[0];
    return {all.begin() + call * count, all.begin() + (call + 1) * count};
  }
  void expect_close(const Values& ours, const Values& published, const std::string& what) {
    const double error = relative_difference(ours, published);
    worst = std::max(worst, error);
    EXPECT_LE(error, kGoldenDouble) << file.path() << " " << what;
  }
  // The range of a slot after a call; `which` is "", "0" or "1" as in the names of the file.
  void expect_range(const Values& range, int64_t call, const std::string& which = "") {
    const Values alpha = of_call("alpha" + which, call), beta = of_call("beta" + which, call);
    Values published;
    for (size_t group = 0; group < alpha.size(); ++group) published.insert(published.end(), {alpha[group], beta[group]});
    expect_close(range, published, "range" + which + ", call " + std::to_string(call));
  }
  // x (sequences, heads * columns of a head) of a call kept and restored, without a layer. The published draws go through a
  // group head by head, (groups, heads of the group, sequences, columns of a head).
  Values restored(const StashSlot& slot, const Values& x, int64_t heads, int64_t of_head, int64_t call, const std::string& which) {
    const int64_t columns = heads * of_head, sequences = static_cast<int64_t>(x.size()) / columns, per_group = heads / groups;
    const Values published = of_call("noise" + which, call);
    Values& draws = stash().draws = published;
    for (int64_t group = 0; group < groups; ++group)
      for (int64_t head = 0; head < per_group; ++head)
        for (int64_t s = 0; s < sequences; ++s)
          for (int64_t i = 0; i < of_head; ++i)
            draws[static_cast<size_t>(((group * sequences + s) * per_group + head) * of_head + i)] =
                published[static_cast<size_t>(((group * per_group + head) * sequences + s) * of_head + i)];
    const Tensor input = rig.put(x, {static_cast<int64_t>(x.size()) / columns, columns});
    Values out;
    rig.run([&](Ctx& ctx) {
      const Kept kept = ctx.stash.keep(ctx, slot, input);
      const Tensor back = ctx.stash.load(ctx, slot, kept);
      if (!ctx.ops.dry) out = rig.get(back);
    });
    expect_range(rig.get(*slot.range), call, which);
    return out;
  }

  const SafetensorsFile file;
  const std::string layer;
  const int64_t groups;
  Rig rig;
  LayerFactory factory;
  double worst = 0;
};

// A layer norm without a branch beside it.
class PlainNorm final : public Layer {
 public:
  PlainNorm(int64_t features, double eps, LayerFactory& factory) : norm_("l", features, eps, factory) {}
  Tensor forward(Ctx& ctx, Tensor x) override { return norm_.forward(ctx, std::move(x), {}, {}); }
  Tensor backward(Ctx& ctx, Tensor dy, Tensor) override { return norm_.backward(ctx, std::move(dy), false, {}).first; }

 private:
  Norm norm_;
};

// Layers of ours, call by call.
void compare_layer(Mesa& mesa) {
  const SafetensorsFile& file = mesa.file;
  Rig& rig = mesa.rig;
  const int64_t features = file.entry("x").shape.back();
  std::unique_ptr<Layer> layer;
  std::vector<std::pair<std::string, std::string>> parameters;  // name here, name in the file
  if (mesa.layer == "gelu") {
    layer = std::make_unique<ActivationLayer>(Activation::gelu, "l", features, mesa.factory);
  } else if (mesa.layer == "layernorm") {
    layer = std::make_unique<PlainNorm>(features, golden_setting<double>(file, "eps"), mesa.factory);
    parameters = {{"l.gamma", "weight"}, {"l.beta", "bias"}};
  } else {
    layer = mesa.factory.linear("l", features, file.entry("weight").shape[0], LinearKind::attention);
    parameters = {{"l.weight", "weight"}, {"l.bias", "bias"}};
  }
  rig.start();
  for (const auto& [ours, theirs] : parameters) rig.set(rig.params.find(ours)->value, file.values(theirs));
  for (int64_t call = 0; call < mesa.calls(); ++call) {
    mesa.stash().draws = mesa.of_call("noise", call);
    const Values x = mesa.of_call("x", call);
    const Pass run = pass(rig, *layer, rig.put(x, {static_cast<int64_t>(x.size()) / features, features}), mesa.of_call("dy", call));
    const std::string at = ", call " + std::to_string(call);
    mesa.expect_close(run.y, mesa.of_call("y", call), "y" + at);
    mesa.expect_close(run.dx, mesa.of_call(file.has("dx_clamped") ? "dx_clamped" : "dx", call), "dx" + at);
    for (const auto& [ours, theirs] : parameters)
      mesa.expect_close(run.grads(rig, ours), mesa.of_call("d" + theirs, call), "d" + theirs + at);
    mesa.expect_range(rig.get(rig.params.states().front().value), call);
  }
}

// Where attention keeps something, (sequences, heads, rows, columns), groups are groups of heads. The formulas of backward are
// written out here; attention itself is one op.
void compare_softmax(Mesa& mesa) {
  const std::vector<int64_t>& shape = mesa.file.entry("y").shape;
  const int64_t heads = shape[2], of_head = shape[3] * shape[4], row = shape[4];
  const StashSlot slot = mesa.factory.stash().slot(mesa.rig.params, "probabilities", heads * of_head, 1);
  mesa.rig.start();
  for (int64_t call = 0; call < mesa.calls(); ++call) {
    const Values p = mesa.restored(slot, mesa.of_call("y", call), heads, of_head, call, "1"), dy = mesa.of_call("dy", call);
    Values dx(p.size());
    for (size_t begin = 0; begin < p.size(); begin += static_cast<size_t>(row)) {
      double sum = 0;
      for (size_t i = begin; i < begin + static_cast<size_t>(row); ++i) sum += p[i] * dy[i];
      for (size_t i = begin; i < begin + static_cast<size_t>(row); ++i) dx[i] = p[i] * (dy[i] - sum);
    }
    mesa.expect_close(dx, mesa.of_call("dx", call), "dx, call " + std::to_string(call));
  }
}

void compare_matmul(Mesa& mesa) {
  const std::vector<int64_t>&left = mesa.file.entry("x0").shape, &right = mesa.file.entry("x1").shape;
  const int64_t heads = left[2], rows = left[3], inner = left[4], columns = right[4];
  const StashSlot slots[] = {mesa.factory.stash().slot(mesa.rig.params, "left", heads * rows * inner, 1),
                             mesa.factory.stash().slot(mesa.rig.params, "right", heads * inner * columns, 2)};
  mesa.rig.start();
  for (int64_t call = 0; call < mesa.calls(); ++call) {
    const Values a = mesa.restored(slots[0], mesa.of_call("x0", call), heads, rows * inner, call, "0");
    const Values b = mesa.restored(slots[1], mesa.of_call("x1", call), heads, inner * columns, call, "1");
    const Values dy = mesa.of_call("dy", call);
    Values da(a.size()), db(b.size());
    for (int64_t each = 0; each < left[1] * heads; ++each)
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t k = 0; k < inner; ++k)
          for (int64_t j = 0; j < columns; ++j) {
            const auto at_a = static_cast<size_t>((each * rows + i) * inner + k),
                       at_b = static_cast<size_t>((each * inner + k) * columns + j);
            const double of_dy = dy[static_cast<size_t>((each * rows + i) * columns + j)];
            da[at_a] += of_dy * b[at_b];
            db[at_b] += a[at_a] * of_dy;
          }
    mesa.expect_close(da, mesa.of_call("dx0", call), "dx0, call " + std::to_string(call));
    mesa.expect_close(db, mesa.of_call("dx1", call), "dx1, call " + std::to_string(call));
  }
}

// Two forward passes, then both backward: each restores with the pair that its own codes were made with.
void compare_shared_range(Mesa& mesa) {
  const int64_t features = mesa.file.entry("x").shape.back();
  const StashSlot slot = mesa.factory.stash().slot(mesa.rig.params, "shared", features, 1);
  Rig& rig = mesa.rig;
  rig.start();
  std::vector<Tensor> x;
  for (int64_t call = 0; call < mesa.calls(); ++call) {
    const Values values = mesa.of_call("x", call);
    x.push_back(rig.put(values, {static_cast<int64_t>(values.size()) / features, features}));
  }
  std::vector<Values> dx(x.size());
  rig.run([&](Ctx& ctx) {
    std::vector<Kept> kept;
    for (size_t call = 0; call < x.size(); ++call) {
      mesa.stash().draws = mesa.of_call("noise", static_cast<int64_t>(call));
      kept.push_back(ctx.stash.keep(ctx, slot, x[call]));
      if (!ctx.ops.dry) mesa.expect_range(rig.get(*slot.range), static_cast<int64_t>(call));
    }
    for (size_t call = 0; call < x.size(); ++call) {
      const Tensor restored = ctx.stash.load(ctx, slot, kept[call]);
      Tensor gradient = ctx.temp(restored.shape(), "dx");
      if (!ctx.ops.dry) rig.set(gradient, mesa.of_call("dy", static_cast<int64_t>(call)));
      ctx.ops.activation_backward(Activation::gelu, gradient, gradient, restored);
      if (!ctx.ops.dry) dx[call] = rig.get(gradient);
    }
  });
  for (size_t call = 0; call < x.size(); ++call)
    mesa.expect_close(dx[call], mesa.of_call("dx_right_pair", static_cast<int64_t>(call)), "dx, call " + std::to_string(call));
}

TEST(Golden, Int8Stash) {
  for (const std::string& path : golden_files("mesa")) {
    SCOPED_TRACE(path);
    Mesa mesa(path);
    if (golden_setting<std::string>(mesa.file, "method") == "mesa_shared") {
      compare_shared_range(mesa);
    } else if (mesa.layer == "softmax") {
      compare_softmax(mesa);
    } else if (mesa.layer == "matmul") {
      compare_matmul(mesa);
    } else {
      ASSERT_TRUE(mesa.layer == "gelu" || mesa.layer == "layernorm" || mesa.layer == "linear") << mesa.layer;
      compare_layer(mesa);
    }
    report_golden(path, mesa.worst);
  }
}

}  // namespace
}  // namespace comera::layer_test
