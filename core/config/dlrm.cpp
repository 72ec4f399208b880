#include <utility>

#include "core/config/model.h"
#include "core/config/model_parts.h"

namespace comera {

ModelInfo DlrmConfig::info() const {
  return {.choice = {"dlrm", "Recommendation (DLRM)",
                     "Tables of categorical columns, a bottom and a top MLP, dot interaction, for click-through rates."},
          .reads = Reads::clicks,
          .special = true,
          .tables = tables};
}

void DlrmConfig::fields(FieldVisitor& v) {
  v.field("inputs", inputs, {.title = "Numeric columns", .help = "numeric columns of an example", .range = {1, 1 << 20}});
  v.field("tables", tables,
          {.title = "Table rows",
           .help = "rows of each category's table; values for which no row is left share rows",
           .range = {1, 2147483647}});
  v.field("width", width, {.title = "Embedding width", .help = "features of a table row", .range = {1, 65536}});
  v.field("bottom", bottom, {.title = "Bottom MLP", .help = "widths of the hidden layers over the numeric columns", .range = {1, 1 << 20}});
  v.field("top", top, {.title = "Top MLP", .help = "widths of the hidden layers behind the interaction", .range = {1, 1 << 20}});
  v.field("itself", itself, {.title = "Self-interaction", .help = "the interaction includes the product of each vector with itself"});
  v.field("min_tt_rows", min_tt_rows,
          {.title = "Minimum rows of a TT table",
           .help = "tables with fewer rows stay dense",
           .range = {1, 2147483647},
           .when = {"method.weights", {"tt"}}});
}

bool DlrmConfig::check(const ModelConfig& model, Problems& problems) {
  const DlrmConfig& c = model.dlrm;
  bool sizes = problems.at_least(c.inputs, 1, "dlrm.inputs");
  sizes &= problems.at_least(c.width, 1, "dlrm.width");
  for (const int64_t rows : c.tables) sizes &= problems.at_least(rows, 1, "dlrm.tables");
  for (const int64_t features : c.bottom) sizes &= problems.at_least(features, 1, "dlrm.bottom");
  for (const int64_t features : c.top) sizes &= problems.at_least(features, 1, "dlrm.top");
  return sizes;
}

std::vector<ModelMatrix> DlrmConfig::matrices(const ModelConfig& model) {
  const DlrmConfig& c = model.dlrm;
  std::vector<ModelMatrix> all;
  const auto add = [&](int64_t in, const std::vector<int64_t>& widths) {
    for (const int64_t out : widths) all.push_back({"ffn_in", std::exchange(in, out), out, &TTKinds::ffn_in});
    return in;
  };
  all.push_back({"ffn_in", add(c.inputs, c.bottom), c.width, &TTKinds::ffn_in});
  const auto vectors = static_cast<int64_t>(c.tables.size()) + 1;
  add(c.width + vectors * (c.itself ? vectors + 1 : vectors - 1) / 2, c.top);
  for (const int64_t rows : c.tables)
    if (rows >= c.min_tt_rows) all.push_back({"embedding", rows, c.width, &TTKinds::embedding, true});
  return all;
}

}  // namespace comera
