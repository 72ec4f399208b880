// What others see of a run that trains: the snapshot, the summary in the store, and the parts somebody looks at.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/session/inspect.h"
#include "core/session/runner.h"
#include "core/train/system_memory.h"
#include "core/train/trainer.h"

namespace comera {
namespace {

constexpr double kPublishSeconds = 1.0 / 60;  // the screen shows no more
constexpr double kSettledSeconds = 3;         // short runs end before: measuring the device takes a second
constexpr double kLookSeconds = 0.5;          // between two looks at a core: it is copied whole

}  // namespace

// Before the first values are drawn there are no ranks to count.
bool Runner::knows_size() const { return !trainer_->live_ranks().empty() || trainer_->engine().params().rank_layers().empty(); }

void Runner::update_summary() {
  if (!trainer_ || !recorder_.writer()) return;
  const EvalRecord& eval = trainer_->last_eval();
  RunSummary summary;
  summary.step = trainer_->steps_told();
  summary.total_steps = trainer_->total_steps();
  summary.stage = trainer_->engine().method().late() ? "late" : "early";
  if (trainer_->last_step().step > 0) summary.train_loss = trainer_->last_step().results.ce;
  if (eval.examples > 0) {
    summary.val_loss = eval.loss;
    summary.val_accuracy = eval.accuracy;
  }
  if (knows_size()) {
    const ModelSize size = trainer_->size();
    summary.entries = size.entries;
    summary.bytes = size.bytes;
    summary.dense_bytes = size.bytes * size.compression;
    summary.compression = size.entries > 0 ? size.compression : kUnknown;  // 0 entries: all tensor trains are pruned
  }
  if (const int64_t peak = trainer_->engine().memory().peak().total(); peak > 0) summary.peak_bytes = static_cast<double>(peak);
  if (const double step_ms = recorder_.step_ms_quantile(0.5); step_ms > 0) summary.step_ms = step_ms;
  recorder_.writer()->summary(summary);
}

void Runner::publish(bool force) {
  if (!force && seconds_since(last_publish_) < kPublishSeconds) return;
  last_publish_ = Clock::now();
  if (trainer_) {
    const TrainState& state = trainer_->state();
    snapshot_.step = trainer_->steps_told();
    snapshot_.total_steps = trainer_->total_steps();
    snapshot_.epoch = trainer_->last_step().epoch;
    snapshot_.total_epochs = static_cast<double>(snapshot_.total_steps) / static_cast<double>(trainer_->steps_per_epoch());
    snapshot_.late = trainer_->engine().method().late();
    snapshot_.last = trainer_->last_step();
    snapshot_.target_entries = snapshot_.last.target_entries;
    snapshot_.eval = trainer_->last_eval();
    snapshot_.best_loss = state.best_loss;
    snapshot_.best_accuracy = state.best_accuracy;
    snapshot_.best_step = state.best_step;
    if (knows_size()) snapshot_.size = trainer_->size();
    snapshot_.ranks.clear();
    const auto& layers = trainer_->engine().params().rank_layers();
    const LiveRanks held = held_ranks(trainer_->engine().params());
    const RankOverrides& overrides = trainer_->engine().method().overrides();
    const LiveRanks& initial = trainer_->engine().method().initial_ranks();
    for (size_t i = 0; i < layers.size() && i < trainer_->live_ranks().size(); ++i)
      snapshot_.ranks.push_back(layer_ranks(layers[i], trainer_->live_ranks()[i], held[i], initial[i], overrides));
    snapshot_.inspected = {};
    if (inspected_bond_ > 0) {
      const RankLayer& layer = layers[static_cast<size_t>(inspected_layer_)];
      snapshot_.inspected = {layer.name, inspected_bond_, state.step,
                             to_host(*device_, layer.ranks[static_cast<size_t>(inspected_bond_ - 1)]->value)};
    }
    look_at_core();
    snapshot_.memory_now = trainer_->engine().memory().now();
    snapshot_.memory_peak = trainer_->engine().memory().peak();
    // The largest plan so far: a growth makes a larger one.
    if (const MemoryByPurpose planned = trainer_->engine().planned(); planned.total() > snapshot_.memory_planned.total())
      snapshot_.memory_planned = planned;
    show_speed();
    if (force) {
      snapshot_.step_ms_median = recorder_.step_ms_quantile(0.5);
      snapshot_.step_ms_p95 = recorder_.step_ms_quantile(0.95);
    }
    update_summary();
  }
  snapshot_.elapsed_s = seconds_since(began_);
  snapshot_.pause_at = run_until_;
  snapshot_.pause_at_event = to_event_;
  snapshot_.saved_at = recorder_.writer() ? recorder_.writer()->saved_at() : 0;
  snapshot_.store_problem = recorder_.writer() ? recorder_.writer()->store_problem() : "";
  if (!checkpoint_problem_.empty()) snapshot_.store_problem += (snapshot_.store_problem.empty() ? "" : "; ") + checkpoint_problem_;
  session_.publish(std::make_shared<const Snapshot>(snapshot_), recorder_.take_records());
}

void Runner::show_speed() {
  double step_ms = recorder_.recent_step_ms();
  if (step_ms <= 0) return;
  if (start_.watched && seconds_since(began_) > kSettledSeconds && snapshot_.phase == Phase::running) {
    const double share = gemm_share(trainer_->engine().step_work().gemm_flops / 1e9, step_ms, device_rates());
    snapshot_.gemm_share = share <= 1 ? share : 0;  // above: the rate was measured while other programs took the cores
  }
  if (const double limit = trainer_->config().train.max_steps_per_s; limit > 0) step_ms = std::max(step_ms, 1000 / limit);
  snapshot_.steps_per_s = 1000 / step_ms;
  snapshot_.tokens_per_s = snapshot_.steps_per_s * recorder_.mean_tokens();
  snapshot_.eta_s = static_cast<double>(snapshot_.total_steps - snapshot_.step) * step_ms / 1000;
}

void Runner::inspect(const InspectCommand& what) {
  const auto& layers = trainer_->engine().params().rank_layers();
  const auto found = std::find_if(layers.begin(), layers.end(), [&](const RankLayer& layer) { return layer.name == what.layer; });
  inspected_layer_ = found - layers.begin();
  inspected_bond_ = inspected_core_ = 0;
  snapshot_.inspected_core = {};
  if (what.bond == 0 && what.core == 0) return;
  const auto has = [&](int64_t number, const auto& parts) { return number >= 0 && number <= static_cast<int64_t>(parts.size()); };
  if (found == layers.end() || !has(what.bond, found->ranks) || !has(what.core, found->cores))
    throw Error(ErrorCode::usage,
                (what.bond ? "no bond '" : "no core '") + what.layer + "." + std::to_string(what.bond ? what.bond : what.core) + "'",
                "this model has none of that name");
  inspected_bond_ = what.bond;
  inspected_core_ = what.core;
}

// Now and then while somebody looks, not with every snapshot; at once when it is paused.
void Runner::look_at_core() {
  InspectedCore& seen = snapshot_.inspected_core;
  const int64_t step = trainer_->state().step;
  if (inspected_core_ == 0 || (seen.core != 0 && (seen.step == step || (!paused_ && seconds_since(last_look_) < kLookSeconds)))) return;
  last_look_ = Clock::now();
  const RankLayer& layer = trainer_->engine().params().rank_layers()[static_cast<size_t>(inspected_layer_)];
  const Param& core = *layer.cores[static_cast<size_t>(inspected_core_ - 1)];
  std::vector<int64_t> shape;
  for (int axis = 0; axis < core.shape.rank(); ++axis) shape.push_back(core.shape[axis]);
  seen = describe_core(layer.name, inspected_core_, step, std::move(shape), to_host(*device_, core.value));
  if (trainer_->engine().has_gradients() && core.has_grad()) seen.gradient_norm = norm_of(to_host(*device_, core.grad));
}

// Once a session. Where there is no room for it they are not known.
const DeviceRates& Runner::device_rates() {
  if (rates_) return *rates_;
  rates_.emplace();
  if (available_on(*device_) > 2 * kRatesBytes) try {
      *rates_ = measure_rates(*device_);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::memory) throw;
    } catch (const std::bad_alloc&) {
    }
  return *rates_;
}

}  // namespace comera
