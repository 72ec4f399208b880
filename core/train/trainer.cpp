#include "core/train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/error.h"
#include "core/config/renamed_settings.h"

namespace comera {
namespace {

double now_ms() { return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// The model must fit the data before anything is allocated.
RunConfig checked(RunConfig config, const Dataset& train, const Dataset* validation) {
  const DatasetInfo& info = train.info();
  const auto wrong = [&](const std::string& what, const std::string& why, const std::string& hint) {
    throw Error(ErrorCode::config, what, why, hint);
  };
  const bool wants_text = config.model.kind == "encoder";
  if (info.text != wants_text)
    wrong("model.kind '" + config.model.kind + "' does not fit the data set " + info.name,
          info.text ? "the set holds text" : "the set holds images",
          std::string("use --set model.kind=") + (info.text ? "encoder" : "mlp"));
  if (!info.labelled) wrong("the training file of " + info.name + " has no labels", "", "give a file with labels");
  if (info.classes > config.model.classes)
    wrong(
        "model.classes is " + std::to_string(config.model.classes) + ", the data set " + info.name + " has " + std::to_string(info.classes),
        "a label would be out of range", "use --set model.classes=" + std::to_string(info.classes));
  if (!wants_text && info.height * info.width != config.model.mlp.inputs)
    wrong("model.mlp.inputs is " + std::to_string(config.model.mlp.inputs) + ", the images are " + std::to_string(info.height) + " x " +
              std::to_string(info.width),
          "", "use --set model.mlp.inputs=" + std::to_string(info.height * info.width));
  if (wants_text && info.vocab_size > config.model.encoder.vocab)
    wrong("model.encoder.vocab is " + std::to_string(config.model.encoder.vocab) + ", the vocabulary has " +
              std::to_string(info.vocab_size) + " tokens",
          "a token would be out of range", "use --set model.encoder.vocab=" + std::to_string(info.vocab_size));
  if (validation && validation->info().text != info.text) wrong("training and validation data are of different kinds", "", "");
  if (info.rows < config.train.batch)
    wrong("train.batch is " + std::to_string(config.train.batch) + ", the data set has " + std::to_string(info.rows) + " rows", "",
          "use a smaller batch");
  return config;
}

// The edit that brings `path` back to `old`; of the ways to give the target, the one in force, since setting one ends the others.
std::pair<std::string, std::string> way_back(const ComeraConfig& comera, const std::string& path, const std::string& old) {
  const std::string target = "method.comera.target";
  if (!path.starts_with(target)) return {path, old};
  if (comera.target_mib > 0) return {target + "_mib", Json(comera.target_mib).dump()};
  if (comera.target_compression > 0) return {target + "_compression", Json(comera.target_compression).dump()};
  return {target, Json(comera.target).dump()};
}

}  // namespace

Trainer::Trainer(RunConfig config, std::shared_ptr<const Dataset> train, std::shared_ptr<const Dataset> validation, Device& device,
                 TrainObserver& observer)
    : config_(checked(std::move(config), *train, validation.get())),
      train_(std::move(train)),
      validation_(std::move(validation)),
      observer_(observer),
      engine_(config_, device),
      initial_ranks_(held_ranks(engine_.params())) {}

Trainer::~Trainer() = default;

BatchOptions Trainer::batch_options(bool training) const {
  BatchOptions options;
  options.batch_size = config_.part_batch();
  options.parts = training ? config_.train.micro_batches : 1;
  options.length = config_.model.length;
  options.pack = config_.data.pack;
  options.token_budget = config_.token_capacity();
  options.token_dropout = training ? config_.data.token_dropout : 0;
  options.shuffle = training;
  options.drop_last = training;
  options.seed = static_cast<uint64_t>(config_.train.seed);
  return options;
}

void Trainer::restart_prefetch() {
  prefetcher_.reset();
  prefetcher_ = std::make_unique<Prefetcher>(*train_, batch_options(true), state_.cursor);
}

int64_t Trainer::steps_per_epoch() const { return std::max<int64_t>(1, train_->info().rows / config_.train.batch); }

int64_t Trainer::total_steps() const {
  if (config_.train.steps > 0) return config_.train.steps;
  return static_cast<int64_t>(std::llround(config_.train.epochs * static_cast<double>(steps_per_epoch())));
}

void Trainer::start() {
  engine_.allocate();
  restart_prefetch();
  report_all();
}

void Trainer::report_all() {
  drain();
  follow_ranks(state_.step, true);
  observer_.on_memory(state_.step, engine_.memory().now());
}

void Trainer::recall(const StepRecord& step, const EvalRecord& eval) {
  last_step_ = step;
  last_eval_ = eval;
  if (eval.step > 0 && validation_) last_eval_.examples = validation_->info().rows;
}

// ---- live changes ----------------------------------------------------------------------------------------------

void Trainer::check_edit(const std::string& path, const std::string& value) {
  if (path == "stage") {
    if (!config_.tensorised()) throw Error(ErrorCode::usage, "cannot change stage", "this run has no tensor trains, so no late stage", "");
    if (value != "late" && value != "early")
      throw Error(ErrorCode::usage, "cannot change stage", "'" + value + "' is not a stage", "it is stage=late or stage=early");
    return;
  }
  for (const auto& [prefix, wants_bond] : {std::pair<const char*, bool>{"rank.cap.", true}, {"rank.weight.", false}}) {
    if (path.rfind(prefix, 0) != 0) continue;
    const std::string rest = path.substr(std::string(prefix).size());
    std::vector<std::string> names;
    for (const RankLayer& layer : engine_.params().rank_layers()) {
      if (!wants_bond) names.push_back(layer.name);
      for (size_t bond = 1; wants_bond && bond <= layer.ranks.size(); ++bond) names.push_back(layer.name + "." + std::to_string(bond));
    }
    if (std::find(names.begin(), names.end(), rest) == names.end()) {
      const std::string near = nearest_name(rest, names);
      throw Error(ErrorCode::usage, "cannot change " + path,
                  "this model has no such " + std::string(wants_bond ? "bond" : "tensorised layer"),
                  near.empty() ? "" : "did you mean '" + std::string(prefix) + near + "'?");
    }
  }
  RunConfig config = config_;
  RankOverrides overrides = state_.overrides;
  apply_edit(config, overrides, path, value);
}

void Trainer::edit(const std::string& given_path, const std::string& value) {
  const std::string path = current_path(given_path);
  check_edit(path, value);
  if (path == "stage") return value == "late" ? request_late() : request_early();
  settle();
  const ComeraConfig before = config_.method.comera;
  const double asked = asked_by(path, config_, state_.overrides);
  const std::string old = apply_edit(config_, state_.overrides, path, value);
  if (asked_by(path, config_, state_.overrides) > asked) {
    const auto [back_path, back] = way_back(before, path, old);
    raises_.push_back({path, back_path, back});
  }
  const Json parsed = Json::parse(value, nullptr, false);
  observer_.on_event(
      state_.step + 1, "edit",
      {{"path", path}, {"old", Json::parse(old, nullptr, false)}, {"new", parsed.is_discarded() ? Json(value) : parsed}, {"value", value}});
  apply_overrides();
  // Now, not after the next step: a run restored from a checkpoint of this moment does it here too.
  if (config_.tensorised()) follow_ranks(state_.step, false);
}

void Trainer::check_growth(const std::string& path, const std::string& value) {
  check_edit(path, value);
  if (!guards_growth_ || path == "stage") return;
  drain();
  RunConfig config = config_;
  RankOverrides overrides = state_.overrides;
  apply_edit(config, overrides, path, value);
  // What waits for the step already is no reason against an edit that adds nothing to it.
  if (asked_by(path, config, overrides) <= asked_by(path, config_, state_.overrides)) return;
  const std::optional<LackOfRoom> lack = lack_of_room_for(growth_under(config, overrides).wanted);
  if (!lack) return;
  refuse_growth(state_.step, path + " stays as it is", *lack);
  throw Error(ErrorCode::memory, "cannot change " + path, "there is no room for the ranks: " + lack->text(),
              "close other programs, or raise it by less");
}

void Trainer::request_late() { request_stage(true); }
void Trainer::request_early() { request_stage(false); }

void Trainer::request_stage(bool late) {
  bool& other = late ? state_.early_requested : state_.late_requested;
  if (state_.late != late) {
    (late ? state_.late_requested : state_.early_requested) = true;
  } else if (std::exchange(other, false)) {
    // Told, since a checkpoint may have been written in between: a run that goes on from there takes it back, too.
    drain();
    observer_.on_event(state_.step + 1, "stage", {{"stage", late ? "late" : "early"}, {"reason", "command"}, {"stays", true}});
  }
}

void Trainer::apply_overrides() {
  const auto& layers = engine_.params().rank_layers();
  std::vector<double> weights;
  for (const RankLayer& layer : layers) {
    const auto found = state_.overrides.weights.find(layer.name);
    weights.push_back(found == state_.overrides.weights.end() ? 1.0 : found->second);
  }
  engine_.set_layer_weights(weights);
}

double Trainer::live_size() const {
  double entries = 0;
  for (size_t i = 0; i < state_.live_ranks.size(); ++i)
    entries += static_cast<double>(live_entries(engine_.params().rank_layers()[i], state_.live_ranks[i]));
  return entries;
}

double Trainer::target_entries(const RunConfig& config) const {
  const ComeraConfig& comera = config.method.comera;
  const double bytes = static_cast<double>(size_of(config.dtype()));
  if (comera.target_mib > 0) return comera.target_mib * 1024 * 1024 / bytes;
  if (comera.target_compression > 0) {
    double dense = 0;
    for (const RankLayer& layer : engine_.params().rank_layers()) dense += static_cast<double>(layer.dense_entries());
    return dense / comera.target_compression;
  }
  return comera.target * state_.late_entries;
}

void Trainer::enter_late(int64_t step, const char* reason) {
  settle();
  state_.late = true;
  state_.late_at = step;
  state_.late_requested = false;
  state_.late_entries = state_.pace = size().entries;
  const bool canonical = config_.method.comera.late_canonical && config_.method.comera.train_ranks;
  if (canonical) {
    engine_.canonicalise(config_.method.comera.threshold);
    follow_ranks(step, false);
  }
  observer_.on_event(step, "stage",
                     {{"stage", "late"},
                      {"reason", reason},
                      {"entries", state_.late_entries},
                      {"target_entries", target_entries()},
                      {"canonical", canonical}});
}

// What the loss did in the late stage says nothing of a plateau of the early one.
void Trainer::leave_late(int64_t step) {
  settle();
  state_.late = state_.early_requested = false;
  state_.left_late_at = step;
  state_.plateau = {};
  observer_.on_event(step, "stage", {{"stage", "early"}, {"reason", "command"}, {"entries", size().entries}});
}

// What has grown back may stay as long as the target allows.
void Trainer::follow_pace() {
  if (!state_.late) return;
  const int64_t halving = config_.method.comera.late_halving;
  // Without one it is the present size, from which a pace that is set later begins.
  state_.pace = halving > 0 ? std::max(target_entries(), state_.pace * std::exp2(-1.0 / static_cast<double>(halving))) : live_size();
}

// ---- one step --------------------------------------------------------------------------------------------------

StepScalars Trainer::scalars_for(int64_t step) const {
  const TrainConfig& train = config_.train;
  const ComeraConfig& comera = config_.method.comera;
  double factor = 1;
  if (step <= train.warmup) {
    factor = static_cast<double>(step) / static_cast<double>(train.warmup);
  } else if (train.schedule != "constant") {
    const double span = std::max<double>(1, static_cast<double>(total_steps() - train.warmup));
    const double done = std::min(1.0, static_cast<double>(step - 1 - train.warmup) / span);
    const double left = train.schedule == "linear" ? 1 - done : 0.5 * (1 + std::cos(3.14159265358979323846 * done));
    factor = train.lr_final_fraction + (1 - train.lr_final_fraction) * left;
  }
  StepScalars scalars;
  scalars.seed = static_cast<uint64_t>(train.seed);
  scalars.step = scalars.optimizer_step = static_cast<uint64_t>(step);
  scalars.learning_rate[static_cast<int>(ParamGroup::core)] = train.lr_core * factor;
  scalars.learning_rate[static_cast<int>(ParamGroup::rank)] =
      (state_.late && train.lr_rank_late > 0 ? train.lr_rank_late : train.lr_rank) * factor;
  scalars.learning_rate[static_cast<int>(ParamGroup::rest)] = train.lr * factor;
  if (state_.late) {
    const double entries = live_size();
    if (comera.hold_at_target && entries <= target_entries()) scalars.learning_rate[static_cast<int>(ParamGroup::rank)] = 0;
    scalars.pause_rank_push = comera.late_halving > 0 && entries <= state_.pace ? 1 : 0;
  }
  scalars.weight_decay = config_.method.adam.weight_decay;
  scalars.threshold = comera.threshold;
  scalars.pruning = comera.train_ranks ? 1 : 0;
  scalars.late = state_.late ? 1 : 0;
  scalars.rank_weight = comera.rank_weight;
  scalars.late_loss_weight = comera.late_loss_weight;
  scalars.late_weight = comera.late_weight;
  scalars.loss_target = comera.loss_target;
  scalars.size_target = state_.late ? target_entries() : 0;
  scalars.paper = comera.mode == "paper" ? 1 : 0;
  scalars.selective = comera.mode == "selective" ? 1 : 0;
  scalars.gamma = comera.gamma;
  scalars.beta = comera.beta;
  scalars.late_w1 = comera.w1;
  scalars.late_w2 = comera.w2;
  return scalars;
}

void Trainer::step() {
  const int64_t step = state_.step + 1;
  const double begin = now_ms();
  if (state_.early_requested) leave_late(step);
  if (!state_.late && config_.tensorised()) {
    const ComeraConfig& comera = config_.method.comera;
    const int64_t by_count = comera.late_after + 1;  // the first late step
    if (state_.late_requested)
      enter_late(step, "command");
    else if (comera.late_after > 0 && step >= by_count && by_count >= state_.left_late_at)
      enter_late(step, "steps");
    else if (comera.late_on_plateau > 0 && state_.plateau.reached(comera.late_on_plateau))
      enter_late(step, "plateau");
  }
  if (config_.tensorised()) grow_ranks(step);
  follow_pace();
  const StepScalars scalars = scalars_for(step);
  StepRecord record;
  int64_t cursor = 0;
  const auto next = [&]() -> const Batch& {
    const double wait = now_ms();
    const Batch& batch = prefetcher_->next();
    record.data_ms += now_ms() - wait;
    record.tokens += batch.tokens;
    cursor = batch.next_cursor;
    return batch;
  };
  engine_.submit(next, scalars);

  record.step = step;
  std::copy(std::begin(scalars.learning_rate), std::end(scalars.learning_rate), record.learning_rate);
  record.epoch = static_cast<double>(cursor) / static_cast<double>(train_->info().rows);
  record.target_entries = scalars.size_target;
  record.times = engine_.times();
  underway_.push_back({record, begin, state_.cursor});
  state_.step = step;
  state_.cursor = cursor;

  const int lag = engine_.device().lag();
  collect(waits_for_itself(step) ? 0 : static_cast<size_t>(lag));
  // Of one that is under way: how long it held up the host, which is how long a step takes where one waits for another.
  if (!underway_.empty()) underway_.back().record.step_ms = now_ms() - begin;
  decide_by(step - lag);
  if (scores(step)) evaluate();
}

bool Trainer::looks_for_cuts(int64_t step) const {
  const int64_t every = config_.method.comera.prune_every;
  return config_.tensorised() && every > 0 && step % every == 0;
}

bool Trainer::scores(int64_t step) const {
  return validation_ && (finished() || (config_.train.eval_every > 0 && step % config_.train.eval_every == 0));
}

bool Trainer::holds_ranks() const {
  return !engine_.params().rank_layers().empty() && (!state_.overrides.caps.empty() || config_.method.comera.floor_rank);
}

bool Trainer::waits_for_itself(int64_t step) const {
  return finished() || engine_.profiled() || looks_for_cuts(step) || scores(step) || holds_ranks();
}

// ---- results ---------------------------------------------------------------------------------------------------

void Trainer::drain() { collect(0); }

void Trainer::collect(size_t may_stay) {
  while (underway_.size() > may_stay) take_results();
}

// What is decided from now on knows the steps up to this one.
void Trainer::decide_by(int64_t step) {
  for (; !state_.unknown.empty() && state_.unknown.front().step <= step; state_.unknown.pop_front()) {
    state_.plateau.update(state_.unknown.front().ce);
    state_.live_ranks = std::move(state_.unknown.front().ranks);
  }
}

void Trainer::settle() {
  drain();
  decide_by(state_.step);
}

// Tells of the oldest step under way.
void Trainer::take_results() {
  std::vector<double> ranks;
  const StepResults results = engine_.take(&ranks);
  const Underway done = std::move(underway_.front());
  underway_.pop_front();
  StepRecord record = done.record;
  const int64_t step = record.step;
  if (!std::isfinite(results.loss)) {
    // With lag the values are spoiled by the update, and those of the step are gone: nothing is to be found there.
    const bool late = engine_.device().lag() > 0;
    const std::string bad = late ? "" : first_bad_tensor(), why = bad.empty() ? "the logits overflowed" : "first bad values in " + bad;
    const int64_t behind = static_cast<int64_t>(underway_.size());
    for (; !underway_.empty(); underway_.pop_front()) engine_.take();  // made with spoiled weights
    state_.step = step - 1;
    state_.cursor = done.cursor;
    observer_.on_event(step, "alert", {{"kind", "diverged"}, {"loss", std::isnan(results.loss) ? "nan" : "inf"}, {"tensor", bad}});
    throw Error(ErrorCode::diverged,
                "the loss is " + std::string(std::isnan(results.loss) ? "NaN" : "infinite") + " at step " + std::to_string(step),
                late ? std::to_string(behind) + " later " + (behind == 1 ? "step has" : "steps have") + " already updated the weights"
                     : why,
                "resume or fork from the last checkpoint with smaller learning rates");
  }
  record.results = results;
  record.accuracy = results.examples > 0 ? results.correct / results.examples : 0;
  record.examples = static_cast<int64_t>(results.examples);
  if (config_.tensorised()) {
    const double threshold = config_.method.comera.threshold;
    tell_ranks(step, holds_ranks() ? look_at_ranks() : comera::live_ranks(engine_.params(), ranks, threshold), false);
    if (looks_for_cuts(step)) cut_ranks(step);
  }
  state_.unknown.push_back({step, results.ce, live_ranks_});
  if (record.step_ms == 0) record.step_ms = now_ms() - done.begin;
  last_step_ = record;
  observer_.on_step(record);
}

// The first tensor with a value that is not finite, gradients first: where the trouble shows, for the message.
std::string Trainer::first_bad_tensor() {
  for (const bool gradient : {false, true})
    for (const Param& param : engine_.params().params())
      for (double value : to_host(engine_.device(), gradient ? param.grad : param.value))
        if (!std::isfinite(value)) return (gradient ? "the gradient of " : "") + param.name;
  return "";
}

EvalRecord Trainer::evaluate() {
  CHECK(validation_ != nullptr, "no validation data");
  drain();
  const double begin = now_ms();
  const StepScalars scalars = scalars_for(std::max<int64_t>(1, state_.step));
  const BatchOptions options = batch_options(false);
  EvalSums sums;
  int64_t cursor = 0;
  while (make_batch(*validation_, options, cursor, score_batch_)) {
    const EvalSums part = engine_.score(score_batch_, scalars);
    sums.loss_sum += part.loss_sum;
    sums.correct += part.correct;
    sums.examples += part.examples;
    cursor = score_batch_.next_cursor;
  }
  EvalRecord record;
  record.step = state_.step;
  record.examples = static_cast<int64_t>(sums.examples);
  record.loss = sums.examples > 0 ? sums.loss_sum / sums.examples : 0;
  record.accuracy = sums.examples > 0 ? sums.correct / sums.examples : 0;
  record.ms = now_ms() - begin;
  if (state_.best_step == 0 || record.loss < state_.best_loss) {
    state_.best_loss = record.loss;
    state_.best_accuracy = record.accuracy;
    state_.best_step = std::max<int64_t>(1, state_.step);
  }
  last_eval_ = record;
  observer_.on_eval(record);
  return record;
}

// ---- ranks -----------------------------------------------------------------------------------------------------

// The rank vectors as they are now: enforces caps and the floor, and counts.
LiveRanks Trainer::look_at_ranks() {
  CHECK(underway_.empty(), "ranks are looked at while steps are under way");
  const ComeraConfig& comera = config_.method.comera;
  if (holds_ranks()) hold_ranks(engine_.params(), engine_.device(), comera.threshold, state_.overrides.caps, comera.floor_rank);
  return comera::live_ranks(engine_.params(), engine_.device(), comera.threshold);
}

// Looks at them between two steps.
void Trainer::follow_ranks(int64_t step, bool report_all) {
  tell_ranks(step, look_at_ranks(), report_all);
  if (state_.unknown.empty()) state_.live_ranks = live_ranks_;
}

// Reports bonds whose live rank changed, or all.
void Trainer::tell_ranks(int64_t step, LiveRanks now, bool report_all) {
  std::vector<RankChange> changes;
  for (size_t layer = 0; layer < now.size(); ++layer)
    for (size_t bond = 0; bond < now[layer].size(); ++bond) {
      const int64_t before = live_ranks_.empty() ? 0 : live_ranks_[layer][bond];
      if (report_all || before != now[layer][bond])
        changes.push_back({static_cast<int64_t>(layer), static_cast<int64_t>(bond), before, now[layer][bond]});
    }
  live_ranks_ = std::move(now);
  if (!changes.empty()) observer_.on_ranks(step, changes);
}

// How much the setting of this path asks for: a rank, or the entries of the model.
double Trainer::asked_by(const std::string& path, const RunConfig& config, const RankOverrides& overrides) const {
  const std::string cap = "rank.cap.";
  if (!path.starts_with(cap)) return config.method.comera.train_ranks ? target_entries(config) : -1;
  const std::string bond = path.substr(cap.size());
  if (const auto found = overrides.caps.find(bond); found != overrides.caps.end()) return static_cast<double>(found->second);
  const auto& layers = engine_.params().rank_layers();
  for (size_t i = 0; i < layers.size(); ++i)
    for (size_t k = 0; k < initial_ranks_[i].size(); ++k)
      if (bond == layers[i].name + "." + std::to_string(k + 1)) return static_cast<double>(initial_ranks_[i][k]);
  return 0;
}

bool Trainer::target_rises(const RunConfig& config) const {
  return state_.late && state_.last_target > 0 && target_entries(config) > state_.last_target;
}

// Whether the target or a cap is another one than at the last step, in a way that may let ranks grow.
bool Trainer::asks_for_ranks(const RunConfig& config, const RankOverrides& overrides) const {
  return config.method.comera.train_ranks && (target_rises(config) || overrides.caps != state_.last_caps);
}

// What the next step begins with where these settings are in force then.
Trainer::Growth Trainer::growth_under(const RunConfig& config, const RankOverrides& overrides) const {
  if (!asks_for_ranks(config, overrides)) return {live_ranks_};
  const auto& layers = engine_.params().rank_layers();
  const std::map<std::string, int64_t>&caps = overrides.caps, &last_caps = state_.last_caps;
  const auto locked = [&](const std::string& layer) {
    const auto weight = overrides.weights.find(layer);
    return weight != overrides.weights.end() && weight->second == 0;
  };
  LiveRanks wanted = live_ranks_, limits = initial_ranks_;
  for (size_t i = 0; i < layers.size(); ++i) {
    for (size_t bond = 0; bond < limits[i].size(); ++bond) {
      const std::string name = layers[i].name + "." + std::to_string(bond + 1);
      const auto cap = caps.find(name);
      if (cap == caps.end()) continue;
      const auto last = last_caps.find(name);
      // A bond without a cap is held by its rank at the start.
      if (cap->second > (last == last_caps.end() ? initial_ranks_[i][bond] : last->second)) {
        const int64_t useful = std::min(cap->second, std::max(initial_ranks_[i][bond], rank_limit(layers[i], bond)));
        wanted[i][bond] = std::max(wanted[i][bond], useful);
      }
      limits[i][bond] = std::min(limits[i][bond], cap->second);
    }
    if (locked(layers[i].name)) limits[i] = live_ranks_[i];
  }
  const LiveRanks by_caps = wanted;
  if (target_rises(config)) {
    const double target = target_entries(config);
    // More than all bonds have at their ranks of the start was asked for: those without a cap may grow beyond them.
    if (target > static_cast<double>(total_entries(layers, initial_ranks_)))
      for (size_t i = 0; i < layers.size(); ++i)
        for (size_t bond = 0; bond < limits[i].size(); ++bond)
          if (limits[i][bond] == initial_ranks_[i][bond] && !caps.contains(layers[i].name + "." + std::to_string(bond + 1)) &&
              !locked(layers[i].name))
            limits[i][bond] = std::max(limits[i][bond], rank_limit(layers[i], bond));
    wanted = grown_to_size(layers, std::move(wanted), limits, target);
  }
  const char* reason = by_caps == live_ranks_ ? "target" : by_caps == wanted ? "cap" : "cap and target";
  return {std::move(wanted), reason};
}

// The old model goes before the new one comes, so what is held counts as free.
std::optional<LackOfRoom> Trainer::lack_of_room_for(const LiveRanks& wanted) {
  if (wanted == live_ranks_) return {};
  LiveRanks ranks = held_ranks(engine_.params());
  for (size_t i = 0; i < ranks.size(); ++i)
    for (size_t bond = 0; bond < ranks[i].size(); ++bond)
      if (wanted[i][bond] > live_ranks_[i][bond]) ranks[i][bond] = wanted[i][bond];
  return lack_of_room(engine_.planned_with(ranks), engine_.memory().now(), available_on(engine_.device()));
}

void Trainer::refuse_growth(int64_t step, const std::string& what, const LackOfRoom& lack) {
  refused_ = true;
  const std::pair now(step, what);
  if (std::exchange(last_refusal_, now) == now) return;  // a slider that is still dragged
  observer_.on_event(
      step, "alert",
      {{"kind", "memory"}, {"text", what + ", there is no room for the ranks: " + lack.text()}, {"need", lack.need}, {"free", lack.free}});
}

// The last raise first. There is none where a run goes on from a checkpoint that was written between the edit and the step:
// what was in force before is not known there.
void Trainer::take_back_raise(int64_t step, const LackOfRoom& lack) {
  if (raises_.empty())
    throw Error(ErrorCode::memory, "there is no room for the ranks that grow at step " + std::to_string(step), lack.text(),
                "close other programs, or resume with a smaller target or cap: --set method.comera.target=0.3");
  const Raise raise = raises_.back();
  raises_.pop_back();
  refuse_growth(step, raise.path + " is taken back", lack);
  edit(raise.back_path, raise.back);
}

// Gives entries back where the target or a cap is higher than at the last step. Not at once with the edit: what counts is
// what is in force when the step begins, so a slider that goes up and down again does nothing, and a checkpoint
// between the edit and the step is of a model that has not grown yet.
void Trainer::grow_ranks(int64_t step) {
  if (asks_for_ranks(config_, state_.overrides)) {
    settle();
    Growth growth = growth_under(config_, state_.overrides);
    while (guards_growth_) {
      const std::optional<LackOfRoom> lack = lack_of_room_for(growth.wanted);
      if (!lack) break;
      take_back_raise(step, *lack);
      growth = growth_under(config_, state_.overrides);
    }
    state_.last_caps = state_.overrides.caps;
    if (growth.wanted != live_ranks_) grow_to(step, growth);
  }
  state_.last_target = state_.late ? target_entries() : 0;
  raises_.clear();
}

void Trainer::grow_to(int64_t step, const Growth& growth) {
  const ComeraConfig& comera = config_.method.comera;
  const auto& layers = engine_.params().rank_layers();
  const LiveRanks before = live_ranks_;
  const ModelSize size_before = size();
  engine_.grow(plan_growth(engine_.params(), engine_.device(), comera.threshold, growth.wanted), comera.threshold,
               static_cast<uint64_t>(step));
  follow_ranks(step, false);
  const ModelSize size_after = size();
  Json bonds = Json::array();
  for (size_t i = 0; i < layers.size(); ++i)
    for (size_t bond = 0; bond < before[i].size(); ++bond)
      if (live_ranks_[i][bond] != before[i][bond])
        bonds.push_back({{"layer", layers[i].name}, {"bond", bond + 1}, {"from", before[i][bond]}, {"to", live_ranks_[i][bond]}});
  observer_.on_event(step, "regrowth",
                     {{"reason", growth.reason},
                      {"live_before", size_before.entries},
                      {"live_after", size_after.entries},
                      {"entries_before", size_before.held_entries},
                      {"entries_after", size_after.held_entries},
                      {"bonds", bonds},
                      {"held", held_ranks(engine_.params())}});
  observer_.on_memory(step, engine_.memory().now());
}

void Trainer::cut_ranks(int64_t step) {
  const BondEntries cut =
      plan_cut(engine_.params(), engine_.device(), config_.method.comera.threshold, config_.method.comera.prune_dead_share);
  if (cut.empty()) return;
  const int64_t before = size().held_entries;
  engine_.resize(cut);
  const int64_t after = size().held_entries;
  observer_.on_event(step, "truncation", {{"entries_before", before}, {"entries_after", after}, {"held", held_ranks(engine_.params())}});
  observer_.on_memory(step, engine_.memory().now());
}

ModelSize Trainer::size() { return model_size(engine_.params(), live_ranks_, held_ranks(engine_.params()), config_.dtype()); }

}  // namespace comera
