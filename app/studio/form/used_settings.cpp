#include "app/studio/form/used_settings.h"

namespace comera::studio {
namespace {

// Rule for a setting or a group. Settings without a rule always have an effect.
struct Rule {
  const char* path;
  const char* (*unused)(const RunConfig& config);
};

const char* needs(bool fits, const char* why) { return fits ? nullptr : why; }
const char* of_tt(const RunConfig& c) { return needs(c.tensorised(), "weights are dense"); }
const char* of_encoders(const RunConfig& c) { return needs(c.model.kind == "encoder", "kind is mlp"); }

constexpr Rule kRules[] = {
    {"model.encoder", of_encoders},
    {"model.mlp", [](const RunConfig& c) { return needs(c.model.kind == "mlp", "kind is encoder"); }},
    {"model.tt", of_tt},
    {"model.tt.attention", of_encoders},
    {"model.tt.ffn_out", of_encoders},
    {"model.tt.classifier", of_encoders},
    {"model.tt.embedding", of_encoders},
    {"method.adam8bit", [](const RunConfig& c) { return needs(c.method.optimizer == "adam8bit", "optimizer is not adam8bit"); }},
    {"method.galore", [](const RunConfig& c) { return needs(c.method.optimizer == "galore", "optimizer is not galore"); }},
    {"method.mesa", [](const RunConfig& c) { return needs(c.method.stash == "int8", "stash is not int8"); }},
    {"method.comera", of_tt},
    {"train.lr_core", of_tt},
    {"train.lr_rank", of_tt},
    {"train.lr_rank_late", of_tt},
};

}  // namespace

const char* unused_setting(const RunConfig& config, const std::string& path) {
  for (const Rule& rule : kRules) {
    const std::string group = rule.path;
    if (path != group && !path.starts_with(group + ".")) continue;
    if (const char* why = rule.unused(config)) return why;
  }
  return nullptr;
}

}  // namespace comera::studio
