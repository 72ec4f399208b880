#include "core/config/tt.h"

#include "core/config/model.h"

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
  v.group("attention", attention, {.title = "Attention", .when = models_with("attention")});
  v.group("ffn_in", ffn_in, {.title = "Feed-forward, first matrix", .when = models_with("ffn_in", "attention")});
  v.group("ffn_out", ffn_out, {.title = "Feed-forward, second matrix", .when = models_with("ffn_out")});
  v.group("classifier", classifier, {.title = "Classifier", .when = models_with("classifier")});
  v.group("convolution", convolution, {.title = "Convolution", .when = models_with("convolution")});
  v.group("embedding", embedding, {.title = "Embedding", .when = models_with("embedding")});
  When of_its_own = tasks_of_tokens();
  of_its_own.unless = {{"model.encoder.tied", {"true"}}, {"model.decoder.tied", {"true"}}};
  v.group("head", head, {.title = "Language model head", .when = of_its_own});
}

}  // namespace comera
