#include "core/config/method.h"

#include <algorithm>

namespace comera {

WeightsInfo TTWeights::info() const {
  constexpr const char* kAbout = "Tensor trains whose ranks are trained.";
  return {.choice = {"tt", "Tensor trains", kAbout}, .name = Choice{"comera", "CoMERA", kAbout}};
}

WeightsInfo DenseWeights::info() const { return {.choice = {"dense", "Dense", "Dense matrices, for comparison."}}; }

void MesaConfig::fields(FieldVisitor& v) {
  v.field("groups", groups,
          {.title = "Groups", .help = "quantisation groups per activation; must divide every layer's input width", .range = {1, 4096}});
  v.field("decay", decay,
          {.title = "Decay",
           .help = "decay of the running range; 0: the range of each batch",
           .more = "As published it is 0.9. Then a range lags behind activations that grow, and the largest ones are clamped.",
           .range = {0, 0.9999}});
}

void WtaConfig::fields(FieldVisitor& v) {
  v.field(
      "ratio", ratio,
      {.title = "Kept rows",
       .help = "share of the rows of each matrix's input that are kept for its gradient; 1 = all",
       .more = "The most important rows are kept and some of the others drawn, weighted so that gradients are right on average. At least "
               "10 rows are kept.",
       .range = {0.001, 1}});
  v.field("adaptive", adaptive,
          {.title = "Adaptive split", .help = "choose the number of certain rows that gives the least variance, at each step"});
  v.field("certain", certain,
          {.title = "Certain rows",
           .help = "share of the kept rows that are the largest ones (deterministic); the others are drawn",
           .range = {0, 0.99},
           .when = {"method.wta.adaptive", {"false"}}});
}

int64_t WtaConfig::rows_of(int64_t rows) const {
  return std::min(rows, std::max<int64_t>(10, static_cast<int64_t>(ratio * static_cast<double>(rows))));
}
int64_t WtaConfig::certain_of(int64_t kept) const {
  return adaptive ? -1 : std::min(kept - 1, static_cast<int64_t>(certain * static_cast<double>(kept)));
}

WeightsInfo LoraConfig::info() const {
  const Choice choice = {"lora", "LoRA", "Frozen dense matrices, each with a trained product of two thin factors."};
  return {.choice = choice, .name = choice, .factors = true};
}

void LoraConfig::fields(FieldVisitor& v) {
  v.field("rank", rank,
          {.title = "Rank of the factors",
           .symbol = "r",
           .help = "rank of the trained product of each frozen matrix",
           .more = "A change takes effect at the next step. The largest components stay, with their moments; alpha changes with the rank.",
           .range = {1, 65536},
           .usual = {1, 256},
           .scale = Scale::log,
           .live = Live::replans});
  v.field("alpha", alpha, {.title = "Scale (alpha)", .help = "the trained product is scaled by alpha / rank", .range = {1e-6, 1e6}});
  v.field("dropout", dropout,
          {.title = "Dropout", .help = "dropout of the input of the factors; the frozen matrix sees all of it", .range = {0, 0.95}});
  v.field("rest", rest,
          {.title = "Train the rest",
           .help = "also train embeddings, norms and the biases of frozen matrices",
           .more = "Off: as published. The layers behind the blocks are trained in any case."});
  v.field("tables", tables,
          {.title = "Factors for embeddings",
           .help = "token embeddings have factors, too, and stay frozen",
           .more = "At the start they change nothing. Positions and segments have none; \"Train the rest\" trains those."});
}

WeightsInfo LteConfig::info() const {
  return {.choice = {"lte", "LTE",
                     "As LoRA with heads, each of which sees its own examples; from time to time their mean is merged into the matrices. "
                     "Validation uses the merged matrices alone."},
          .name = Choice{"lte", "LTE", "Frozen dense matrices, each with heads of thin factors that are merged into it from time to time."},
          .factors = true,
          .shares = heads};
}

void LteConfig::fields(FieldVisitor& v) {
  v.field("heads", heads,
          {.title = "Heads",
           .symbol = "H",
           .help = "heads of factors per matrix; each is trained on its own equal share of the examples of a batch",
           .more = "Must divide the batch. Each micro-batch is of some of the heads, as they are many, or of one. More than one head needs "
                   "batches that are not packed, and keeps all rows of inputs, whatever the row sampling. Several processes train "
                   "heads of their own and send them at merges alone, if their number divides that of the heads, the optimizer is "
                   "AdamW, LOMO or Adagrad, and gradients are not clipped.",
           .range = {1, 4096}});
  v.field("rank", rank,
          {.title = "Rank of the factors", .symbol = "r", .help = "rank of the trained product of each head", .range = {1, 65536}});
  v.field("alpha", alpha, {.title = "Scale (alpha)", .help = "products of the heads are scaled by alpha / rank", .range = {1e-6, 1e6}});
  v.field("merge_every", merge_every,
          {.title = "Merge every",
           .unit = "steps",
           .help = "steps between two merges: the mean of the heads is added to the matrices, which evaluations, exports and predictions "
                   "use alone",
           .more = "Training since the last merge shows in no validation loss. Choose a number that divides the steps of the run and those "
                   "between evaluations.",
           .range = {1, 1e9}});
  v.field("reset", reset,
          {.title = "Reset after a merge", .help = "after each merge draw A again and set B to 0; moments of the optimizer are kept"});
  v.field("rest", rest,
          {.title = "Train the rest",
           .help = "also train embeddings, norms and the biases of frozen matrices",
           .more = "Off: as published. The layers behind the blocks are trained in any case."});
}

void MethodConfig::take_shaping(const MethodConfig& from) {
  const double decay = adam.weight_decay;
  const bool of_vectors = adam.decay_vectors;
  static_cast<OptimizerSettings&>(*this) = from;
  adam.weight_decay = decay;
  adam.decay_vectors = of_vectors;
  lora = from.lora;
}

void MethodConfig::fields(FieldVisitor& v) {
  std::vector<Choice> choices;
  each_weights(*this, [&](const auto& own) { choices.push_back(own.info().choice); });
  v.field("name", name, {.title = "Method name", .help = "display name of the method"});
  v.field(
      "weights", weights,
      {.title = "Weights",
       .help = "tt: tensor trains with trainable ranks; dense: full matrices; lora: frozen full matrices with trained low-rank factors; "
               "lte: the same in heads that are merged into the matrices",
       .choices = choices});
  v.field("weight_format", weight_format,
          {.title = "Weight format",
           .help = "format of stored weights: as computed, or bf16 or int8 without a second copy; vectors stay as they are",
           .more = "Updates are computed in full and rounded up or down at random, so that small ones count in the mean.",
           .choices = {{"full", "As computed", "Weights have the precision of training."},
                       {"bf16", "bf16", "Matrices, cores and tables take 2 bytes an entry."},
                       {"int8", "int8",
                        "Matrices inside blocks take 1 byte an entry, and two numbers for every 256 entries; frozen ones of LoRA, too."}}});
  v.field("table_gradients", table_gradients,
          {.title = "Gradients of tables",
           .help = "rows of dense tables that have a gradient and a step: all, or the rows in the batch",
           .more = "Gradients of all rows remain where the optimizer keeps numbers of whole columns or blocks of a table (Adafactor, CAME, "
                   "8-bit moments of tables), and with updates during backward, micro-batches or bf16 weights.",
           .choices = {
               {"dense", "All rows", "Every row has a gradient and a step."},
               {"rows", "Rows of the batch", "Only rows in the batch have a gradient; other rows keep weight and moments (SparseAdam)."}}});
  v.field("stash", stash,
          {.title = "Activation stash",
           .help = "activation stash: exact, rounded to bf16, or quantised to int8",
           .choices = {{"exact", "Exact", "Stores activations unchanged for backward."},
                       {"bf16", "bf16", "Stores activations in 16 bits: half the memory, rounding error of at most 0.4 %."},
                       {"int8", "int8", "Stores activations as 8-bit codes: least memory, small error."}}});
  v.field("waist", waist,
          {.title = "Recompute wide outputs",
           .help = "recompute wide outputs of tensor trains in backward from x L, whose width is the rank; same results up to rounding",
           .more = "Feed-forward blocks and heads of attention are computed in the width of the rank where that is less work."});
  v.field("checkpoint", checkpoint,
          {.title = "Gradient checkpointing",
           .unit = "blocks",
           .help = "recompute activations of blocks in backward from the input of every so many blocks; 0 = off; same results",
           .range = {0, 1000}});
  OptimizerSettings::fields(v);
  v.group("mesa", mesa, {.title = "int8 stash", .when = {"method.stash", {"int8"}}});
  v.group("wta", wta, {.title = "Row sampling (WTA-CRS)"});
  v.group("comera", comera, {.title = "Ranks and size (CoMERA)", .main = true, .when = {"method.weights", {"tt"}}});
  each_weights(*this, [&](auto&& own) {
    const Choice choice = own.info().choice;
    if constexpr (requires { own.fields(v); })
      v.group(choice.id, own, {.title = choice.title, .main = true, .when = {"method.weights", {choice.id}}});
  });
}

WeightsInfo MethodConfig::chosen_weights() const {
  WeightsInfo found;
  each_weights(*this, [&](const auto& own) {
    if (const WeightsInfo info = own.info(); weights == info.choice.id) found = info;
  });
  return found;
}

}  // namespace comera
