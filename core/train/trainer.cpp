#include "core/train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/config/renamed_settings.h"
#include "core/records/events.h"
#include "core/train/batch_fit.h"

namespace comera {
namespace {

// The model must fit the data before anything is allocated.
RunConfig checked(RunConfig config, const Dataset& train, const Dataset* validation) {
  check_fit(config, train.info(), validation ? &validation->info() : nullptr);
  return config;
}

}  // namespace

void check_processes(const RunConfig& config, const Communicator* others) {
  if (others || config.train.sync_every == 1 || config.train.micro_batches == 1) return;
  const std::string count = std::to_string(config.train.micro_batches);
  throw Error(ErrorCode::config, "one process cannot make the steps of " + count,
              "with train.sync_every above 1 each process trains weights of its own with its part of a batch",
              "start " + count + " processes, or use train.sync_every 1");
}

Trainer::Trainer(RunConfig config, std::shared_ptr<const Dataset> train, std::shared_ptr<const Dataset> validation, Device& device,
                 TrainObserver& observer, Communicator* others, const std::string& checkpoint)
    : config_(checked(std::move(config), *train, validation.get())),
      train_(std::move(train)),
      validation_(std::move(validation)),
      observer_(observer),
      others_(others),
      engine_(
          config_, device,
          [&](ParamSet& params) {
            config_ranks_ = held_ranks(params);
            if (!checkpoint.empty()) take_ranks(params, checkpoint);
          },
          others) {
  engine_.method().attach(*this);
  if (!others_) return;
  check_alike(*others_, train_->info().fingerprint + (validation_ ? validation_->info().fingerprint : ""), "other data",
              "copy the same files to all machines");
  check_alike(*others_, config_to_json(config_).dump(), "other settings", "start all processes with the same command");
}

Trainer::~Trainer() = default;

BatchOptions Trainer::batch_options(bool training) const {
  BatchOptions options;
  options.batch_size = config_.part_batch();
  options.parts = training ? config_.train.micro_batches : 1;
  options.length = config_.model.length;
  options.pack = config_.data.pack;
  options.token_budget = config_.token_capacity();
  options.mask_share = config_.mask_share();
  options.token_dropout = training ? config_.data.token_dropout : 0;
  if (training && others_) {
    options.process = others_->process();
    options.processes = others_->processes();
  }
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

void Trainer::tell_call(const char* call, const std::string& argument, const std::string& value) {
  if (on_call_ && !stepping_) on_call_(call, argument, value);
}

// Where one process fails to begin, all do. And a file that all have read may go.
void Trainer::meet_others() {
  if (others_) others_->exchange("");
}

void Trainer::start() {
  tell_call("start");
  engine_.allocate();
  restart_prefetch();
  report_all();
  meet_others();
}

void Trainer::average() {
  if (!std::exchange(averaged_, true)) engine_.average();
}

// What all decide together follows from the mean.
bool Trainer::averages_after(int64_t step) const {
  return step % config_.train.sync_every == 0 || finished() || scores(step) || engine_.method().waits_for(step);
}

void Trainer::guard_growth() {
  tell_call("guard_growth");
  engine_.method().guard_growth();
}

void Trainer::report_all() {
  drain();
  engine_.method().report(state_.step);
  observer_.on_memory(state_.step, engine_.memory().now());
}

void Trainer::recall(const StepRecord& step, const EvalRecord& eval) {
  last_step_ = step;
  last_eval_ = eval;
  if (eval.step > 0 && validation_) last_eval_.examples = validation_->info().rows;
}

namespace {

bool same_values(MethodConfig a, MethodConfig b) { return field_values(fields_of(a)) == field_values(fields_of(b)); }

}  // namespace

// ---- live changes ----------------------------------------------------------------------------------------------

void Trainer::check_edit(const std::string& path, const std::string& value) const {
  engine_.method().check_edit(config_, current_path(path), value);
}

void Trainer::edit(const std::string& given_path, const std::string& value) {
  const std::string path = current_path(given_path);
  check_edit(path, value);
  tell_call("edit", path, value);
  Method& method = engine_.method();
  if (method.request(path, value)) return;
  drain();
  average();
  method.know(state_.step);
  const std::string old = method.edit(config_, path, value);
  const Json parsed = try_parse_json(value);
  tell(state_.step + 1, EditEvent{path, value, try_parse_json(old), parsed.is_discarded() ? Json(value) : parsed});
  method.after_edit();
  method_changes_ = !same_values(method_wanted(config_), engine_.config().method);
}

void Trainer::check_room(const std::string& given_path, const std::string& value) {
  const std::string path = current_path(given_path);
  check_edit(path, value);
  engine_.method().check_room(path, value);
  const FieldEntry* setting = find_setting(path);
  if (!setting || setting->info.live != Live::replans) return;
  if (const auto lack = comera::lack_of_room(planned_with(path, value), engine_.memory().now(), available_on(engine_.device())))
    throw Error(ErrorCode::memory, path + " stays as it is: " + value + " does not fit", lack->text(), "use a smaller value");
}

MemoryByPurpose Trainer::planned_with(const std::string& path, const std::string& value) const {
  RunConfig changed = config_;
  RankOverrides none;
  apply_edit(changed, none, current_path(path), value);
  return engine_.planned_with(method_wanted(changed));
}

MethodConfig Trainer::method_wanted(const RunConfig& config) const {
  MethodConfig wanted = engine_.config().method;
  wanted.take_shaping(config.method);
  return wanted;
}

void Trainer::change_method(int64_t step) {
  method_changes_ = false;
  const MethodConfig wanted = method_wanted(config_);
  if (same_values(wanted, engine_.config().method)) return;
  drain();
  average();
  if (const auto lack = comera::lack_of_room(engine_.planned_with(wanted), engine_.memory().now(), available_on(engine_.device())))
    throw Error(ErrorCode::memory, "there is no room for the ranks from step " + std::to_string(step) + " on", lack->text(),
                "close other programs, or resume with a smaller rank");
  engine_.change_method(wanted, step);
  tell_memory(step);
}

// In a step all processes decide by the first one that lacks memory.
std::optional<LackOfRoom> Trainer::lack_of_room(const std::function<void(ParamSet&)>& resize) {
  const auto own = comera::lack_of_room(engine_.planned_with(resize), engine_.memory().now(), available_on(engine_.device()));
  if (!others_ || !stepping_) return own;
  for (const std::string& lack : others_->exchange(own ? std::to_string(own->need) + " " + std::to_string(own->free) : ""))
    if (!lack.empty()) return LackOfRoom{std::stoll(lack), std::stoll(lack.substr(lack.find(' ')))};
  return std::nullopt;
}

// ---- one step --------------------------------------------------------------------------------------------------

StepScalars Trainer::scalars_for(int64_t step) const {
  const TrainConfig& train = config_.train;
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
  scalars.learning_rate[static_cast<int>(ParamGroup::rank)] = train.lr_rank * factor;
  scalars.learning_rate[static_cast<int>(ParamGroup::rest)] = train.lr * factor;
  scalars.weight_decay = config_.method.weight_decay();
  scalars.vector_decay = config_.method.decay_vectors() ? 1 : 0;
  engine_.method().scalars(factor, scalars);
  return scalars;
}

void Trainer::step() {
  check_processes(config_, others_);
  tell_call("step");
  struct Stepping {
    bool& on;
    explicit Stepping(bool& on) : on(on) { on = true; }
    ~Stepping() { on = false; }
  } const stepping(stepping_);
  const int64_t step = state_.step + 1;
  const double begin = now_ms();
  prefetcher_->wait();
  StepRecord record;
  record.data_ms = now_ms() - begin;
  in_step_ = true;
  engine_.method().before_step(step);
  if (method_changes_) change_method(step);
  const StepScalars scalars = scalars_for(step);
  int64_t cursor = 0;
  const auto next = [&]() -> const Batch& {
    const double wait = now_ms();
    const Batch& batch = prefetcher_->next();
    record.data_ms += now_ms() - wait;
    cursor = batch.next_cursor;
    return batch;
  };
  engine_.submit(next, scalars);
  state_.step = step;
  if (engine_.is_local()) {
    averaged_ = false;
    if (averages_after(step)) average();
  }

  record.step = step;
  std::copy(std::begin(scalars.learning_rate), std::end(scalars.learning_rate), record.learning_rate);
  record.epoch = static_cast<double>(cursor) / static_cast<double>(train_->info().rows);
  record.target_entries = scalars.size_target;
  record.tokens = engine_.tokens();
  record.times = engine_.times();
  record.shared = engine_.shared_step();
  underway_.push_back({record, begin, state_.cursor});
  state_.cursor = cursor;

  const int lag = engine_.device().lag();
  collect(waits_for_itself(step) ? 0 : static_cast<size_t>(lag));
  // Of one that is under way: how long it held up the host, which is how long a step takes where one waits for another.
  if (!underway_.empty()) underway_.back().record.step_ms = now_ms() - begin;
  engine_.method().know(step - lag);
  if (scores(step)) evaluate_step(step);
  in_step_ = false;
}

void Trainer::evaluate_step(int64_t step) {
  evaluate();
  state_.worse = state_.best_step == step ? 0 : state_.worse + 1;
  if (stops_early())
    tell(step, AlertEvent{.what = "early stop",
                          .text = "no better validation loss in " + std::to_string(state_.worse) + " evaluations, since step " +
                                  std::to_string(state_.best_step)});
}

bool Trainer::scores(int64_t step) const {
  return validation_ && (finished() || (config_.train.eval_every > 0 && step % config_.train.eval_every == 0));
}

bool Trainer::waits_for_itself(int64_t step) const {
  return finished() || engine_.profiled() || scores(step) || engine_.method().waits_for(step);
}

// ---- results ---------------------------------------------------------------------------------------------------

void Trainer::drain() { collect(0); }

void Trainer::collect(size_t may_stay) {
  while (underway_.size() > may_stay) take_results();
}

// Tells of the oldest step under way.
void Trainer::take_results() {
  std::vector<double> mail;
  const StepResults results = engine_.take(&mail);
  const Underway done = std::move(underway_.front());
  underway_.pop_front();
  StepRecord record = done.record;
  const int64_t step = record.step;
  if (!std::isfinite(results.loss)) {
    // With lag, or where parameters are updated during backward, the update has spoiled the values: nothing is to be found there.
    const auto& params = engine_.params().params();
    const bool during = std::any_of(params.begin(), params.end(), [](const Param& param) { return param.way == GradWay::given; });
    const bool late = engine_.device().lag() > 0 || during;
    const std::string bad = late ? "" : first_bad_tensor(), why = bad.empty() ? "the logits overflowed" : "first bad values in " + bad;
    const int64_t behind = static_cast<int64_t>(underway_.size());
    for (; !underway_.empty(); underway_.pop_front()) engine_.take();  // made with spoiled weights
    state_.step = step - 1;
    state_.cursor = done.cursor;
    tell(step, AlertEvent{.what = "diverged", .loss = std::isnan(results.loss) ? "nan" : "inf", .tensor = bad});
    throw Error(ErrorCode::diverged,
                "the loss is " + std::string(std::isnan(results.loss) ? "NaN" : "infinite") + " at step " + std::to_string(step),
                !late ? why
                : behind == 0
                    ? "it has already updated the weights"
                    : std::to_string(behind) + " later " + (behind == 1 ? "step has" : "steps have") + " already updated the weights",
                "resume or fork from the last checkpoint with smaller learning rates");
  }
  record.results = results;
  record.accuracy = results.examples > 0 ? results.correct / results.examples : 0;
  record.examples = static_cast<int64_t>(results.examples);
  engine_.method().after_step(step, results, mail);
  if (record.step_ms == 0) record.step_ms = now_ms() - done.begin;
  last_step_ = record;
  observer_.on_step(record);
}

// The first tensor with a value that is not finite, gradients first: where the trouble shows, for the message.
std::string Trainer::first_bad_tensor() {
  for (const bool gradient : {false, true})
    for (const Param& param : engine_.params().params()) {
      if (gradient && !param.has_grad()) continue;
      for (double value : gradient ? to_host(engine_.device(), param.grad) : to_host(engine_.device(), param))
        if (!std::isfinite(value)) return (gradient ? "the gradient of " : "") + param.name;
    }
  return "";
}

EvalRecord Trainer::evaluate() {
  CHECK(validation_ != nullptr, "no validation data");
  drain();
  const double begin = now_ms();
  const StepScalars scalars = scalars_for(std::max<int64_t>(1, state_.step));
  const BatchOptions options = batch_options(false);
  const Task& task = engine_.task();
  const std::unique_ptr<Scores> scores = task.scores();
  std::vector<double> outputs;
  for (int64_t cursor = 0; make_batch(*validation_, options, cursor, score_batch_); cursor = score_batch_.next_cursor) {
    const StepResults results = engine_.score(score_batch_, scalars, task.wants_outputs() ? &outputs : nullptr);
    scores->add(results, outputs, score_batch_);
  }
  EvalRecord record{scores->values()};
  record.step = state_.step;
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

ModelSize Trainer::size() { return model_size(engine_.params(), live_ranks(), held_ranks(engine_.params()), config_.dtype()); }

}  // namespace comera
