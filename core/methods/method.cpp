#include "core/methods/method.h"

#include "core/base/error.h"
#include "core/layers/stash.h"
#include "core/optim/optimizer.h"

namespace comera {

void MesaConfig::fields(FieldVisitor& v) {
  v.field("groups", groups, {.help = "quantisation groups per activation; must divide every layer's input width", .range = {1, 4096}});
  v.field("decay", decay, {.help = "decay of the running range", .range = {0, 0.9999}});
}

void MethodConfig::fields(FieldVisitor& v) {
  v.field("name", name, {.help = "display name of the method"});
  v.field("weights", weights, {.help = "tt: tensor trains with trainable ranks; dense: full matrices", .choices = {"tt", "dense"}});
  v.field("stash", stash, {.help = "activation stash: exact, rounded to bf16, or quantised to int8", .choices = {"exact", "bf16", "int8"}});
  v.field("waist", waist, {.help = "recompute wide outputs of tensor trains in backward from x L, whose width is the rank; same results"});
  v.field(
      "checkpoint", checkpoint,
      {.help = "recompute activations of blocks in backward from every so many blocks' input; 0 = off; same results", .range = {0, 1000}});
  v.field("optimizer", optimizer, {.help = "optimizer", .choices = {"adamw", "adam8bit", "galore"}});
  v.group("adam", adam);
  v.group("adam8bit", adam8bit);
  v.group("galore", galore);
  v.group("mesa", mesa);
  v.group("comera", comera);
}

// GaLore's is another one, as its gradients are small where they are projected; with 8-bit moments it is bitsandbytes'.
double published_eps(const MethodConfig& config) { return config.optimizer == "galore" && !config.galore.eight_bit ? 1e-6 : 1e-8; }

std::unique_ptr<Optimizer> make_optimizer(const MethodConfig& config) {
  if (config.optimizer == "adam8bit") return make_adam8bit(config.adam, config.adam8bit);
  if (config.optimizer == "galore") return make_galore(config.adam, config.galore);
  CHECK(config.optimizer == "adamw", "optimizer '" << config.optimizer << "'");
  return make_adamw(config.adam);
}

namespace {
std::unique_ptr<Stash> stash_below(const MethodConfig& config) {
  if (config.stash == "bf16") return make_bf16_stash();
  if (config.stash == "int8") return make_int8_stash(config.mesa.groups, config.mesa.decay);
  CHECK(config.stash == "exact", "stash '" << config.stash << "'");
  return make_exact_stash();
}
}  // namespace

std::unique_ptr<Stash> make_stash(const MethodConfig& config) {
  auto below = stash_below(config);
  return config.waist ? make_waist_stash(std::move(below)) : std::move(below);
}

}  // namespace comera
