#include "core/train/rank_setting.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/layers/lora.h"
#include "core/optim/projector.h"
#include "core/optim/refresh_schedule.h"

namespace comera {
namespace {

const char* const kTTRanks = "model.tt";

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

// The setting that the weights, else the optimizer, has its rank in; "" = neither has one, or COAP's is a ratio.
std::string rank_path(const RunConfig& config) {
  const MethodConfig& method = config.method;
  for (const std::string& group : {method.weights, method.optimizer}) {
    if (group == "tt" && starting_rank(config) > 0) return kTTRanks;
    if (group == "coap" && method.coap.rank_ratio > 0) return "";
    if (const std::string path = "method." + group + ".rank"; find_setting(path)) return path;
  }
  return "";
}

int64_t narrower_side(const ModelConfig& model) {
  int64_t side = 1;
  for (const ModelMatrix& matrix : matrices_of(model))
    if (!matrix.table) side = std::max(side, std::min(matrix.in, matrix.out));
  return side;
}

}  // namespace

std::optional<RankSetting> rank_setting(const RunConfig& config) {
  const std::string path = rank_path(config);
  if (path.empty()) return {};
  RunConfig copy = config;
  const int64_t rank = path == kTTRanks ? starting_rank(config) : std::get<int64_t>(field_values(fields_of(copy)).at(path));
  return RankSetting{path, rank, std::max(rank, narrower_side(config.model))};
}

int64_t rank_of_matrix(const RunConfig& config, int64_t rows, int64_t columns) {
  const MethodConfig& method = config.method;
  const int64_t shorter = std::min(rows, columns);
  const bool factors = method.chosen_weights().factors;
  if (!factors && method.optimizer == "coap" && method.coap.rank_ratio > 0)
    return std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(shorter) / method.coap.rank_ratio));
  const std::optional<RankSetting> setting = rank_setting(config);
  if (!setting || setting->path == kTTRanks) return 0;
  return factors ? setting->configured : std::min(setting->configured, shorter);
}

RunConfig with_rank(const RunConfig& config, int64_t rank) {
  RunConfig changed = config;
  const std::optional<RankSetting> setting = rank_setting(config);
  CHECK(setting && rank >= 1, "rank " << rank);
  if (setting->path == kTTRanks) {
    const auto scaled = [&](int64_t value) { return std::max<int64_t>(1, value * rank / setting->configured); };
    TTKinds& kinds = changed.model.tt;
    for (TTOptions* options :
         {&kinds.attention, &kinds.ffn_in, &kinds.ffn_out, &kinds.classifier, &kinds.convolution, &kinds.embedding, &kinds.head}) {
      options->rank = scaled(options->rank);
      for (int64_t& bond : options->ranks) bond = std::min(bond, scaled(bond));
    }
  } else {
    set_field_values(fields_of(changed), {{setting->path, rank}});
  }
  return changed;
}

std::vector<int64_t> last_refreshes(const MethodConfig& method, int64_t matrices, int64_t step) {
  if (method.weights != "dense" || (method.optimizer == "q-galore" && method.q_galore.lazy)) return {};
  MethodConfig copy = method;
  const FieldValues values = field_values(fields_of(copy));
  const auto gap = values.find(method.optimizer + ".gap"), refresh = values.find(method.optimizer + ".refresh");
  if (gap == values.end() || refresh == values.end()) return {};
  const RefreshSchedule schedule(matrices, std::get<int64_t>(gap->second), std::get<std::string>(refresh->second) == "together");
  std::vector<int64_t> steps;
  for (int64_t matrix = 0; matrix < matrices; ++matrix)
    steps.push_back(static_cast<int64_t>(schedule.last(matrix, static_cast<uint64_t>(step))));
  return steps;
}

std::vector<RankedMatrix> ranked_matrices(ParamSet& params, const MethodConfig& method) {
  std::vector<RankedMatrix> out;
  for (const auto& [a, b] : lora_factors(params)) out.push_back({a->name.substr(0, a->name.find(".lora.")), b->shape[0], a->shape[1]});
  if (method.weights != "dense" || !find_setting("method." + method.optimizer + ".rank")) return out;
  for (const Param& param : params.params())
    if (is_projected(param)) out.push_back({param.name, param.shape[0], param.shape[1]});
  return out;
}

}  // namespace comera
