#include "core/train/rank_setting.h"

#include <algorithm>

#include "core/base/error.h"

namespace comera {
namespace {

struct ProjectionRank {
  const char *optimizer, *path;
  int64_t& (*value)(MethodConfig& method);
};
constexpr ProjectionRank kProjections[] = {
    {"galore", "method.galore.rank", [](MethodConfig& m) -> int64_t& { return m.galore.rank; }},
    {"coap", "method.coap.rank", [](MethodConfig& m) -> int64_t& { return m.coap.rank; }},
    {"apollo", "method.apollo.rank", [](MethodConfig& m) -> int64_t& { return m.apollo.rank; }},
    {"flora", "method.flora.rank", [](MethodConfig& m) -> int64_t& { return m.flora.rank; }},
};

const ProjectionRank* projection_of(const MethodConfig& method) {
  if (method.optimizer == "coap" && method.coap.rank_ratio > 0) return nullptr;
  for (const ProjectionRank& projection : kProjections)
    if (method.optimizer == projection.optimizer) return &projection;
  return nullptr;
}

int64_t starting_rank(const TTOptions& options) {
  return options.ranks.empty() ? options.rank : *std::max_element(options.ranks.begin(), options.ranks.end());
}

// Of a matrix where one is a tensor train, else of the table; 0: there is none.
int64_t starting_rank(const RunConfig& config) {
  int64_t of_matrices = 0, of_tables = 0;
  for (const ModelMatrix& matrix : matrices_of(config.model)) {
    const TTOptions& options = config.model.tt.*matrix.options;
    int64_t& largest = matrix.table ? of_tables : of_matrices;
    if (options.tensorise) largest = std::max(largest, starting_rank(options));
  }
  return of_matrices > 0 ? of_matrices : of_tables;
}

int64_t narrower_side(const ModelConfig& model) {
  int64_t side = 1;
  for (const ModelMatrix& matrix : matrices_of(model))
    if (!matrix.table) side = std::max(side, std::min(matrix.in, matrix.out));
  return side;
}

}  // namespace

std::optional<RankSetting> rank_setting(const RunConfig& config) {
  const int64_t side = narrower_side(config.model);
  const auto setting = [&](const char* path, int64_t rank) { return RankSetting{path, rank, std::max(rank, side)}; };
  if (config.tensorised())
    if (const int64_t rank = starting_rank(config); rank > 0) return setting("model.tt", rank);
  if (config.method.weights == "lora") return setting("method.lora.rank", config.method.lora.rank);
  MethodConfig method = config.method;
  if (const ProjectionRank* projection = projection_of(method)) return setting(projection->path, projection->value(method));
  return {};
}

RunConfig with_rank(const RunConfig& config, int64_t rank) {
  RunConfig changed = config;
  const std::optional<RankSetting> setting = rank_setting(config);
  CHECK(setting && rank >= 1, "rank " << rank);
  if (setting->path == "method.lora.rank") {
    changed.method.lora.rank = rank;
  } else if (setting->path == "model.tt") {
    const auto scaled = [&](int64_t value) { return std::max<int64_t>(1, value * rank / setting->configured); };
    TTKinds& kinds = changed.model.tt;
    for (TTOptions* options : {&kinds.attention, &kinds.ffn_in, &kinds.ffn_out, &kinds.classifier, &kinds.embedding}) {
      options->rank = scaled(options->rank);
      for (int64_t& bond : options->ranks) bond = std::min(bond, scaled(bond));
    }
  } else {
    projection_of(changed.method)->value(changed.method) = rank;
  }
  return changed;
}

}  // namespace comera
