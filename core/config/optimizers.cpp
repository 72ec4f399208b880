#include "core/config/optimizers.h"

namespace comera {
namespace {

template <class Visit>
void each_optimizer(Visit visit) {
  const OptimizerSettings all;
  OptimizerSettings::each(all, [&](const auto& own) { visit(own.info()); });
}

When of_adam() {
  When when{"method.optimizer", {}, {{"method.galore.rule", {"adam", "adam8bit"}}, {"method.coap.rule", {"adam", "adam8bit"}}}};
  each_optimizer([&](const OptimizerInfo& info) {
    if (info.adam) when.values.push_back(info.choice.id);
  });
  return when;
}

void rule_field(FieldVisitor& v, std::string& rule, bool coded_adafactor) {
  std::vector<Choice> choices = {
      {"adam", "Adam", "Two moments per entry of the projected gradient."},
      {"adam8bit", "8-bit Adam", "Two moments per entry of the projected gradient, 8 bits each."},
      {"adafactor", "Adafactor", "Second moments of rows and columns; a first moment if its beta 1 is above 0."}};
  if (coded_adafactor) choices.push_back({"adafactor8bit", "8-bit Adafactor", "Adafactor with moments in 8 bits."});
  v.field("rule", rule,
          {.title = "Rule of the projected gradient",
           .help = "update rule of projected gradients, and of parameters that are not projected",
           .more = "Its settings are in the group of the optimizer with the same name.",
           .choices = choices});
}

}  // namespace

OptimizerInfo AdamConfig::info() const {
  return {.choice = {"adamw", "AdamW", "Two moments per parameter."}, .group = "adam", .adam = true, .by_rows = true};
}

// Betas and eps are arguments of a captured step, so they are fixed when a run starts; decay is read from
// the step block and may change.
void AdamConfig::fields(FieldVisitor& v) {
  v.field("beta1", beta1, {.title = "Beta 1", .help = "decay of the first moment", .range = {0, 0.99999}, .when = of_adam()});
  v.field("beta2", beta2, {.title = "Beta 2", .help = "decay of the second moment", .range = {0, 0.9999999}, .when = of_adam()});
  v.field(
      "eps", eps,
      {.title = "Epsilon",
       .help = "added to the square root of the second moment; where not set 1e-8, for APOLLO, COAP and GaLore with 32-bit moments 1e-6",
       .range = {0, 1},
       .when = of_adam()});
  v.field("weight_decay", weight_decay,
          {.title = "Weight decay",
           .help = "decoupled weight decay, times the learning rate",
           .range = {0, 10},
           .usual = {0, 1},
           .scale = Scale::log,
           .live = Live::yes});
  v.field("decay_vectors", decay_vectors,
          {.title = "Decay of vectors", .help = "weight decay also of biases and of the vectors of norms", .live = Live::yes});
}

OptimizerInfo Adam8bitConfig::info() const {
  return {.choice = {"adam8bit", "8-bit Adam", "Two moments per parameter, 8 bits each."},
          .used = {{"method.optimizer", {"q-galore"}},
                   {"method.flora.momentum_format", {"int8"}},
                   {"method.galore.rule", {"adam8bit"}},
                   {"method.coap.rule", {"adam8bit", "adafactor8bit"}}},
          .adam = true,
          .by_rows = true};
}

void Adam8bitConfig::fields(FieldVisitor& v) {
  v.field("min_size", min_size,
          {.title = "Minimum size", .unit = "entries", .help = "smaller tensors keep 32-bit moments (entries)", .range = {0, 1e12}});
  v.field("embeddings", embeddings, {.title = "Embeddings", .help = "also quantise the moments of embeddings"});
  v.field("floor", floor,
          {.title = "Floor of second moments",
           .help = "never round a second moment above 0 to 0; false: as published, which can make steps huge and the loss NaN"});
}

namespace {

// Live settings of projections are in force from the next step on (core/optim/state_follow.h).
FieldInfo rank_info(const char* help) {
  return {.title = "Projection rank",
          .symbol = "r",
          .help = help,
          .more =
              "A change takes effect at the next step. Components that remain keep their moments; in random projections the momentum "
              "restarts.",
          .range = {1, 65536},
          .usual = {1, 1024},
          .scale = Scale::log,
          .live = Live::replans};
}

FieldInfo gap_info(const char* help, const char* symbol = "") {
  return {.title = "Refresh every",
          .symbol = symbol,
          .unit = "steps",
          .help = help,
          .range = {1, 1e9},
          .usual = {1, 1000},
          .scale = Scale::log,
          .live = Live::replans};
}

FieldInfo draw_info(const char* help, const char* symbol = "") {
  FieldInfo info = gap_info(help, symbol);
  info.title = "Draw every";
  info.more = "A change takes effect at the next step and restarts the momentum in the projection.";
  return info;
}

FieldInfo scale_info() {
  return {.title = "Scale",
          .help = "factor on the update after it is projected back",
          .range = {0, 1000},
          .usual = {0, 4},
          .live = Live::replans};
}

void refresh_field(FieldVisitor& v, std::string& refresh) {
  v.field("refresh", refresh,
          {.title = "Refresh of matrices",
           .help = "staggered: matrices get new projections in turn, few a step; together: all in the same step",
           .choices = {{"staggered", "Staggered", "Matrices get new projections in turn, so no step refreshes every matrix."},
                       {"together", "Together", "All matrices get new projections in the same step, as published."}}});
}

void decomposition_fields(FieldVisitor& v, const char* path, std::string& decomposition, int64_t& passes) {
  v.field("decomposition", decomposition,
          {.title = "Decomposition",
           .help = "how the leading singular vectors of a gradient are computed",
           .choices = {{"exact", "Exact", "All singular vectors of each gradient, as published: slow for large matrices."},
                       {"subspace", "Subspace iteration",
                        "Starts at the previous projection and multiplies it by the gradient: fast, approximate."}}});
  v.field("passes", passes,
          {.title = "Passes",
           .help = "passes of subspace iteration over the gradient in each refresh",
           .range = {1, 100},
           .usual = {1, 8},
           .when = {path, {"subspace"}}});
}

void sums_field(FieldVisitor& v, std::string& sums) {
  v.field("sums", sums,
          {.title = "Gradient sums",
           .help = "how gradients are summed over micro-batches, and over processes: whole, or each projected first",
           .more = "Projected, a new projection follows from the gradient of the first micro-batch of its step, and the gradient norm "
                   "limit sees the norm of these sums.",
           .choices = {{"full", "Whole", "Sums of gradients are as large as the matrices."},
                       {"projected", "Projected", "Sums of gradients are as small as their moments, and processes send as little."}}});
}
}  // namespace

OptimizerInfo GaloreConfig::info() const {
  return {.choice = {"galore", "GaLore", "Moments of a low-rank projection of each gradient."},
          .eps = rule == "adam8bit" ? 1e-8 : 1e-6,  // 8-bit moments are bitsandbytes'
          .by_rows = rule != "adafactor"};
}

void GaloreConfig::fields(FieldVisitor& v) {
  v.field("rank", rank, rank_info("projection rank"));
  v.field("gap", gap, gap_info("steps between refreshes of the projection"));
  v.field("scale", scale, scale_info());
  rule_field(v, rule, false);
  v.field("side", side,
          {.title = "Projected side",
           .help = "side of each matrix that is projected to the rank",
           .choices = {{"shorter", "Shorter", "The shorter side of each matrix: moments of rank x longer side."},
                       {"longer", "Longer", "The longer side of each matrix: a larger projection, smaller moments."},
                       {"left", "Rows", "The outputs of each matrix."},
                       {"right", "Columns", "The inputs of each matrix."},
                       {"both", "Both", "Rows and columns: two projections, moments of rank x rank."}}});
  refresh_field(v, refresh);
  decomposition_fields(v, "method.galore.decomposition", decomposition, passes);
  sums_field(v, sums);
}

OptimizerInfo QGaloreConfig::info() const {
  return {.choice = {"q-galore", "Q-GaLore",
                     "8-bit moments of a 4-bit projection of each gradient, which is refreshed less often as it settles."},
          .adam = true,
          .weight_format = "int8"};
}

void QGaloreConfig::fields(FieldVisitor& v) {
  v.field("rank", rank, rank_info("projection rank"));
  v.field("gap", gap, gap_info("steps between refreshes of the projection, at first"));
  v.field("scale", scale, scale_info());
  v.field("lazy", lazy,
          {.title = "Fewer refreshes",
           .help = "double the steps between refreshes of a matrix when its first basis vector has moved little in the last five"});
  v.field("threshold", threshold,
          {.title = "Cosine threshold",
           .help = "mean cosine of the first basis vectors of successive projections from which refreshes become half as frequent",
           .range = {0, 1},
           .when = {"method.q-galore.lazy", {"true"}}});
  refresh_field(v, refresh);
  decomposition_fields(v, "method.q-galore.decomposition", decomposition, passes);
}

OptimizerInfo CoapConfig::info() const {
  return {.choice = {"coap", "COAP", "Moments of a low-rank projection that follows each gradient."},
          .eps = 1e-6,
          .by_rows = !rule.starts_with("adafactor")};
}

void CoapConfig::fields(FieldVisitor& v) {
  v.field("rank", rank, rank_info("projection rank, where no rank ratio is set"));
  v.field("rank_ratio", rank_ratio,
          {.title = "Rank ratio",
           .help = "projection rank = shorter side of a matrix / ratio; 0: the projection rank",
           .range = {0, 65536},
           .live = Live::replans});
  v.field("gap", gap, gap_info("steps between refreshes of the projection", "Tu"));
  v.field("reset_every", reset_every,
          {.title = "Reset every",
           .help = "this many refreshes from one recalibration to the next; those in between are gradient steps on the projection",
           .range = {1, 1e9},
           .live = Live::replans});
  v.field("scale", scale, scale_info());
  rule_field(v, rule, true);
  v.field("restore", restore, {.title = "Restore moments", .help = "bring moments into each new projection; else they stay as they are"});
  v.field(
      "normalised", normalised,
      {.title = "Normalised refinement",
       .help = "divide gradient and moment by the gradient's root mean square before a projection is refined",
       .more =
           "As published, the step of a refinement is proportional to the square of the gradient's norm: small gradients move nothing."});
  v.field("convolutions", convolutions,
          {.title = "Convolutions",
           .help = "how weights of convolutions are projected",
           .choices = {{"tucker", "Tucker", "Along outputs and along inputs; the pixels of a window stay."},
                       {"matrix", "As matrices", "As every other matrix: outputs times all values of a patch."}}});
  refresh_field(v, refresh);
  sums_field(v, sums);
}

OptimizerInfo GrassConfig::info() const {
  return {.choice = {"grass", "Grass", "Moments of some rows or columns of each gradient."}, .adam = true, .by_rows = true};
}

void GrassConfig::fields(FieldVisitor& v) {
  v.field("rank", rank, rank_info("number of rows that are selected of each gradient, of columns where those are shorter"));
  v.field("gap", gap, {.title = "Refresh every", .unit = "steps", .help = "steps between selections", .range = {1, 1e9}});
  v.field("selection", selection,
          {.title = "Selection",
           .help = "how rows of a gradient are selected",
           .choices = {{"top", "Largest", "The rows with the largest norms."},
                       {"norm", "By norm", "Rows are drawn in proportion to their norms."},
                       {"norm2", "By squared norm", "Rows are drawn in proportion to their squared norms."},
                       {"uniform", "Uniform", "All rows are drawn with the same probability."}}});
  v.field("replacement", replacement,
          {.title = "With replacement",
           .help = "draw rows with replacement, weighted so that the mean is the whole gradient",
           .more = "Off: every row once at most, without weights.",
           .when = {"method.grass.selection", {"norm", "norm2", "uniform"}}});
  v.field("scale", scale, scale_info());
  v.field("warmup", warmup,
          {.title = "Warm-up after a refresh",
           .unit = "steps",
           .help = "steps after each refresh but the first in which updates grow to their full length; 0: none",
           .range = {0, 1e9}});
}

OptimizerInfo ApolloConfig::info() const {
  return {.choice = {"apollo", "APOLLO", "The gradient, scaled by Adam on a random projection of it."},
          .adam = true,
          .eps = 1e-6,
          .by_rows = true};
}

void ApolloConfig::fields(FieldVisitor& v) {
  v.field("rank", rank, rank_info("rank of the random projection; APOLLO-Mini: 1"));
  v.field("gap", gap, draw_info("steps between draws of a new projection"));
  v.field("scaling", scaling,
          {.title = "Scaling",
           .help = "channel: one scale per row or column of a gradient; tensor: one scale per matrix (APOLLO-Mini)",
           .choices = {{"channel", "By channel", "One scale per row of a gradient; per column where the matrix is wide."},
                       {"tensor", "By matrix", "One scale per gradient (APOLLO-Mini)."}}});
  v.field("alpha", alpha,
          {.title = "Scale (alpha)",
           .help = "updates are multiplied by the square root of alpha; APOLLO-Mini: 128",
           .range = {1e-6, 1e6},
           .live = Live::replans});
  v.field("growth", growth,
          {.title = "Growth limit",
           .help = "largest ratio of an update's norm to that of the step before; a large number: no limit",
           .range = {1, 1e9}});
  v.field("alpha_first", alpha_first,
          {.title = "Alpha before the limit",
           .help = "multiply by the root of alpha before the growth is limited; as published for the smallest models"});
}

OptimizerInfo FloraConfig::info() const { return {.choice = {"flora", "Flora", "As Adafactor, with momentum in a random projection."}}; }

void FloraConfig::fields(FieldVisitor& v) {
  v.field("rank", rank, rank_info("rank of the random projection of momentum; matrices with a side below the rank keep full momentum"));
  v.field("gap", gap, draw_info("steps between new projections; momentum is carried over", "kappa"));
  v.field("beta1", beta1, {.title = "Beta 1", .help = "decay of the momentum; 0: no momentum, as in Adafactor", .range = {0, 0.99999}});
  v.field("momentum_format", momentum_format,
          {.title = "Momentum format",
           .help = "format of stored momentum: as computed, or 8 bits",
           .choices = {{"full", "Full precision", "Momentum is stored as it is computed."},
                       {"int8", "int8", "Momentum is stored as 8-bit codes."}}});
  v.field("sums", sums,
          {.title = "Gradient sums",
           .help = "how gradients are summed over micro-batches: whole, or in a random projection of their step, with the same rank",
           .choices = {{"full", "Whole", "Sums of gradients are as large as the matrices."},
                       {"projected", "Projected", "Sums of gradients are in a random projection, another one in each step."}}});
}

OptimizerInfo AdafactorConfig::info() const {
  return {
      .choice = {"adafactor", "Adafactor", "Second moments of the rows and columns of each matrix."},
      .used = {
          {"method.optimizer", {"flora"}}, {"method.galore.rule", {"adafactor"}}, {"method.coap.rule", {"adafactor", "adafactor8bit"}}}};
}

void AdafactorConfig::fields(FieldVisitor& v) {
  v.field("beta1", beta1,
          {.title = "Beta 1",
           .help = "decay of the first moment; 0: none is kept",
           .range = {0, 0.99999},
           .when = {"method.optimizer",
                    {"adafactor"},
                    {{"method.galore.rule", {"adafactor"}}, {"method.coap.rule", {"adafactor", "adafactor8bit"}}}}});
  v.field("decay_exponent", decay_exponent,
          {.title = "Decay exponent", .help = "second moments decay by 1 - step^-exponent: larger is a longer memory", .range = {0.01, 1}});
  v.field("clip", clip,
          {.title = "Clip at (rms)", .help = "largest root mean square of an update, before the learning rate", .range = {1e-6, 1e6}});
  v.field("eps", eps, {.title = "Epsilon (squared)", .help = "added to each squared gradient", .range = {1e-36, 1}});
  v.field("scale_parameter", scale_parameter,
          {.title = "Scale by the parameter", .help = "the learning rate is relative to the root mean square of each parameter"});
  v.field("least_rms", least_rms,
          {.title = "Minimum parameter rms", .help = "smallest root mean square that the learning rate is relative to", .range = {0, 1e6}});
  v.field("relative_step", relative_step,
          {.title = "Relative step", .help = "learning rate 1/sqrt(step), at most 0.01, instead of the run's learning rates"});
  v.field("warmup_init", warmup_init,
          {.title = "Slow start", .help = "with relative_step: learning rate at most 1e-6 times the step instead of 0.01"});
}

OptimizerInfo AdalomoConfig::info() const {
  return {.choice = {"adalomo", "AdaLomo", "As Adafactor, with steps relative to the size of each parameter."}, .update = "backward"};
}

void AdalomoConfig::fields(FieldVisitor& v) {
  v.field("clip", clip,
          {.title = "Clip at (rms)", .help = "largest root mean square of an update, before the learning rate", .range = {1e-6, 1e6}});
  v.field("least_rms", least_rms,
          {.title = "Minimum parameter rms", .help = "smallest root mean square that the learning rate is relative to", .range = {0, 1e6}});
}

OptimizerInfo LomoConfig::info() const {
  return {.choice = {"lomo", "LOMO", "Plain gradient descent: no moments."}, .by_rows = true, .update = "backward"};
}

void LomoConfig::fields(FieldVisitor& v) {
  v.field("clip_value", clip_value,
          {.title = "Clip at (value)", .help = "largest absolute value of an entry of a gradient; 0: no limit", .range = {0, 1e6}});
}

OptimizerInfo AdagradConfig::info() const {
  return {.choice = {"adagrad", "Adagrad", "A sum of squared gradients per parameter, or per row of a table."}, .by_rows = true};
}

void AdagradConfig::fields(FieldVisitor& v) {
  v.field("eps", eps, {.title = "Epsilon", .help = "added to the square root of the sum of squared gradients", .range = {1e-20, 1}});
  v.field("rowwise", rowwise,
          {.title = "One sum per row of a table",
           .help = "embedding tables keep one sum for each row, of the mean of its squared gradients",
           .more = "Row-wise Adagrad, the usual choice for the tables of recommendation models. Off: a sum for each entry."});
}

OptimizerInfo CameConfig::info() const { return {.choice = {"came", "CAME", "Adafactor with momentum, trusted less where updates vary."}}; }

// Moments of rows and columns must not be 0 in f32: (1 - beta) eps, their least value, is above 1e-36.
void CameConfig::fields(FieldVisitor& v) {
  v.field("beta1", beta1, {.title = "Beta 1", .help = "decay of the first moment", .range = {0, 0.99999}});
  v.field("beta2", beta2, {.title = "Beta 2", .help = "decay of the second moments", .range = {0, 0.999999}});
  v.field("beta3", beta3, {.title = "Beta 3", .help = "decay of the squared residuals", .range = {0, 0.999999}});
  v.field("clip", clip,
          {.title = "Clip at (rms)", .help = "largest root mean square of an update, before the first moment", .range = {1e-6, 1e6}});
  v.field("eps", eps, {.title = "Epsilon (squared)", .help = "added to each squared gradient", .range = {1e-30, 1}});
  v.field("residual_eps", residual_eps,
          {.title = "Residual epsilon (squared)", .help = "added to each squared residual", .range = {1e-30, 1}});
  v.field("correct_residual", correct_residual,
          {.title = "Correct the residual's bias",
           .help = "correct the bias of squared residuals, which start at 0",
           .more = "Off: as published. The first steps are then about ten times as long: use a learning rate warm-up."});
}

void OptimizerSettings::fields(FieldVisitor& v) {
  std::vector<Choice> choices;
  each(*this, [&](const auto& own) { choices.push_back(own.info().choice); });
  v.field("optimizer", optimizer, {.title = "Optimizer", .help = "optimizer", .choices = choices});
  v.field(
      "update", update,
      {.title = "Update",
       .help =
           "after: when all gradients are there; backward: each parameter as soon as its gradient is complete, whose memory is free then",
       .choices = {
           {"after", "After backward", "All gradients are kept until the update."},
           {"backward", "During backward", "Each parameter is updated as soon as its gradient is complete: no gradients are kept."}}});
  each(*this, [&](auto& own) {
    const OptimizerInfo info = own.info();
    When when;  // Adam's weight decay is used by all
    if (!info.group) when = {"method.optimizer", {info.choice.id}};
    for (const When& other : info.used) {
      if (std::string_view(other.path) == when.path)
        when.values.insert(when.values.end(), other.values.begin(), other.values.end());
      else
        when.others.push_back(other);
    }
    v.group(info.group ? info.group : info.choice.id, own, {.title = info.choice.title, .when = when});
  });
}

OptimizerInfo OptimizerSettings::chosen() const {
  OptimizerInfo found;
  each(*this, [&](const auto& own) {
    if (const OptimizerInfo info = own.info(); optimizer == info.choice.id) found = info;
  });
  return found;
}

std::string OptimizerSettings::inner_rule() const {
  OptimizerSettings copy = *this;
  const FieldValues values = field_values(fields_of(copy));
  const auto rule = values.find(optimizer + ".rule");
  return rule == values.end() ? "" : std::get<std::string>(rule->second);
}

}  // namespace comera
