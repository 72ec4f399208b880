#include "core/layers/factory.h"

#include "core/base/json.h"
#include "core/config/tt_shape.h"
#include "core/layers/dense.h"
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
    case LinearKind::classifier:
      return &kinds.classifier;
    case LinearKind::head:
      break;
  }
  return nullptr;
}
}  // namespace

std::unique_ptr<Layer> LayerFactory::linear(const std::string& name, int64_t in, int64_t out, LinearKind kind) {
  CHECK(in >= 1 && out >= 1, name << ": " << in << " to " << out);
  const TTOptions* options = tt_ ? options_of(*tt_, kind) : nullptr;
  if (!options || !options->tensorise) return make_dense_linear(name, in, out, kind, *this);
  std::vector<Problem> problems;
  const TTShape shape = linear_shape(in, out, *options, name.c_str(), problems);
  throw_problems(problems, name);
  auto layer = std::make_unique<TTLinear>(name, shape, kind, *this);
  tt_linears_.push_back(layer.get());
  return layer;
}

std::unique_ptr<Layer> LayerFactory::embedding(const std::string& name, int64_t rows, int64_t columns) {
  CHECK(rows >= 1 && columns >= 1, name << ": " << rows << " x " << columns);
  if (!tt_ || !tt_->embedding.tensorise) return make_dense_embedding(name, rows, columns, *this);
  std::vector<Problem> problems;
  const TTShape shape = table_shape(rows, columns, tt_->embedding, name.c_str(), problems);
  throw_problems(problems, name);
  return std::make_unique<TTMEmbedding>(name, shape, *this);
}

}  // namespace comera
