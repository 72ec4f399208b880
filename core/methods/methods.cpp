#include "core/methods/methods.h"

#include "core/base/error.h"
#include "core/base/json.h"

namespace comera {
namespace {

MethodConfig point(const char* name, const char* weights, const char* stash, const char* optimizer) {
  MethodConfig config;
  config.name = name;
  config.weights = weights;
  config.stash = stash;
  config.optimizer = optimizer;
  config.adam.eps = published_eps(config);
  return config;
}

MethodConfig with_sampled_rows(MethodConfig config) {
  config.wta.ratio = 0.3;
  return config;
}

// GaLore or COAP around another rule than Adam. Adafactor inside has the first moment with which COAP refines.
MethodConfig around(const char* rule, MethodConfig config) {
  (config.optimizer == "galore" ? config.galore.rule : config.coap.rule) = rule;
  if (std::string(rule).starts_with("adafactor")) config.adafactor.beta1 = 0.9;
  config.adam.eps = published_eps(config);
  return config;
}

MethodConfig during_backward(MethodConfig config) {
  config.update = "backward";
  return config;
}

MethodConfig mini(MethodConfig config) {
  config.apollo.rank = 1;
  config.apollo.scaling = "tensor";
  config.apollo.alpha = 128;
  return config;
}

}  // namespace

// To add a method: one line here. A new value of an axis: core/README.md.
const std::vector<MethodRecipe>& methods() {
  static const std::vector<MethodRecipe> table = {
      {"adamw", "AdamW", "dense weights, AdamW: the baseline", point("AdamW", "dense", "exact", "adamw")},
      {"comera", "CoMERA", "tensor trains with trainable ranks: smaller weights, gradients and moments",
       point("CoMERA", "tt", "exact", "adamw")},
      {"adam8bit", "8-bit Adam", "dense weights, 8-bit moments", point("8-bit Adam", "dense", "exact", "adam8bit")},
      {"galore", "GaLore", "dense weights, moments in a low-rank projection of the gradient", point("GaLore", "dense", "exact", "galore")},
      {"coap", "COAP", "dense weights, moments in a low-rank projection that is refined step by step",
       point("COAP", "dense", "exact", "coap")},
      {"apollo", "APOLLO", "dense weights, gradients scaled per channel by moments of a random projection",
       point("APOLLO", "dense", "exact", "apollo")},
      {"apollo_mini", "APOLLO-Mini", "dense weights, one gradient scale per matrix from a random projection of rank 1",
       mini(point("APOLLO-Mini", "dense", "exact", "apollo"))},
      {"flora", "Flora", "dense weights, second moments of rows and columns, momentum in a random projection",
       point("Flora", "dense", "exact", "flora")},
      {"adafactor", "Adafactor", "dense weights, second moments of rows and columns only",
       point("Adafactor", "dense", "exact", "adafactor")},
      {"adalomo", "AdaLomo", "dense weights, updated during backward: no gradients are kept",
       during_backward(point("AdaLomo", "dense", "exact", "adalomo"))},
      {"came", "CAME", "dense weights, first moments and the confidence in them by rows and columns",
       point("CAME", "dense", "exact", "came")},
      {"mesa", "Mesa", "dense weights, int8 activation stash", point("Mesa", "dense", "int8", "adamw")},
      {"wta", "WTA-CRS", "dense weights, weight gradients from sampled rows of activations",
       with_sampled_rows(point("WTA-CRS", "dense", "exact", "adamw"))},
      {"lora", "LoRA", "frozen dense weights, each with a trained product of two thin factors", point("LoRA", "lora", "exact", "adamw")},
      {"comera+adam8bit", "CoMERA + 8-bit Adam", "tensor trains with trainable ranks, 8-bit moments",
       point("CoMERA + 8-bit Adam", "tt", "exact", "adam8bit")},
      {"galore+adam8bit", "GaLore + 8-bit Adam", "dense weights, 8-bit moments in a low-rank projection of the gradient",
       around("adam8bit", point("GaLore + 8-bit Adam", "dense", "exact", "galore"))},
      {"galore+adafactor", "GaLore + Adafactor", "dense weights, Adafactor in a low-rank projection of the gradient",
       around("adafactor", point("GaLore + Adafactor", "dense", "exact", "galore"))},
      {"coap+adam8bit", "COAP + 8-bit Adam", "dense weights, 8-bit moments in a low-rank projection that is refined step by step",
       around("adam8bit", point("COAP + 8-bit Adam", "dense", "exact", "coap"))},
      {"coap+adafactor", "COAP + Adafactor", "dense weights, Adafactor in a low-rank projection that is refined step by step",
       around("adafactor", point("COAP + Adafactor", "dense", "exact", "coap"))},
      {"coap+adafactor8bit", "COAP + 8-bit Adafactor",
       "dense weights, 8-bit Adafactor in a low-rank projection that is refined step by step",
       around("adafactor8bit", point("COAP + 8-bit Adafactor", "dense", "exact", "coap"))},
      {"comera+mesa", "CoMERA + Mesa", "tensor trains with trainable ranks, int8 activation stash",
       point("CoMERA + Mesa", "tt", "int8", "adamw")},
  };
  return table;
}

const MethodRecipe& find_method(const std::string& id) {
  std::vector<std::string> ids;
  std::string all;
  for (const MethodRecipe& recipe : methods()) {
    if (recipe.id == id) return recipe;
    ids.push_back(recipe.id);
    all += (all.empty() ? "" : ", ") + ids.back();
  }
  const std::string near = nearest_name(id, ids);
  throw Error(ErrorCode::not_found, "no method '" + id + "'", "the methods are " + all, near.empty() ? "" : "did you mean '" + near + "'?");
}

}  // namespace comera
