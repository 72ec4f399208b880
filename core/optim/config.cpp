#include "core/optim/config.h"

namespace comera {

// Betas, eps, rank and scale are arguments of a captured step, so they are fixed when a run starts; decay is read from
// the step block and may change.
void AdamConfig::fields(FieldVisitor& v) {
  v.field("beta1", beta1, {.help = "decay of the first moment", .range = {0, 0.99999}});
  v.field("beta2", beta2, {.help = "decay of the second moment", .range = {0, 0.9999999}});
  v.field(
      "eps", eps,
      {.help = "added to the square root of the second moment; where not set 1e-8, for GaLore with 32-bit moments 1e-6", .range = {0, 1}});
  v.field("weight_decay", weight_decay, {.help = "decoupled weight decay, times the learning rate", .range = {0, 10}, .live = Live::yes});
}

void Adam8bitConfig::fields(FieldVisitor& v) {
  v.field("min_size", min_size, {.help = "smaller tensors keep 32-bit moments (entries)", .range = {0, 1e12}});
  v.field("embeddings", embeddings, {.help = "also quantise the moments of embeddings"});
}

void GaloreConfig::fields(FieldVisitor& v) {
  v.field("rank", rank, {.help = "projection rank", .range = {1, 65536}});
  v.field("gap", gap, {.help = "steps between refreshes of the projection", .range = {1, 1e9}});
  v.field("scale", scale, {.help = "factor on the update after it is projected back", .range = {0, 1000}});
  v.field("eight_bit", eight_bit, {.help = "8-bit moments of the projected gradient"});
}

}  // namespace comera
