#include "core/layers/factory.h"

#include <algorithm>
#include <tuple>

#include "core/base/error.h"
#include "core/layers/blocks.h"
#include "core/layers/dense.h"

namespace comera {

// The layer of the first form that holds the matrix.
template <class Ask>
LayerFactory::Made LayerFactory::ask(const Ask& ask) {
  struct Back {
    size_t& asked;
    const size_t before;
    ~Back() { asked = before; }
  } back{asked_, asked_};
  while (asked_ < forms_.size()) {
    WeightForm& form = *forms_[asked_++];
    if (auto layer = ask(form)) return {std::move(layer), &form};
  }
  return {};
}

LayerFactory::Made LayerFactory::make_linear(const MatrixSpec& spec) {
  CHECK(spec.in >= 1 && spec.out >= 1, spec.name << ": " << spec.in << " to " << spec.out);
  Made made = ask([&](WeightForm& form) { return form.linear(spec, *this); });
  if (!made.layer) made.layer = make_dense_linear(spec, *this);
  return made;
}

std::unique_ptr<Layer> LayerFactory::linear(const MatrixSpec& spec) { return make_linear(spec).layer; }

std::unique_ptr<Layer> LayerFactory::embedding(const MatrixSpec& spec) {
  CHECK(spec.in >= 1 && spec.out >= 1, spec.name << ": " << spec.in << " x " << spec.out);
  Made made;
  if (!spec.dense) made = ask([&](WeightForm& form) { return form.table(spec, *this); });
  return made.layer ? std::move(made.layer) : make_dense_embedding(spec, *this);
}

std::unique_ptr<Layer> LayerFactory::tied_head(const MatrixSpec& spec, Layer& table) {
  for (const auto& form : forms_)
    if (auto head = form->head_of(table)) return head;
  Param* weight = params_.find(spec.name + ".weight");
  CHECK(weight && spec.tied, spec.name << " is not the table of a tied head");
  return make_tied_head(*weight, *this, spec.bias);
}

std::pair<std::unique_ptr<Fan>, WeightForm*> LayerFactory::make_fan(const std::vector<MatrixSpec>& specs) {
  std::vector<std::unique_ptr<Layer>> layers;
  std::vector<WeightForm*> forms;
  for (const MatrixSpec& spec : specs) {
    Made made = make_linear(spec);
    layers.push_back(std::move(made.layer));
    forms.push_back(made.form);
  }
  WeightForm* form = forms.front();
  if (form && std::all_of(forms.begin(), forms.end(), [&](const WeightForm* each) { return each == form; }))
    if (auto together = form->fan(layers)) return {std::move(together), form};
  return {std::make_unique<Fan>(std::move(layers)), nullptr};
}

std::unique_ptr<Fan> LayerFactory::fan(const std::vector<MatrixSpec>& specs) { return make_fan(specs).first; }

LayerFactory::Projections LayerFactory::attention(const std::vector<MatrixSpec>& queries_keys_values, const MatrixSpec& output,
                                                  const HeadSizes& sizes) {
  Projections made;
  WeightForm* form = nullptr;
  std::tie(made.queries_keys_values, form) = make_fan(queries_keys_values);
  Made last = make_linear(output);
  made.output = std::move(last.layer);
  if (form && form == last.form) made.thin = form->thin_attention(*made.queries_keys_values, *made.output, sizes);
  return made;
}

std::unique_ptr<Layer> LayerFactory::feed_forward(const MatrixSpec& in, Activation kind, const std::string& name, const MatrixSpec& out) {
  Made first = make_linear(in);
  auto between = std::make_unique<ActivationLayer>(kind, name, in.out, *this);
  Made last = make_linear(out);
  Layer &from = *first.layer, &to = *last.layer;
  auto chain = std::make_unique<Chain>();
  chain->add(std::move(first.layer));
  chain->add(std::move(between));
  chain->add(std::move(last.layer));
  std::unique_ptr<Layer> apart = std::move(chain);
  if (first.form && first.form == last.form)
    if (auto together = first.form->feed_forward(from, kind, to, apart)) return together;
  return apart;
}

std::unique_ptr<Layer> LayerFactory::gated_feed_forward(const MatrixSpec& gate, const MatrixSpec& up, Activation kind,
                                                        const std::string& name, const MatrixSpec& out) {
  auto [first, form] = make_fan({gate, up});
  Made last = make_linear(out);
  Fan& from = *first;
  Layer& to = *last.layer;
  std::unique_ptr<Layer> apart = std::make_unique<GatedFeedForward>(name, std::move(first), kind, std::move(last.layer), gate.out, *this);
  if (form && form == last.form)
    if (auto together = form->gated_feed_forward(from, kind, to, apart)) return together;
  return apart;
}

}  // namespace comera
