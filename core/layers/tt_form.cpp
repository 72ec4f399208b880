// The form of tensor trains: which matrices become tensor trains, and the merges and sweeps of all layers around a pass.
#include <algorithm>

#include "core/base/json.h"
#include "core/config/tt_shape.h"
#include "core/layers/factory.h"
#include "core/layers/tt_export.h"
#include "core/layers/tt_linear.h"
#include "core/layers/ttm_embedding.h"

namespace comera {
namespace {

const TTOptions* options_of(const TTKinds& kinds, LinearKind kind) {
  switch (kind) {
    case LinearKind::attention:
      return &kinds.attention;
    case LinearKind::ffn_in:
      return &kinds.ffn_in;
    case LinearKind::ffn_out:
      return &kinds.ffn_out;
    case LinearKind::convolution:
      return &kinds.convolution;
    case LinearKind::classifier:
      return &kinds.classifier;
    case LinearKind::head:
      return &kinds.head;
  }
  return nullptr;
}

// Layers that pass x and dx once where they are merged before the pass.
class TrainFan final : public Fan {
 public:
  TrainFan(std::vector<std::unique_ptr<Layer>> layers, const std::vector<TTLinear*>& same) : Fan(std::move(layers)), trains(same) {}

  TensorList forward(Ctx& ctx, Tensor x) override {
    if (trains.grouped()) return trains.forward(ctx, std::move(x));
    trains.drop();
    return Fan::forward(ctx, std::move(x));
  }
  Tensor backward(Ctx& ctx, TensorList dy, Tensor into) override {
    if (trains.waits()) return trains.backward(ctx, std::move(dy), std::move(into));
    return Fan::backward(ctx, std::move(dy), std::move(into));
  }

  TTFan trains;
};

}  // namespace

// The merges and sweeps of all layers are made together, each turn one list a kind of call: a handful of kernels instead of
// hundreds. The halves of all layers are there from the start of the step then, which at the turn to backward they are
// anyway, and S and V of all layers until its end.
class TTForm final : public WeightForm {
 public:
  TTForm(const TTKinds& kinds, double threshold, bool fuses) : kinds_(kinds), threshold_(threshold), fuses_(fuses) {}

  std::unique_ptr<Layer> linear(const MatrixSpec& spec, LayerFactory& build) override {
    const TTOptions* options = options_of(kinds_, spec.kind);
    if (!options || !options->tensorise || !spec.trainable) return nullptr;
    std::vector<Problem> problems;
    const TTShape shape = linear_shape(spec.in, spec.out, *options, spec.name.c_str(), problems);
    throw_problems(problems, spec.name);
    auto layer = std::make_unique<TTLinear>(spec.name, shape, spec.kind, build);
    if (!spec.bias) {
      Param& bias = *build.params().find(spec.name + ".bias");
      bias.trainable = false;
      bias.init = {Init::zeros};
    }
    linears_.push_back({layer.get(), spec.rows, spec.rows_each});
    trains_.push_back(&build.params().rank_layers().back());
    return layer;
  }

  std::unique_ptr<Layer> table(const MatrixSpec& spec, LayerFactory& build) override {
    if (!kinds_.embedding.tensorise || !spec.trainable) return nullptr;
    if (spec.tied) return tied_table(spec, build);
    std::vector<Problem> problems;
    const TTShape shape = table_shape(spec.in, spec.out, kinds_.embedding, spec.name.c_str(), problems);
    throw_problems(problems, spec.name);
    auto layer = std::make_unique<TTMEmbedding>(spec.name, shape, build, spec.std);
    tables_.push_back(layer.get());
    trains_.push_back(&build.params().rank_layers().back());
    return layer;
  }

  std::unique_ptr<Layer> head_of(Layer& table) override {
    auto* rows = dynamic_cast<TTRows*>(&table);
    return rows ? rows->take_head() : nullptr;
  }

  std::unique_ptr<Fan> fan(std::vector<std::unique_ptr<Layer>>& layers) override {
    std::vector<TTLinear*> same;
    for (const auto& layer : layers) same.push_back(static_cast<TTLinear*>(layer.get()));  // which linear() has made
    auto made = std::make_unique<TrainFan>(std::move(layers), same);
    fans_.push_back(&made->trains);
    return made;
  }

  std::unique_ptr<Layer> feed_forward(Layer& in, Activation kind, Layer& out, std::unique_ptr<Layer>& apart) override {
    if (!fuses_) return nullptr;
    return std::make_unique<TTFeedForward>(static_cast<TTLinear&>(in).alone(), kind, static_cast<TTLinear&>(out), std::move(apart));
  }

  std::unique_ptr<Layer> gated_feed_forward(Fan& gate_up, Activation kind, Layer& out, std::unique_ptr<Layer>& apart) override {
    if (!fuses_) return nullptr;
    return std::make_unique<TTFeedForward>(static_cast<TrainFan&>(gate_up).trains, kind, static_cast<TTLinear&>(out), std::move(apart));
  }

  std::unique_ptr<ThinAttention> thin_attention(Fan& queries_keys_values, Layer& output, const HeadSizes& sizes) override {
    if (!fuses_) return nullptr;
    auto made = std::make_unique<TTAttention>(static_cast<TrainFan&>(queries_keys_values).trains, static_cast<TTLinear&>(output), sizes);
    attentions_.push_back(made.get());
    return made;
  }

  void prologue(Ctx& ctx, const PassRows& rows) override;
  void epilogue(Ctx& ctx) override;

  void dense(Device& device, const Put& put) const override {
    for (const RankLayer* train : trains_) {
      HostTensor matrix = dense_weight(*train, device, threshold_);
      matrix.name += ".weight";
      std::vector<const Param*> parts(train->cores.begin(), train->cores.end());
      parts.insert(parts.end(), train->ranks.begin(), train->ranks.end());
      put(matrix, parts);
    }
  }

 private:
  struct Held {
    TTLinear* layer;
    Rows rows;
    int64_t rows_each;
  };
  std::unique_ptr<Layer> tied_table(const MatrixSpec& spec, LayerFactory& build);
  template <class Body>
  void each(const Body& body) const;
  template <class Body>
  void each_merged(const Body& body) const;
  void join(Ctx& ctx);
  void pass_attention_back(Ctx& ctx);

  const TTKinds kinds_;
  const double threshold_;
  const bool fuses_;
  std::vector<const RankLayer*> trains_;  // all it has made, in order
  std::vector<Held> linears_;             // linear layers; they belong to the model
  std::vector<TTMEmbedding*> tables_;     // theirs, too
  std::vector<TTFan*> fans_;              // of layers that read the same x
  std::vector<TTAttention*> attentions_;  // in the space of ranks
  std::vector<TTFan*> active_;            // of the step: a grouped layer is in one of them
  TTCalls calls_;
};

// Table and head are one matrix (rows, columns), with the modes of the head's linear layer.
std::unique_ptr<Layer> TTForm::tied_table(const MatrixSpec& spec, LayerFactory& build) {
  std::vector<Problem> problems;
  const TTShape shape = linear_shape(spec.out, spec.in, kinds_.embedding, spec.name.c_str(), problems);
  throw_problems(problems, spec.name);
  auto head = std::make_unique<TTLinear>(spec.name, shape, LinearKind::head, build, TTOrder::cheaper, spec.std);
  Param& bias = *build.params().find(spec.name + ".bias");
  bias.name = "head.bias";  // as beside a dense table
  bias.trainable = spec.bias;
  bias.init = {Init::zeros};
  trains_.push_back(&build.params().rank_layers().back());
  return std::make_unique<TTRows>(std::move(head));
}

// body(layer) for each layer that is in the group now.
template <class Body>
void TTForm::each(const Body& body) const {
  for (const Held& held : linears_)
    if (held.layer->grouped_) body(*held.layer);
}

template <class Body>
void TTForm::each_merged(const Body& body) const {
  each([&](TTLinear& layer) { body(layer.merged_, layer.matrix_, TTFan::width(layer.matrix_.middle_rank())); });
}

void TTForm::prologue(Ctx& ctx, const PassRows& rows) {
  if (trains_.empty()) return;
  active_.reserve(linears_.size());  // a steady step allocates nothing
  calls_.forget();                   // of a step that was broken off
  for (TTFan* fan : fans_) fan->drop();
  active_.clear();
  for (const Held& held : linears_) {
    TTLinear& layer = *held.layer;
    layer.matrix_.read_ranks();
    layer.grouped_ = ctx.ops.batches_small_calls() && !layer.is_sequential(ctx, rows.of(held.rows) * held.rows_each);
  }
  for (TTMEmbedding* table : tables_) {
    table->grouped_ = ctx.ops.batches_small_calls();
    if (table->grouped_) table->mask(ctx, calls_);
  }
  const size_t turns = TTMerged::merge_all(ctx, calls_, [&](const auto& body) { each_merged(body); });
  if (turns > 0) join(ctx);
  for (TTAttention* attention : attentions_) attention->join(ctx, calls_);
  calls_.make(ctx);
}

// Each layer's half goes to the fan that it is computed by.
void TTForm::join(Ctx& ctx) {
  for (TTFan* fan : fans_)
    if (fan->grouped()) active_.push_back(fan);
  const size_t shared = active_.size();
  each([&](TTLinear& layer) {
    const auto has = [&](const TTFan* fan) { return fan->has(layer); };
    const auto end = active_.begin() + static_cast<std::ptrdiff_t>(shared);
    if (std::none_of(active_.begin(), end, has)) active_.push_back(layer.alone_.get());
  });
  int64_t height = 0;
  for (const TTFan* fan : active_) height = std::max(height, fan->edge_height());
  const Tensor edge = TTFan::edge(ctx, height);
  for (TTFan* fan : active_) fan->join(ctx, calls_, edge);
  calls_.make(ctx);
}

void TTForm::pass_attention_back(Ctx& ctx) {
  size_t turns = 0;
  for (const TTAttention* attention : attentions_) turns = std::max(turns, attention->turns());
  for (size_t turn = 0; turn < turns; ++turn) {
    for (TTAttention* attention : attentions_) attention->pass_back(ctx, turn, calls_);
    calls_.make(ctx);
  }
  for (TTAttention* attention : attentions_) attention->end(ctx);
}

void TTForm::epilogue(Ctx& ctx) {
  if (trains_.empty()) return;
  pass_attention_back(ctx);
  for (TTFan* fan : active_) fan->begin_sweeps(ctx, calls_);
  const auto each = [&](const auto& body) { each_merged(body); };
  TTMerged::sweep_all(ctx, calls_, each);
  for (TTMEmbedding* table : tables_)
    if (table->grouped_) table->mask_gradients(ctx, calls_);
  TTMerged::hand_over_all(ctx, calls_, each);
  for (TTMEmbedding* table : tables_)
    if (table->grouped_) table->hand_over(ctx);
}

// A fused block has no wide input of which rows could be sampled.
WeightForms TTWeights::make_forms(const MethodConfig& method, const TTKinds& kinds) const {
  const bool fuses = method.waist && method.wta.ratio >= 1;
  return {make_tt_form(kinds, method.comera.train_ranks ? method.comera.threshold : -1, fuses)};
}

std::shared_ptr<WeightForm> make_tt_form(const TTKinds& kinds, double threshold, bool fuses) {
  return std::make_shared<TTForm>(kinds, threshold, fuses);
}

}  // namespace comera
