#include "core/models/models.h"

#include "core/base/error.h"

namespace comera {
namespace {

struct Row {
  const char* kind;
  std::unique_ptr<Model> (*make)(const ModelConfig&, LayerFactory&);
};
constexpr Row kModels[] = {
    {"encoder", make_encoder},
    {"mlp", make_mlp},
};

}  // namespace

std::unique_ptr<Model> build_model(const ModelConfig& config, LayerFactory& factory) {
  for (const Row& row : kModels)
    if (config.kind == row.kind) return row.make(config, factory);
  throw Error(ErrorCode::config, "no model kind '" + config.kind + "'", "", "use encoder or mlp");
}

}  // namespace comera
