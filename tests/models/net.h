// A whole model as the tests train it: batch on the device, one step = forward, loss, rank objective, backward, AdamW.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/layers/tt_linear.h"
#include "core/models/model.h"
#include "core/tasks/task.h"
#include "tests/layers/check_layer.h"
#include "tests/models/two_blocks.h"

namespace comera::model_test {

using namespace layer_test;

// Rows of text before they are laid out.
struct TextRows {
  std::vector<std::vector<int32_t>> ids, segments;
  std::vector<int32_t> labels;
};

inline TextRows some_rows(const std::vector<int64_t>& lengths, int64_t vocab, int64_t classes, uint64_t seed = 3) {
  std::mt19937_64 random(seed);
  TextRows rows;
  for (int64_t length : lengths) {
    rows.ids.emplace_back();
    rows.segments.emplace_back();
    for (int64_t t = 0; t < length; ++t) {
      rows.ids.back().push_back(static_cast<int32_t>(random() % static_cast<uint64_t>(vocab)));
      rows.segments.back().push_back(t > length / 2);
    }
    rows.labels.push_back(static_cast<int32_t>(random() % static_cast<uint64_t>(classes)));
  }
  return rows;
}

// Batch's layout (core/tensor/batch.h). `filler` is what tokens of nobody hold: 0 in a real batch.
struct TextBatch {
  std::vector<int32_t> ids, segments, positions, starts, lengths, labels;
  int64_t longest = 0;
};

inline TextBatch lay_out(const TextRows& rows, int64_t tokens, int64_t longest, bool packed, int32_t filler = 0) {
  TextBatch out;
  out.ids = out.segments = out.positions = std::vector<int32_t>(static_cast<size_t>(tokens), filler);
  out.longest = longest;
  int64_t at = 0;
  for (size_t s = 0; s < rows.ids.size(); ++s) {
    const int64_t length = static_cast<int64_t>(rows.ids[s].size()), start = packed ? at : static_cast<int64_t>(s) * longest;
    for (int64_t t = 0; t < length; ++t) {
      const size_t to = static_cast<size_t>(start + t), from = static_cast<size_t>(t);
      out.ids[to] = rows.ids[s][from];
      out.segments[to] = rows.segments[s][from];
      out.positions[to] = static_cast<int32_t>(t);
    }
    out.starts.push_back(length == 0 ? 0 : static_cast<int32_t>(start));
    out.lengths.push_back(static_cast<int32_t>(length));
    at += length;
  }
  out.labels = rows.labels;
  return out;
}
inline TextBatch padded(const TextRows& rows, int64_t longest) {
  return lay_out(rows, static_cast<int64_t>(rows.ids.size()) * longest, longest, false);
}

class Net {
 public:
  Net(const ModelConfig& config, bool tensorise, DType dtype = DType::f64, std::unique_ptr<Stash> stash = make_exact_stash(),
      const std::function<void(ParamSet&)>& prepare = {})
      : config(config), rig(dtype, std::move(stash)) {
    LayerFactory factory(rig.params, *rig.stash, tensorise ? WeightForms{make_tt_form(config.tt)} : WeightForms());
    model = build_model(this->config, factory);
    if (prepare) prepare(rig.params);
    rig.start();
    make_table();
  }

  ModelConfig config;
  Rig rig;
  std::unique_ptr<Model> model;
  DeviceBatch batch;
  RankTable table;

  void put(const TextBatch& text) {
    batch = {};
    batch["ids"] = rig.put_ids(text.ids);
    batch["segments"] = rig.put_ids(text.segments);
    batch["positions"] = rig.put_ids(text.positions);
    batch["starts"] = rig.put_ids(text.starts);
    batch["lengths"] = rig.put_ids(text.lengths);
    batch["labels"] = rig.put_ids(text.labels);
    batch.tokens = static_cast<int64_t>(text.ids.size());
    batch.examples = static_cast<int64_t>(text.labels.size());
    batch.longest = text.longest;
    rig.sequences = {batch["starts"], batch["lengths"], batch.longest};
  }
  void put_images(const Values& pixels, const std::vector<int32_t>& labels) {
    batch = {};
    batch.tokens = batch.examples = static_cast<int64_t>(labels.size());
    batch["pixels"] = rig.put(pixels, {batch.examples, static_cast<int64_t>(pixels.size()) / batch.examples});
    batch["labels"] = rig.put_ids(labels);
  }

  // Logits as a function of the parameters.
  Probe probe() {
    return {[this](Ctx& ctx) { return model->forward(ctx, batch); },
            [this](Ctx& ctx, Tensor dy) {
              model->backward(ctx, std::move(dy));
              return Tensor();
            }};
  }
  Values evaluate() {
    Values logits;
    rig.run(
        [&](Ctx& ctx) {
          const Tensor out = model->forward(ctx, batch);
          if (!ctx.ops.dry) logits = rig.get(out);
        },
        false);
    return logits;
  }

  // Gradients of the whole loss, and what the step reports (rig.results). Returns the logits.
  Values gradients() {
    Values logits;
    rig.run([&](Ctx& ctx) { grad_program(ctx, logits); });
    return logits;
  }
  // The same, then AdamW on every parameter, its step number one higher than before.
  void step() {
    if (moments_.empty()) reset_optimizer();
    ++rig.scalars.optimizer_step;
    Values logits;
    rig.run([&](Ctx& ctx) {
      grad_program(ctx, logits);
      size_t i = 0;
      for (Param& param : rig.params.params()) {
        ctx.ops.adam(param.value, param.grad, moments_[i].first, moments_[i].second, AdamRule(), param.group, ctx.step);
        ++i;
      }
    });
  }
  void reset_optimizer() {
    rig.scalars.optimizer_step = 0;
    const bool first = moments_.empty();
    size_t i = 0;
    for (Param& param : rig.params.params()) {
      const Values zeros(static_cast<size_t>(param.count()), 0.0);
      if (first) {
        moments_.emplace_back(rig.put(zeros, param.shape), rig.put(zeros, param.shape));
      } else {
        rig.set(moments_[i].first, zeros);
        rig.set(moments_[i].second, zeros);
      }
      ++i;
    }
  }

  Values value(const std::string& name) { return rig.get(rig.params.find(name)->value); }
  std::map<std::string, Values> all_gradients() {
    std::map<std::string, Values> out;
    for (Param& param : rig.params.params())
      if (param.has_grad()) out[param.name] = rig.get(param.grad);
    return out;
  }

 private:
  void grad_program(Ctx& ctx, Values& logits) {
    Tensor out = model->forward(ctx, batch);
    Tensor dlogits = ctx.temp(out.shape(), "dlogits");
    make_task(config)->loss(ctx, out, batch, dlogits);
    if (!ctx.ops.dry) logits = rig.get(out);
    out = {};
    if (table.ranks) {
      ctx.ops.rank_objective(ctx.results, table, ctx.step);
      ctx.ops.scale_by_ce_weight(dlogits, ctx.results);
    }
    ctx.arena.mark_turn();
    ctx.stash.forget();
    model->backward(ctx, std::move(dlogits));
    if (table.ranks) ctx.ops.rank_objective_backward(rig.params.rank_grads(), table, ctx.results, ctx.step);
  }

  void make_table() {
    if (rig.params.rank_layers().empty()) return;
    std::vector<int32_t> bond_begin{0}, layer_bond{0}, mode_sizes;
    for (const RankLayer& layer : rig.params.rank_layers()) {
      for (const Param* rank : layer.ranks) bond_begin.push_back(bond_begin.back() + static_cast<int32_t>(rank->count()));
      layer_bond.push_back(layer_bond.back() + static_cast<int32_t>(layer.ranks.size()));
      for (int64_t size : layer.mode_sizes) mode_sizes.push_back(static_cast<int32_t>(size));
    }
    const int64_t layers = static_cast<int64_t>(rig.params.rank_layers().size());
    table = {rig.params.ranks(), rig.put_ids(bond_begin), rig.put_ids(layer_bond), rig.put_ids(mode_sizes),
             rig.put(Values(static_cast<size_t>(layers), 1.0), {layers})};
  }

  std::vector<std::pair<Tensor, Tensor>> moments_;  // m, v
};

// Two encoder blocks small enough for finite differences.
inline ModelConfig toy_encoder(double dropout = 0) {
  ModelConfig config;
  config.classes = 3;
  config.length = 6;
  config.encoder = test::two_blocks(12, 16, 20, 8, dropout);
  for (TTOptions* options : {&config.tt.attention, &config.tt.ffn_in, &config.tt.ffn_out, &config.tt.classifier}) {
    options->cores = 2;
    options->rank = 3;
  }
  config.tt.embedding.cores = 3;
  config.tt.embedding.rank = 4;
  return config;
}

// Values as a trained model has them: rank vectors that are not all one (every fifth entry dead), norms and biases too.
inline void shake(Net& net, uint64_t seed = 1) {
  for (Param& param : net.rig.params.params()) {
    ++seed;
    if (param.kind == ParamKind::rank_vector) {
      Values values = noise_values(param.count(), seed, 0.5);
      for (size_t i = 0; i < values.size(); ++i) values[i] = i % 5 == 4 ? 0.004 : values[i] + 1;
      net.rig.set(param.value, values);
    } else if (param.kind == ParamKind::norm) {
      Values values = noise_values(param.count(), seed, 0.3), start = net.rig.get(param.value);
      for (size_t i = 0; i < values.size(); ++i) values[i] += start[i];
      net.rig.set(param.value, values);
    }
  }
}

}  // namespace comera::model_test
