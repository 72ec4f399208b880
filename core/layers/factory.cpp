#include "core/layers/factory.h"

#include "core/base/json.h"
#include "core/layers/dense.h"
#include "core/layers/tt_linear.h"
#include "core/layers/tt_shape.h"
#include "core/layers/ttm_embedding.h"

namespace comera {

void TTOptions::fields(FieldVisitor& v) {
  v.field("tensorise", tensorise, {.title = "As a tensor train", .help = "hold this kind of matrix as a tensor train"});
  v.field("in_modes", in_modes,
          {.title = "Input modes", .help = "modes of the input side (table: of the rows); empty = chosen", .range = {1, 1e9}});
  v.field("out_modes", out_modes,
          {.title = "Output modes", .help = "modes of the output side (table: of the columns); empty = chosen", .range = {1, 1e9}});
  v.field("ranks", ranks,
          {.title = "Initial rank per bond", .help = "ranks r_0 to r_K, 1 at both ends; empty = from rank", .range = {1, 1e6}});
  v.field("rank", rank,
          {.title = "Initial rank",
           .help = "rank of every bond where the modes allow it",
           .range = {1, 1e6},
           .usual = {1, 128},
           .scale = Scale::log});
  v.field("cores", cores, {.title = "Modes per side", .help = "modes a side (table: cores) when modes are chosen", .range = {1, 5}});
}

void TTKinds::fields(FieldVisitor& v) {
  const When encoder = {"model.kind", {"encoder"}};
  v.group("attention", attention, {.title = "Attention", .when = encoder});
  v.group("ffn_in", ffn_in, {.title = "Feed-forward, first matrix"});
  v.group("ffn_out", ffn_out, {.title = "Feed-forward, second matrix", .when = encoder});
  v.group("classifier", classifier, {.title = "Classifier", .when = encoder});
  v.group("embedding", embedding, {.title = "Embedding", .when = encoder});
}

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
