// Steps whose parts several processes compute.
#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/train/device_links.h"
#include "core/train/engine.h"
#include "core/train/linked_sum.h"

namespace comera {

// Numbers of gradients (1 MiB in f32) that are summed together during backward: of smaller messages the latency would decide.
constexpr int64_t kSummedTogether = int64_t{1} << 18;

void Engine::check_shared() const {
  const auto refuse = [](const std::string& what, const std::string& why, const std::string& hint) {
    throw Error(ErrorCode::config, what, why, hint);
  };
  const std::string processes = std::to_string(others_->processes()) + " processes";
  if (parts() < others_->processes())
    refuse(processes + " cannot share a batch of " + std::to_string(parts()) + (parts() == 1 ? " part" : " parts"),
           "each computes whole parts of a batch, and their number (train.micro_batches) is fixed when a run begins",
           "start fewer processes, or fork the run with a larger train.micro_batches");
  if (config_.train.sync_every > 1 && parts() != others_->processes())
    refuse(processes + " cannot average the weights of " + std::to_string(parts()) + " parts of a batch",
           "with train.sync_every above 1 each process trains with one part",
           "start " + std::to_string(parts()) + " processes, or one, whose threads stand for them");
}

// Second contributions to gradients are apart where processes sum them: one process adds both of a part before those of the next part.
void Engine::place_shared() {
  if (!shared_) return;
  char* base = static_cast<char*>(second_memory_.data());
  second_bytes_ = 0;
  for (Param& param : params_.params()) {
    if (param.uses == 1 || !param.trainable || is_local()) continue;
    CHECK(param.uses == 2 && param.way == GradWay::summed, param.name << " has " << param.uses << " uses");
    param.second = Tensor(base ? base + second_bytes_ : nullptr, param.shape, config_.dtype());
    second_bytes_ += Arena::aligned(param.second.bytes());
  }
  const std::vector<SharedGradients::Gradient> gradients = shared_gradients();
  shared_->plan(gradients, params_.grads().count(), config_.dtype(), state_sum_ ? state_sum_.count() : 0,
                sums_in_backward() ? kSummedTogether : SharedGradients::kNever);
  if (shared_->linked()) shared_->attach(nullptr, params_.grads(), gradients, state_sum_);  // for the plans of its calls
}

// With the gaps behind them, so that neighbours are one run; but those with a second gradient have just their own numbers.
std::vector<SharedGradients::Gradient> Engine::shared_gradients() const {
  std::vector<const Param*> in_order;
  for (const Param& param : params_.params())
    if (param.has_grad()) in_order.push_back(&param);
  std::sort(in_order.begin(), in_order.end(), [](const Param* a, const Param* b) { return a->grad_place < b->grad_place; });
  std::vector<SharedGradients::Gradient> gradients;
  for (size_t i = 0; i < in_order.size(); ++i) {
    const Param& param = *in_order[i];
    const int64_t own_end = param.grad_place + param.grad_shape().count();
    const int64_t next = i + 1 < in_order.size() ? in_order[i + 1]->grad_place : params_.grads().count();
    gradients.push_back({param.grad_place, param.second ? own_end : next, is_block(param), param.second});
  }
  return gradients;
}

void Engine::plan_rounds() {
  const int64_t rounds = shared_->linked() && !is_local() && !sums_in_backward() ? shared_->rounds() : 0,
                kinds = std::min<int64_t>(rounds, 3);
  for (int64_t kind = 0; kind < kinds; ++kind)
    rounds_.push_back(std::make_unique<Round>(device_, [this, round = kind == kinds - 1 ? rounds - 1 : kind](Arena& arena) {
      Ctx ctx = context(arena, true);
      LinkedSum(*shared_, ctx, round).finish();
    }));
}

// Returns the bytes that this process sent to other devices. A replay makes no calls.
int64_t Engine::run_linked(StepProgram& program, int64_t& sent_by_calls, bool op_by_op) {
  const DeviceLink& link = *link_of(device_, *others_);
  const int64_t before = link.sent_bytes();
  program.run(op_by_op);
  if (const int64_t sent = link.sent_bytes() - before; sent > 0) sent_by_calls = sent;
  return sent_by_calls;
}

// Returns the bytes that this process sent.
int64_t Engine::add_round(int64_t round) {
  if (!shared_->linked()) {
    const int64_t before = others_->sent_bytes();
    shared_->add(device_, round);
    return others_->sent_bytes() - before;
  }
  Round& calls = round + 1 == shared_->rounds() ? *rounds_.back() : *rounds_[round == 0 ? 0 : 1];
  // All processes replay a message or none does: a profile, which this process alone may take, changes nothing here.
  OpProfile* const profile = std::exchange(device_.ops().profile, nullptr);
  const int64_t sent = run_linked(calls.program, calls.sent_bytes, !replay_);
  device_.ops().profile = profile;
  if (profile) device_.synchronize();
  return sent;
}

// Whether any process is profiled. All processes call it, before they may wait for each other on their devices: an error that one of them
// had until then ends the step on all.
bool Engine::any_profiles() const {
  const std::vector<std::string> all = others_->exchange(profile_ ? "profile" : "");
  return std::any_of(all.begin(), all.end(), [](const std::string& text) { return !text.empty(); });
}

int64_t Engine::captures() const {
  int64_t all = grad_.captures() + reduce_.captures() + update_.captures() + score_.captures();
  for (const auto& round : rounds_) all += round->program.captures();
  return all;
}

bool Engine::is_block(const Param& param) const { return std::find(blocks_.begin(), blocks_.end(), &param) != blocks_.end(); }

// Keeps the gradients of blocks, which earlier parts computed: each part has blocks of its own.
void Engine::clear_gradients_but_blocks() {
  if (!has_blocks()) return clear_gradients();
  for (const Param& param : params_.params())
    if (param.has_grad() && !is_block(param)) device_.ops().fill(Mat(param.grad, 1, param.grad.count()), 0);
  for (const Param& param : params_.params())
    if (param.second) device_.ops().fill(param.second, 0);
}

void Engine::collect_blocks() {
  for (Param* param : blocks_) {
    shared_->collect(device_, param->value);
    optimizer_->states(*param, [&](const std::string&, Tensor& state) { shared_->collect(device_, state); });
  }
}

namespace {
int64_t bytes_of_blocks(const SharedGradients& shared, const std::vector<Param*>& blocks) {
  int64_t sum = 0;
  for (const Param* param : blocks) sum += shared.bytes_to_collect(param->value);
  return sum;
}
}  // namespace

// A projection whose sums are projected, too, follows from the first part of the batch. Others get it with all states of its parameter
// while their own parts are under way.
void Engine::refresh_from_part(Param& param, const Tensor& grad) {
  const bool alone = !others_ || is_local();
  if (!optimizer_->refresh_due(param, refreshed_step_) || (!is_local() && part_ >= (alone ? 1 : others_->processes()))) return;
  if (alone || part_ == 0) refresh_with([&](Ctx& ctx) { optimizer_->refresh_from_part(ctx, param, grad, refreshed_step_); });
  if (alone) return;
  const int64_t sent = others_->sent_bytes();
  device_.synchronize();
  optimizer_->states(param, [&](const std::string&, Tensor& state) { shared_->spread(device_, state); });
  shared_step_.sent_bytes += others_->sent_bytes() - sent;
}

bool Engine::has_new_projection(const Param& param, int64_t step) const {
  return param.way == GradWay::projected && optimizer_->refresh_due(param, static_cast<uint64_t>(step));
}

int64_t Engine::bytes_of_projection(const Param& param) const {
  int64_t sum = 0;
  optimizer_->each_state(param, [&](const Tensor& state) { sum += shared_->bytes_to_spread(state); });
  return sum;
}

int64_t Engine::planned_traffic(int64_t step) const {
  if (!shared_) return 0;
  if (is_local()) return step % config_.train.sync_every == 0 ? bytes_to_average() : 0;
  int64_t sum = shared_->sent_bytes() + (has_blocks() && step % method_->read_every() == 0 ? bytes_of_blocks(*shared_, blocks_) : 0);
  for (const Param& param : params_.params())
    if (has_new_projection(param, step)) sum += bytes_of_projection(param);
  return sum;
}

int64_t Engine::planned_traffic() const {
  if (!shared_) return 0;
  if (is_local()) return bytes_to_average() / config_.train.sync_every;
  int64_t projections = 0;
  for (const Param& param : params_.params())
    if (has_new_projection(param, 1)) projections += bytes_of_projection(param);  // the first step has those of all
  return shared_->sent_bytes() + (has_blocks() ? bytes_of_blocks(*shared_, blocks_) / method_->read_every() : 0) +
         (projections > 0 ? projections / optimizer_->refresh_gap() : 0);
}

namespace {
// What a process says of its part.
struct PartResults {
  StepResults results;
  int64_t tokens = 0;
  double compute_ms = 0;
};
}  // namespace

// In rounds of a part each. An error of one process reaches the others in the exchange of results, before they wait for its gradients; if
// they wait for each other during backward, already in any_profiles(). Later errors abort all processes.
void Engine::share_parts(const std::function<const Batch&()>& next, const StepScalars& scalars, bool op_by_op) {
  const int64_t processes = others_->processes();
  StepResults sum;
  int64_t tokens = 0;
  shared_step_.compute_ms.assign(static_cast<size_t>(processes), 0);
  shared_step_.sent_bytes = 0;
  for (int64_t round = 0; round < shared_->rounds(); ++round) {
    PartResults mine;
    tokens_ = 0;
    if (const int64_t part = round * processes + others_->process(); part < parts()) {
      const double begin = now_ms() - waited_ms_;
      begin_part(next, scalars, part, true);
      const double prepared = now_ms();
      const bool meets = round == 0 && (sums_in_backward() || refreshed_step_ > 0);
      times_messages_ = meets && any_profiles();
      const double met_ms = now_ms() - prepared;
      messages_ms_ = 0;
      try {
        run_part(op_by_op || times_messages_);
        device_.download(&mine.results, results_.raw(), sizeof(StepResults));
      } catch (const std::exception& error) {  // others may wait for messages that do not come
        if (meets) others_->abort(error.what());
        throw;
      }
      others_ms_ += met_ms + messages_ms_;
      mine.compute_ms = now_ms() - waited_ms_ - begin - met_ms - messages_ms_;
    }
    mine.tokens = tokens_;
    const double computed = now_ms();
    const std::vector<std::string> all = others_->exchange(std::string(reinterpret_cast<const char*>(&mine), sizeof mine));
    for (int64_t p = 0; p < processes && round * processes + p < parts(); ++p) {
      PartResults part;
      std::memcpy(&part, all[static_cast<size_t>(p)].data(), sizeof part);
      tokens += part.tokens;
      shared_step_.compute_ms[static_cast<size_t>(p)] += part.compute_ms;
      add_results(part.results, sum);
    }
    try {
      if (!sums_in_backward()) shared_step_.sent_bytes += add_round(round);
    } catch (const std::exception& error) {  // others may wait for messages that do not come
      others_->abort(error.what());
    }
    others_ms_ += now_ms() - computed;
  }
  tokens_ = tokens;
}

// By the op that adds parts of this process, which rounds as it does.
void Engine::add_results(const StepResults& part, StepResults& sum) {
  sum.ce = part.ce;
  sum.examples = part.examples;
  sum.correct = part.correct;
  device_.upload(results_.raw(), &sum, sizeof sum);
  device_.ops().run(op::AddPart{results_, one_});
  device_.download(&sum, results_.raw(), sizeof sum);
}

}  // namespace comera
