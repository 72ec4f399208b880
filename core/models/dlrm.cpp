// The recommendation model (METHODS.md 20): a bottom MLP over the numeric columns, a table for each categorical column, their dot
// interaction and a top MLP. Letters: S examples, F vectors (the bottom MLP's and one a table), D their features.
#include <array>
#include <cmath>

#include "core/layers/blocks.h"
#include "core/layers/interaction.h"
#include "core/models/model.h"

namespace comera {
namespace {

std::string field_of(size_t table) { return "category" + std::to_string(table); }

// Linear layers, each with a ReLU behind it. Returns the features of the last one.
int64_t add_layers(Chain& chain, const std::string& name, int64_t in, const std::vector<int64_t>& widths, LayerFactory& factory) {
  for (size_t i = 0; i < widths.size(); ++i) {
    const std::string own = name + std::to_string(i);
    chain.add(factory.linear(own, in, widths[i], LinearKind::ffn_in));
    chain.add(std::make_unique<ActivationLayer>(Activation::relu, own + ".relu", widths[i], factory));
    in = widths[i];
  }
  return in;
}

class Dlrm final : public Model {
 public:
  Dlrm(const ModelConfig& model, LayerFactory& factory)
      : width_(model.dlrm.width), vectors_(static_cast<int64_t>(model.dlrm.tables.size()) + 1) {
    const DlrmConfig& config = model.dlrm;
    std::vector<int64_t> bottom = config.bottom;
    bottom.push_back(width_);
    add_layers(bottom_, "bottom", config.inputs, bottom, factory);
    for (size_t t = 0; t < config.tables.size(); ++t) {
      const int64_t rows = config.tables[t];
      tables_.push_back(factory.embedding({.name = "table" + std::to_string(t),
                                           .in = rows,
                                           .out = width_,
                                           .std = 1 / std::sqrt(3 * static_cast<double>(rows)),  // of numbers up to 1 / sqrt(rows)
                                           .dense = rows < config.min_tt_rows}));
    }
    interaction_ = std::make_unique<InteractionLayer>("interaction", vectors_, width_, config.itself, factory);
    const int64_t in = add_layers(top_, "top", width_ + DotPairs{vectors_, config.itself}.count(), config.top, factory);
    top_.add(factory.linear("head", in, model.outputs(), LinearKind::head));
  }

  Tensor forward(Ctx& ctx, const DeviceBatch& batch) override {
    Tensor z = ctx.temp({batch.examples, vectors_ * width_}, "vectors");
    {
      const Tensor x = bottom_.forward(ctx, batch.at("numbers"));
      copy(ctx, vector(z, 0), Mat(x));
    }
    for (size_t t = 0; t < tables_.size(); ++t) {
      const Tensor row = tables_[t]->forward(ctx, batch.at(field_of(t)));
      copy(ctx, vector(z, t + 1), Mat(row));
    }
    return top_.forward(ctx, interaction_->forward(ctx, std::move(z)));
  }

  void backward(Ctx& ctx, Tensor dlogits) override {
    const Tensor dz = interaction_->backward(ctx, top_.backward(ctx, std::move(dlogits)));
    const auto gradient = [&](size_t index) {
      Tensor dy = ctx.temp({dz.size(0), width_}, "dvector");
      copy(ctx, Mat(dy), vector(dz, index));
      return dy;
    };
    for (size_t t = 0; t < tables_.size(); ++t) tables_[t]->backward(ctx, gradient(t + 1));
    bottom_.backward(ctx, gradient(0));
  }

 private:
  Mat vector(const Tensor& z, size_t index) const { return Mat(z).columns(static_cast<int64_t>(index) * width_, width_); }
  static void copy(Ctx& ctx, const Mat& y, const Mat& x) { ctx.ops.run(op::Copies{std::array{CopyArgs{y, x}}}); }

  const int64_t width_, vectors_;
  Chain bottom_, top_;
  std::vector<std::unique_ptr<Layer>> tables_;
  std::unique_ptr<InteractionLayer> interaction_;
};

}  // namespace

std::unique_ptr<Model> DlrmConfig::make(const ModelConfig& config, LayerFactory& factory) { return std::make_unique<Dlrm>(config, factory); }

void DlrmConfig::batch_fields(const ModelConfig& config, BatchLayout& layout) {
  layout.add(
      {.name = "numbers", .dtype = DType::f32, .width = config.dlrm.inputs, .title = "numeric column", .setting = "model.dlrm.inputs"});
  for (size_t t = 0; t < config.dlrm.tables.size(); ++t)
    layout.add({.name = field_of(t),
                .high = config.dlrm.tables[t],
                .title = "category " + std::to_string(t + 1),
                .why = "a value would be out of range",
                .hint = "the data set needs a larger table in model.dlrm.tables"});
}

}  // namespace comera
