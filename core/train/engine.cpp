#include "core/train/engine.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <optional>
#include <tuple>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/methods/factor_ranks.h"
#include "core/methods/tables.h"
#include "core/train/batch_fit.h"
#include "core/train/device_links.h"
#include "core/train/forecast.h"
#include "core/train/linked_sum.h"

namespace comera {
namespace {
void keep_sizes(ParamSet&) {}
}  // namespace

Engine::Engine(const RunConfig& config, Device& device, Communicator* others) : Engine(config, device, keep_sizes, others) {}

Engine::Engine(const RunConfig& config, Device& device, const std::function<void(ParamSet&)>& resize, Communicator* others)
    : config_(config),
      device_(device),
      others_(others),
      memory_(device),
      grad_(device, [this](Arena& arena) { grad_program(arena); }),
      reduce_(device, [this](Arena& arena) { reduce_program(arena); }),
      update_(device, [this](Arena& arena) { update_program(arena); }),
      score_(device, [this](Arena& arena) { score_program(arena); }),
      refresh_(device,
               [this](Arena& arena) {
                 Ctx ctx = context(arena, true);
                 optimizer_->plan_refresh(ctx, params_.params());
               }),
      stash_(make_stash(config.method)),
      task_(make_task(config.model)),
      layout_(batch_layout(config.model)) {
  LayerFactory factory(params_, *stash_, make_forms(config_.method, config_.model.tt));
  factory.checkpoint_every = config_.method.checkpoint;
  model_ = build_model(config_.model, factory);
  forms_ = factory.forms();
  optimizer_ = make_optimizer(config_.method);
  replay(config.train.cuda_graph);
  resize(params_);
  for (Param& param : params_.params()) {
    param.way = grad_way(config_, param);
    if (param.way == GradWay::rows) {
      const int64_t lookups = layout_.has_tokens() ? config_.token_capacity() : config_.part_batch();
      param.projected = {std::min(lookups, param.shape[0]), param.shape[1]};
    }
    param.format = weight_format(config_.method, param);
    if (param.group == ParamGroup::rest && param.shape.rank() == 1 && param.kind != ParamKind::rank_vector)
      param.group = ParamGroup::vector;
    optimizer_->attach(param);
  }
  params_.describe(config_.dtype());
  optimizer_->describe(config_.dtype());
  method_ = make_method(config_, params_);
  if (others_) {
    check_shared();
    shared_.emplace(*others_, parts(), link_of(device_, *others_));
    plan_rounds();
    // The norm of all gradients would need those of others.
    if (config_.train.clip_norm == 0) blocks_ = method_->blocks_of(parts());
    if (!std::all_of(blocks_.begin(), blocks_.end(), [&](const Param* param) { return optimizer_->by_entries(*param); })) blocks_.clear();
  }
  place_data();
  place_tables();
  plan();
}

Engine::~Engine() { give_step_memory(); }

// ---- memory ----------------------------------------------------------------------------------------------------

// Batch buffers, step blocks and, behind what is uploaded for a step, outputs in one piece. Before allocate() they have no address.
void Engine::place_data() {
  const bool has_tokens = layout_.has_tokens();
  batch_.examples = config_.part_batch();
  batch_.tokens = has_tokens ? config_.token_capacity() : batch_.examples;
  batch_.longest = has_tokens ? config_.model.length : 0;
  const int64_t counted = keeps_token_outputs_ ? batch_.tokens : config_.counted_capacity();
  bool sparse = false;
  char* base = static_cast<char*>(data_memory_.data());
  int64_t offset = 0;
  const auto place = [&](const Shape& shape, DType dtype) {
    Tensor tensor(base ? base + offset : nullptr, shape, dtype);
    offset += Arena::aligned(tensor.bytes());
    return tensor;
  };
  for (const BatchField& field : layout_.fields) {
    const int64_t rows = field.sparse ? counted : field.per == Per::token ? batch_.tokens : batch_.examples;
    sparse |= field.sparse;
    const bool real = field.dtype != DType::i32;
    batch_[field.name] = place(real || field.width > 1 ? Shape{rows, field.width} : Shape{rows}, real ? config_.dtype() : DType::i32);
  }
  if (sparse) batch_.places = place({counted}, DType::i32);
  scalars_ = place({static_cast<int64_t>(sizeof(StepScalars))}, DType::u8);
  results_ = place({static_cast<int64_t>(sizeof(StepResults))}, DType::u8);
  const int64_t rows = task_->rows() == Per::example ? batch_.examples : keeps_token_outputs_ ? batch_.tokens : 0;
  if (rows > 0) outputs_ = place({rows, config_.model.outputs()}, config_.dtype());
  if (others_) one_ = place({1}, config_.dtype());
  if (follows_parts()) {
    state_begin_ = place(params_.all_states().shape(), config_.dtype());
    state_sum_ = place(params_.all_states().shape(), config_.dtype());
  }
  data_bytes_ = offset;
}

void Engine::keep_token_outputs() {
  CHECK(!allocated_, "outputs to keep are asked for before allocate()");
  keeps_token_outputs_ = true;
  place_data();
  plan();
}

// Made again whenever parameters change their sizes.
void Engine::place_tables() {
  table_bytes_ = method_->table_bytes();
  table_memory_ = Buffer();
  if (allocated_ && table_bytes_ > 0) table_memory_ = Buffer(memory_, table_bytes_, Purpose::data);
  method_->place_tables(device_, static_cast<char*>(table_memory_.data()));
}

namespace {

MemoryByPurpose sum_of(MemoryByPurpose a, const MemoryByPurpose& b) {
  for (size_t i = 0; i < a.bytes.size(); ++i) a.bytes[i] += b.bytes[i];
  return a;
}

// The programs share their memory: the largest plan decides, and says how its bytes are used.
MemoryByPurpose shared_memory(const std::vector<StepProgram*>& programs) {
  const Arena* largest = &programs[0]->arena();
  for (const StepProgram* program : programs)
    if (program->arena().peak_bytes() > largest->peak_bytes()) largest = &program->arena();
  return largest->peak_by_purpose();
}

}  // namespace

void Engine::plan() {
  place_shared();
  device_.plan_workspace(products_of(config_.train.matmul));
  step_work_ = {};
  const Work part = grad_.plan();
  for (int64_t i = 0; i < (shared_ ? shared_->rounds() : parts()); ++i) step_work_ += part;
  for (const auto& round : rounds_) round->program.plan();
  if (reduces()) step_work_ += reduce_.plan();
  step_work_ += update_.plan();
  score_.plan();
  refresh_.plan();  // its work is not a step's
  step_plan_ = shared_memory(programs());
  if (optimizer_->refreshes_in_backward())
    if (const MemoryByPurpose both = sum_of(grad_.arena().peak_by_purpose(), refresh_.arena().peak_by_purpose());
        both.total() > step_plan_.total())
      step_plan_ = both;
  workspace_bytes_ = device_.workspace_bytes();
}

// Which matrices are due changes from step to step, so these calls are planned now. They fit into the plan of all refreshes.
void Engine::refresh_with(const std::function<void(Ctx&)>& calls) {
  const double begin = now_ms();
  Ctx ctx = context(refreshing_, true);
  Ops& ops = device_.ops();
  const Work work = ops.work;
  struct Dry {
    Ops& ops;
    explicit Dry(Ops& ops) : ops(ops) { ops.dry = true; }
    ~Dry() { ops.dry = false; }
  };
  refreshing_.record();
  {
    const Dry dry(ops);
    calls(ctx);
  }
  ops.work = work;
  refreshing_.plan();
  CHECK(refreshing_.peak_bytes() <= refresh_.arena().peak_bytes(), "a refresh of " << refreshing_.peak_bytes() << " bytes was not planned");
  const int64_t in_use = optimizer_->refreshes_in_backward() ? grad_.arena().peak_bytes() : 0;
  refreshing_.attach(static_cast<char*>(step_memory_.data()) + in_use);
  refreshing_.rewind();
  calls(ctx);
  if (device_.lag() == 0 || profile_) device_.synchronize();
  refresh_ms_ += now_ms() - begin;
}

// Each projection is made of its gradient right before the update or the sum that uses it. `sum` learns which gradients are complete; may
// be null.
class Engine::PassTaker final : public GradTaker {
 public:
  PassTaker(Engine& engine, LinkedSum* sum) : engine_(engine), sum_(sum) {}
  void take(Ctx& ctx, Param& param, const Tensor& grad) override {
    const uint64_t step = engine_.refreshed_step_;
    Optimizer& optimizer = *engine_.optimizer_;
    if (step > 0 && optimizer.refresh_due(param, step))
      engine_.refresh_with([&](Ctx& refreshing) { optimizer.refresh(refreshing, param, grad, step); });
    optimizer.take(ctx, param, grad);
  }
  void add_projected(Ctx& ctx, Param& param, const Tensor& grad) override {
    if (engine_.refreshed_step_ > 0) engine_.refresh_from_part(param, grad);
    engine_.optimizer_->add_projected(ctx, param, grad);
  }
  void complete(Ctx&, const Param& param) override {
    if (sum_) sum_->complete(param);
  }

 private:
  Engine& engine_;
  LinkedSum* const sum_;
};

std::vector<StepProgram*> Engine::programs() {
  std::vector<StepProgram*> all{&grad_, &update_, &score_, &refresh_};
  if (reduces()) all.push_back(&reduce_);
  for (const auto& round : rounds_) all.push_back(&round->program);
  return all;
}

MemoryByPurpose Engine::planned() const {
  MemoryByPurpose sum = sum_of(sum_of(params_.planned(config_.dtype()), optimizer_->planned(config_.dtype())), step_plan_);
  sum[Purpose::data] += data_bytes_ + table_bytes_;
  sum[Purpose::workspace] += workspace_bytes_;
  sum[Purpose::gradient] += second_bytes_;
  if (sums_on_device()) sum[Purpose::workspace] += shared_->bytes();
  return sum;
}

MemoryByPurpose Engine::planned_with(const std::function<void(ParamSet&)>& resize) const {
  return Engine(config_, device_, resize, others_).planned();
}

StepMemory Engine::step_memory() const {
  constexpr size_t kParts = 64;
  const auto& [grad, update, scores] = std::tie(grad_.arena(), update_.arena(), score_.arena());
  return {{{"forward", grad.alive(0, grad.turn(), kParts)},
           {"backward", grad.alive(grad.turn(), grad.events(), kParts)},
           {"update", update.alive(0, update.events(), kParts)},
           {"scores", scores.alive(0, scores.events(), kParts)}}};
}

void Engine::give_step_memory() {
  device_.end_loan(workspace_memory_.data());
  workspace_memory_ = Buffer();
  step_memory_ = Buffer();
  shared_memory_ = Buffer();
  second_memory_ = Buffer();
}

void Engine::take_step_memory() {
  give_step_memory();
  if (workspace_bytes_ > 0) {
    workspace_memory_ = Buffer(memory_, workspace_bytes_, Purpose::workspace);
    device_.lend_workspace(workspace_memory_.data(), workspace_bytes_);
  }
  step_memory_ = Buffer(memory_, step_plan_);
  if (shared_) {
    if (second_bytes_ > 0) second_memory_ = Buffer(memory_, second_bytes_, Purpose::gradient);
    place_shared();
    if (sums_on_device() && shared_->bytes() > 0) shared_memory_ = Buffer(memory_, shared_->bytes(), Purpose::workspace);
    host_memory_.resize(sums_on_device() ? 0 : static_cast<size_t>(shared_->bytes()));
    shared_->attach(sums_on_device() ? shared_memory_.data() : host_memory_.data(), params_.grads(), shared_gradients(), state_sum_);
  }
  for (StepProgram* program : programs()) program->arena().attach(step_memory_.data());
  mailbox_ = device_.mailbox(kSlots, static_cast<int64_t>(sizeof(StepResults)) + mail_bytes());
}

void Engine::allocate() {
  CHECK(!allocated_, "allocated twice");
  // Processes of a machine take their memory at the same time: all find room for all before one of them begins.
  const bool among_others = others_ && computes_on_host(device_);
  check_fits(planned(), available_on(device_) / (among_others ? others_->processes_here() : 1));
  if (others_) others_->exchange("");
  device_.set_products(products_of(config_.train.matmul));
  params_.allocate(memory_, config_.dtype());
  optimizer_->allocate(device_, memory_, config_.dtype());
  data_memory_ = Buffer(memory_, data_bytes_, Purpose::data);
  place_data();
  if (others_) device_.ops().fill(one_, 0);
  allocated_ = true;
  place_tables();
  take_step_memory();
  clear_gradients();
  params_.initialise(device_, static_cast<uint64_t>(config_.train.seed));
}

// ---- programs --------------------------------------------------------------------------------------------------

Ctx Engine::context(Arena& arena, bool training) {
  Ctx ctx{device_.ops(), arena, *stash_, scalars_, results_, config_.dtype(), training, {}};
  ctx.part = part_;
  ctx.parts = parts();
  if (layout_.has_tokens()) ctx.sequences = {batch_.at("starts"), batch_.at("lengths"), batch_.longest};
  return ctx;
}

void Engine::grad_program(Arena& arena) {
  Ctx ctx = context(arena, true);
  std::optional<LinkedSum> sum;
  if (sums_in_backward()) sum.emplace(*shared_, ctx, 0, times_messages_ && !ctx.ops.dry ? &device_ : nullptr);
  PassTaker taker(*this, sum ? &*sum : nullptr);
  ctx.taker = &taker;
  ctx.stash.forget();
  Tensor outputs = model_->forward(ctx, batch_);
  Tensor dlogits = ctx.temp(outputs.shape(), "dlogits");
  task_->loss(ctx, outputs, batch_, dlogits);
  outputs = {};
  if (parts() > 1) {
    ctx.ops.run(op::AddPart{results_, dlogits});
  } else if (method_->weighs()) {
    method_->objective(ctx);
    ctx.ops.scale_by_ce_weight(dlogits, results_);
  }
  ctx.arena.mark_turn();
  if (profile_ && !ctx.ops.dry) device_.synchronize();  // so that the phases are told apart; steps are not captured meanwhile
  turn_ms_ = now_ms();
  ctx.stash.forget();
  model_->backward(ctx, std::move(dlogits));
  ctx.stash.forget();
  if (method_->weighs() && parts() == 1) method_->penalise(ctx);
  if (follows_parts()) {
    ctx.ops.axpy(state_sum_, 1, params_.all_states());
    ctx.ops.copy(params_.all_states(), state_begin_);
  }
  if (!sum) return;
  sum->finish();
  messages_ms_ = sum->waited_ms();
}

void Engine::reduce_program(Arena& arena) {
  Ctx ctx = context(arena, true);
  if (parts() > 1) {
    ctx.ops.run(op::FinishParts{results_});
    if (follows_parts()) ctx.ops.scale(params_.all_states(), state_sum_, 1.0 / static_cast<double>(parts()));
    if (method_->weighs()) method_->objective(ctx);
    ctx.ops.run(op::WeightGradients{params_.grads(), results_});
    if (method_->weighs()) method_->penalise(ctx);
  }
  if (config_.train.clip_norm > 0) {
    ctx.ops.run(op::SumOfSquares{results_, params_.grads(), true});
    ctx.ops.run(op::ClipGradients{params_.grads(), results_, config_.train.clip_norm});
  }
}

void Engine::update_program(Arena& arena) {
  Ctx ctx = context(arena, true);
  optimizer_->update(ctx, params_.params());
}

void Engine::score_program(Arena& arena) {
  Ctx ctx = context(arena, false);
  const Tensor outputs = model_->forward(ctx, batch_);
  const Tensor dlogits = ctx.temp(outputs.shape(), "dlogits");
  task_->loss(ctx, outputs, batch_, dlogits);
  if (outputs_) ctx.ops.copy(outputs_, outputs);
}

// ---- one step --------------------------------------------------------------------------------------------------

namespace {

template <class T>
const std::vector<T>& column(const std::map<std::string, std::vector<T>>& columns, const BatchField& field) {
  const auto found = columns.find(field.name);
  CHECK(found != columns.end(), "a batch without the field " << field.name);
  return found->second;
}

// The first value outside of the field's range is an error.
void check_range(const std::vector<int32_t>& values, const BatchField& field) {
  const auto outside = [&](int32_t value) { return value < field.low || value >= field.high; };
  bool any = false;
  for (const int32_t value : values) any |= outside(value);
  if (!any) return;
  const auto first = std::find_if(values.begin(), values.end(), outside);
  throw Error(
      ErrorCode::config,
      field.title + " " + std::to_string(*first) + " is outside " + std::to_string(field.low) + ".." + std::to_string(field.high - 1),
      "place " + std::to_string(first - values.begin()) + " of the batch", field.hint);
}

}  // namespace

// Ops of a replayed program cannot refuse what they find in a tensor, so it is looked at before it goes there.
void Engine::check(const Batch& batch) const {
  for (const BatchField& field : layout_.fields)
    if (field.dtype == DType::i32) check_range(column(batch.ints, field), field);
  if (!layout_.has_tokens()) return;
  const std::vector<int32_t>&starts = batch.ints.at("starts"), &lengths = batch.ints.at("lengths");
  for (size_t s = 0; s < starts.size() && s < lengths.size(); ++s)
    CHECK(int64_t{starts[s]} + lengths[s] <= batch_.tokens, "sequence " << s << " of the batch lies outside its tokens");
}

namespace {

// The values of a sparse field that count, in their order, and their places; `all`: every value. Values beyond the capacity are left out.
void count_values(const std::vector<int32_t>& field, int32_t low, size_t capacity, bool all, std::vector<int32_t>& values,
                  std::vector<int32_t>& places) {
  values.clear();
  places.clear();
  for (size_t i = 0; i < field.size() && values.size() < capacity; ++i) {
    if (!all && field[i] == low) continue;
    values.push_back(field[i]);
    places.push_back(static_cast<int32_t>(i));
  }
  values.resize(capacity, low);
  for (size_t i = places.size(); i < capacity; ++i) places.push_back(static_cast<int32_t>(i % field.size()));  // their gradients are 0
}

}  // namespace

// What a step reads, and results that are nothing yet.
void Engine::upload(const Batch& batch, const StepScalars& scalars, bool with_results) {
  check(batch);
  std::vector<Device::Part>& parts = uploads_;
  parts.clear();
  const auto put = [&](const Tensor& to, const void* from) {
    parts.push_back({static_cast<const char*>(to.raw()) - static_cast<const char*>(data_memory_.data()), from, to.bytes()});
  };
  const auto put_all = [&](const Tensor& to, const auto& from) {
    CHECK(static_cast<int64_t>(from.size()) == to.count(), "a batch of another capacity: " << from.size() << " against " << to.count());
    put(to, from.data());
  };
  for (const BatchField& field : layout_.fields) {
    const Tensor& to = batch_.at(field.name);
    if (field.sparse) {
      count_values(column(batch.ints, field), static_cast<int32_t>(field.low), static_cast<size_t>(to.count()), keeps_token_outputs_,
                   counted_, counted_places_);
      put_all(to, counted_);
      put_all(batch_.places, counted_places_);
    } else if (field.dtype == DType::i32) {
      put_all(to, column(batch.ints, field));
    } else if (const std::vector<float>& reals = column(batch.reals, field); to.dtype() == DType::f32) {
      put_all(to, reals);
    } else {
      std::vector<double>& wide = wide_[field.name];
      wide.assign(reals.begin(), reals.end());
      put_all(to, wide);
    }
  }
  const StepResults results;
  put(scalars_, &scalars);
  if (with_results) put(results_, &results);
  device_.upload_parts(data_memory_.data(), parts);
}

namespace {
// Ops are told to a profile while this lives.
class Profiling {
 public:
  Profiling(Ops& ops, OpProfile* profile, std::unique_ptr<WorkClock>& clock, Device& device) : ops_(ops), profile_(profile) {
    if (!profile_) return;
    if (!clock) clock = device.work_clock();
    profile_->start(*clock, ops_.work.gemm_flops, ops_.work.other_bytes);
    ops_.profile = profile_;
  }
  ~Profiling() { ops_.profile = nullptr; }
  Profiling(const Profiling&) = delete;
  void done() {
    if (profile_) profile_->leave();
  }

 private:
  Ops& ops_;
  OpProfile* const profile_;
};

// The step in whose backward pass projections are refreshed, while this lives.
class RefreshedStep {
 public:
  RefreshedStep(uint64_t& at, uint64_t step) : at_(at) { at_ = step; }
  ~RefreshedStep() { at_ = 0; }
  RefreshedStep(const RefreshedStep&) = delete;

 private:
  uint64_t& at_;
};
}  // namespace

// `first`: the first part that this process computes; sums of gradients then begin with 0.
void Engine::begin_part(const std::function<const Batch&()>& next, StepScalars scalars, int64_t part, bool first) {
  scalars.part = static_cast<uint64_t>(part);
  part_ = part;
  const double wait = now_ms();
  const Batch& batch = next();
  waited_ms_ += now_ms() - wait;
  tokens_ += batch.tokens;
  upload(batch, scalars, first);
  if (first && parts() > 1) part < (others_ ? others_->processes() : parts()) ? clear_gradients() : clear_gradients_but_blocks();
  if (first && follows_parts()) begin_states();
}

void Engine::run_part(bool op_by_op) {
  const double start = turn_ms_ = now_ms();
  if (sums_in_backward())
    shared_step_.sent_bytes += run_linked(grad_, sent_in_backward_, op_by_op);
  else
    grad_.run(op_by_op);
  forward_ms_ += std::max(0.0, turn_ms_ - start);
}

void Engine::submit(const std::function<const Batch&()>& next, const StepScalars& scalars) {
  CHECK(allocated_, "a step before allocate()");
  CHECK(underway() < kSlots, underway() << " steps are in flight and their results were not read");
  const bool looks = device_.lag() == 0, waits = looks || profile_;
  const double begin = now_ms();
  Profiling profiling(device_.ops(), profile_, clock_, device_);
  const bool early = optimizer_->refresh_due(scalars.optimizer_step, Refreshed::in_backward),
             late = optimizer_->refresh_due(scalars.optimizer_step, Refreshed::after_backward);
  const bool op_by_op = profile_ || !replay_;
  const RefreshedStep during(refreshed_step_, early ? scalars.optimizer_step : 0);
  refresh_ms_ = 0;
  StepResults results;
  forward_ms_ = waited_ms_ = others_ms_ = 0;
  tokens_ = 0;
  const bool one_part = parts() == (others_ ? others_->processes() : 1);  // of this process
  const bool eager = op_by_op || early || (!one_part && method_->calls_differ(parts()));
  if (others_) is_local() ? take_own_part(next, scalars, eager) : share_parts(next, scalars, eager);
  for (int64_t part = 0; !others_ && part < parts(); ++part) {
    begin_part(next, scalars, part, part == 0);
    run_part(eager);
  }
  if (reduces()) reduce_.run(op_by_op);
  has_gradients_ = true;
  if (waits) device_.synchronize();
  if (looks) device_.download(&results, results_.raw(), sizeof(results));
  const double given = now_ms() - begin - waited_ms_ - others_ms_ - refresh_ms_;
  double update = now_ms();
  if (!looks || std::isfinite(loss_of(results))) {
    if (late) refresh_with([&](Ctx& ctx) { optimizer_->refresh(ctx, params_.params(), scalars.optimizer_step); });
    update = now_ms();
    update_.run(op_by_op);
    if (has_blocks() && static_cast<int64_t>(scalars.step) % method_->read_every() == 0) {
      const int64_t sent = others_->sent_bytes();
      for (const Param* param : blocks_) shared_->collect(device_, param->value);
      shared_step_.sent_bytes += others_->sent_bytes() - sent;
    }
  }
  profiling.done();
  if (waits) device_.synchronize();
  times_ = waits ? StepTimes{given, refresh_ms_, now_ms() - update, forward_ms_, others_ms_} : StepTimes{};

  const int slot = static_cast<int>(submitted_ % kSlots);
  mailbox_->send(slot, 0, results_.raw(), sizeof(StepResults));
  if (mail_bytes() > 0) mailbox_->send(slot, sizeof(StepResults), method_->mail().raw(), mail_bytes());
  if (is_local()) combine_results(slot);
  ++submitted_;
}

double Engine::loss_of(const StepResults& results) const { return method_->weighs() ? results.loss : results.ce; }

StepResults Engine::take(std::vector<double>* mail) {
  CHECK(underway() > 0, "no step is under way");
  const size_t number = static_cast<size_t>(taken_ % kSlots);
  const char* slot = mailbox_->receive(static_cast<int>(number));
  if (is_local()) slot = combined_[number].data();
  ++taken_;
  StepResults results;
  std::memcpy(&results, slot, sizeof(StepResults));
  results.loss = loss_of(results);
  if (!mail) return results;
  mail->resize(static_cast<size_t>(mail_bytes()) / size_of(config_.dtype()));
  const auto copy = [&]<class T>(T value) {
    for (size_t i = 0; i < mail->size(); ++i) {
      std::memcpy(&value, slot + sizeof(StepResults) + i * sizeof(T), sizeof(T));
      (*mail)[i] = static_cast<double>(value);
    }
  };
  config_.dtype() == DType::f32 ? copy(float{}) : copy(double{});
  return results;
}

StepResults Engine::step(const Batch& batch, const StepScalars& scalars) {
  CHECK(underway() == 0, "steps are under way");
  submit(batch, scalars);
  return take();
}

StepResults Engine::score(const Batch& batch, const StepScalars& scalars, std::vector<double>* outputs) {
  CHECK(allocated_, "a score before allocate()");
  upload(batch, scalars);
  StepResults results;
  score_.run(!replay_);
  device_.download(&results, results_.raw(), sizeof(results));
  CHECK(!outputs || outputs_, "outputs of every token are not kept");
  if (outputs) *outputs = to_host(device_, outputs_);
  return results;
}

// ---- other parameters ------------------------------------------------------------------------------------------

void Engine::reshape(const std::function<void(Memory&, Ctx&)>& change) {
  CHECK(underway() == 0, "new sizes while steps are under way");
  Ctx ctx = context(update_.arena(), true);
  for (StepProgram* program : programs()) program->forget();
  give_step_memory();  // first, so that the old and the new sizes are never held together
  change(memory_, ctx);
  has_gradients_ = false;
  place_tables();
  plan();
  take_step_memory();
  clear_gradients();
}

void Engine::change_method(const MethodConfig& method, int64_t step) {
  const std::optional<int64_t> rank = new_factor_rank(config_.method, method, params_);
  const FactorEntries entries = rank ? entries_at_rank(device_, params_, *rank) : FactorEntries();
  reshape([&](Memory& memory, Ctx& ctx) {
    if (rank) {
      resize_factors(device_, memory, params_, *optimizer_, ctx, entries);
      draw_new_directions(device_, params_, entries, static_cast<uint64_t>(config_.train.seed), step);
    }
    std::unique_ptr<Optimizer> next = make_optimizer(method);
    for (Param& param : params_.params()) next->attach(param);
    next->take_over(*optimizer_, device_, memory, ctx, params_.params(), config_.dtype());
    optimizer_ = std::move(next);
    const auto moved = [](const Param& param) { return param.grad && param.grad.shape() != param.grad_shape(); };
    if (std::any_of(params_.params().begin(), params_.params().end(), moved)) params_.allocate_gradients(memory);
    config_.method = method;
    for (const auto& form : forms_) form->change(method);
  });
}

// Ranks of tensor trains are the present ones; the settings say those of factors.
MemoryByPurpose Engine::planned_with(const MethodConfig& method) const {
  RunConfig config = config_;
  config.method = method;
  const auto present_ranks = [this](ParamSet& params) {
    auto present = params_.params().begin();
    for (Param& param : params.params()) {
      if (param.kind != ParamKind::factor) param.shape = present->shape;
      ++present;
    }
  };
  return Engine(config, device_, present_ranks, others_).planned();
}

void Engine::rewrite(const std::function<void(Ctx&)>& change) {
  CHECK(underway() == 0, "parameters are rewritten while steps are under way");
  device_.synchronize();
  Ctx ctx = context(update_.arena(), true);
  change(ctx);
  has_gradients_ = false;
}

void Engine::begin_states() {
  device_.ops().copy(state_begin_, params_.all_states());
  device_.ops().fill(Mat(state_sum_, 1, state_sum_.count()), 0);
}

// Sums begin with 0, and so do the gaps between gradients, which are in their norm.
void Engine::clear_gradients() {
  const Tensor all = params_.grads();
  if (reduces() && all.count() > 0) device_.ops().fill(Mat(all, 1, all.count()), 0);
  for (const Param& param : params_.params())
    if (param.second) device_.ops().fill(param.second, 0);
}

}  // namespace comera
