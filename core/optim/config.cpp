#include "core/optim/config.h"

namespace comera {

// Betas, eps, rank and scale are arguments of a captured step, so they are fixed when a run starts; decay is read from
// the step block and may change.
void AdamConfig::fields(FieldVisitor& v) {
  v.field("beta1", beta1, {.help = "share of the first moment that stays each step", .range = {0, 0.99999}});
  v.field("beta2", beta2, {.help = "share of the second moment that stays each step", .range = {0, 0.9999999}});
  v.field("eps", eps, {.help = "added to the root of the second moment; 1e-8, GaLore 1e-6", .range = {0, 1}});
  v.field("weight_decay", weight_decay,
          {.help = "share of a weight lost each step, times the learning rate", .range = {0, 10}, .live = Live::yes});
}

void Adam8bitConfig::fields(FieldVisitor& v) {
  v.field("min_size", min_size, {.help = "tensors with fewer entries keep plain moments", .range = {0, 1e12}});
  v.field("embeddings", embeddings, {.help = "moments of embedding tables in 8 bits too"});
}

void GaloreConfig::fields(FieldVisitor& v) {
  v.field("rank", rank, {.help = "directions a gradient is projected to", .range = {1, 65536}});
  v.field("gap", gap, {.help = "steps between two refreshes of the projection", .range = {1, 1e9}});
  v.field("scale", scale, {.help = "factor on the projected-back update", .range = {0, 1000}});
  v.field("eight_bit", eight_bit, {.help = "moments of the projected gradient in 8 bits"});
}

}  // namespace comera
