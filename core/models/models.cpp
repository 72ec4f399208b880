#include "core/models/model.h"

#include <algorithm>
#include <limits>

#include "core/base/error.h"
#include "core/layers/factory.h"

namespace comera {
namespace {

// A model, and around it what the forms of its matrices do for all layers together.
class FormedModel final : public Model {
 public:
  FormedModel(std::unique_ptr<Model> model, const WeightForms& forms) : model_(std::move(model)), forms_(forms) {}
  PassRows rows(const DeviceBatch& batch) const override { return model_->rows(batch); }
  Tensor forward(Ctx& ctx, const DeviceBatch& batch) override {
    for (const auto& form : forms_) form->prologue(ctx, rows(batch));
    return model_->forward(ctx, batch);
  }
  void backward(Ctx& ctx, Tensor dlogits) override {
    model_->backward(ctx, std::move(dlogits));
    for (const auto& form : forms_) form->epilogue(ctx);
  }

 private:
  const std::unique_ptr<Model> model_;
  const WeightForms forms_;
};

void with_chosen(const ModelConfig& config, auto&& f) {
  if (!config.with_chosen(f))
    throw Error(ErrorCode::config, "no model kind '" + config.kind + "'", "", "comera config show model.kind lists them");
}

}  // namespace

Activation activation_of(const std::string& name) {
  if (name == "gelu_tanh") return Activation::gelu_tanh;
  if (name == "silu") return Activation::silu;
  if (name == "relu") return Activation::relu;
  if (name == "tanh") return Activation::tanh;
  CHECK(name == "gelu", "activation '" << name << "'");
  return Activation::gelu;
}

std::unique_ptr<Model> build_model(const ModelConfig& config, LayerFactory& factory) {
  std::unique_ptr<Model> model;
  with_chosen(config, [&](const auto& own) { model = own.make(config, factory); });
  if (factory.forms().empty()) return model;
  for (const auto& form : factory.forms()) form->finish(factory.params());
  return std::make_unique<FormedModel>(std::move(model), factory.forms());
}

BatchLayout model_inputs(const ModelConfig& config) {
  BatchLayout layout;
  with_chosen(config, [&](const auto& own) { own.batch_fields(config, layout); });
  if (!layout.has_tokens()) return layout;
  layout.add({.name = "starts", .high = std::numeric_limits<int32_t>::max(), .collated = true, .title = "start of a sequence"});
  layout.add({.name = "lengths",
              .high = config.length + 1,
              .collated = true,
              .title = "length of a sequence",
              .hint = "the batch does not fit model.length"});
  return layout;
}

std::string model_kind_for(const BatchLayout& fields) {
  std::string first;
  const ModelConfig built_in;
  ModelConfig::each(built_in, [&](const auto& own) {
    BatchLayout reads;
    own.batch_fields(built_in, reads);
    if (first.empty() && std::all_of(reads.fields.begin(), reads.fields.end(),
                                     [&](const BatchField& field) { return field.collated || fields.find(field.name); }))
      first = own.info().choice.id;
  });
  return first;
}

}  // namespace comera
