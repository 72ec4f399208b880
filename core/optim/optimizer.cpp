#include "core/optim/optimizer.h"

#include <algorithm>

#include "core/base/draw.h"
#include "core/base/rounding.h"
#include "core/layers/weights.h"
#include "core/ops/quant_math.h"
#include "core/optim/coded.h"
#include "core/optim/state_follow.h"

namespace comera {
namespace {

// The tensors of a state, in the order of memory and checkpoints: (key, shape, dtype, where it goes).
template <class State>
void for_tensors(State& state, DType run, const auto& visit) {
  const StateSpec& spec = state.spec;
  if (!spec.coded()) return visit(std::string(spec.name), spec.shape, spec.format == StateSpec::index ? DType::i32 : run, state.value);
  if (spec.format == StateSpec::int4) {
    const GroupCodes how = group_codes(spec);
    visit(std::string(spec.name) + "4", Shape{how.bytes(spec.shape.count())}, DType::u8, state.value);
    visit("scale_" + std::string(spec.name), Shape{how.groups(spec.shape.count())}, run, state.absmax);
    return visit("zero_" + std::string(spec.name), Shape{how.groups(spec.shape.count())}, run, state.zero);
  }
  visit(std::string(spec.name) + "8", spec.shape, DType::u8, state.value);
  visit("absmax_" + std::string(spec.name), Shape{ceil_div(spec.shape.count(), kQuantBlock)}, DType::f32, state.absmax);
}

int64_t aligned_bytes(const Shape& shape, DType dtype) { return Arena::aligned(shape.count() * static_cast<int64_t>(size_of(dtype))); }

}  // namespace

void Optimizer::attach(Param& param) {
  const auto [place, is_new] = index_.try_emplace(&param, states_.size());
  if (is_new) {
    states_.emplace_back();
    if (const int64_t gap = rule_->refresh_gap(param); gap > 0 && param.trainable) {
      CHECK(refreshed_.empty() || gap == gap_, "two gaps of refreshes: " << gap << " and " << gap_);
      refreshed_.emplace(&param, static_cast<int64_t>(refreshed_.size()));
      gap_ = gap;
    }
  }
  std::vector<ParamState>& states = states_[place->second];
  states.clear();
  if (!param.trainable) return;
  if (param.way == GradWay::summed || param.way == GradWay::projected) {
    param.projected = rule_->sum_shape(param);
    param.way = param.projected == param.shape ? GradWay::summed : GradWay::projected;
  }
  for (const StateSpec& spec : rule_->declare(param, param.shape)) states.push_back({spec});
}

MemoryByPurpose Optimizer::planned(DType dtype) const {
  MemoryByPurpose bytes;
  for (const std::vector<ParamState>& states : states_)
    for (const ParamState& state : states)
      for_tensors(state, dtype, [&](const std::string&, const Shape& shape, DType type, const Tensor&) {
        bytes[Purpose::optimizer] += aligned_bytes(shape, type);
      });
  return bytes;
}

void Optimizer::place(char* base, DType dtype) {
  for (std::vector<ParamState>& states : states_)
    for (ParamState& state : states)
      for_tensors(state, dtype, [&](const std::string&, const Shape& shape, DType type, Tensor& tensor) {
        tensor = Tensor(base, shape, type);
        if (base) base += aligned_bytes(shape, type);
      });
}

void Optimizer::allocate(Device& device, Memory& memory, DType dtype) {
  CHECK(buffer_.bytes() == 0, "the optimizer's state is allocated already");
  memory_ = &memory;
  device_ = &device;
  times_.clear();
  const int64_t bytes = planned(dtype)[Purpose::optimizer];
  buffer_ = Buffer(memory, bytes, Purpose::optimizer);
  char* base = static_cast<char*>(buffer_.data());
  place(base, dtype);
  // The start of every kind of state is zero bytes.
  const std::vector<char> zeros(static_cast<size_t>(std::min<int64_t>(bytes, 1 << 20)), 0);
  const int64_t chunk = static_cast<int64_t>(zeros.size());
  for (int64_t done = 0; done < bytes; done += chunk) device.upload(base + done, zeros.data(), std::min(chunk, bytes - done));
}

void Optimizer::release() {
  for (std::vector<ParamState>& states : states_)
    for (ParamState& state : states) state.value = state.absmax = state.zero = {};
  Buffer gone = std::move(buffer_);
}

namespace {

std::vector<char> bytes_of(Device& device, const Tensor& tensor) {
  std::vector<char> bytes(static_cast<size_t>(tensor.bytes()));
  device.download(bytes.data(), tensor.raw(), tensor.bytes());
  return bytes;
}

bool same_tensors(const StateSpec& a, const StateSpec& b) {
  return std::string_view(a.name) == b.name && a.shape == b.shape && a.format == b.format && a.group == b.group &&
         a.drawn_every == b.drawn_every;
}

}  // namespace

void Optimizer::take_over(Optimizer& before, Device& device, Memory& memory, Ctx& ctx, std::deque<Param>& params, DType dtype) {
  struct Kept {
    std::vector<std::vector<char>> bytes;  // where all states stay as they are
    std::vector<StateNumbers> numbers;     // else
  };
  std::vector<Kept> kept;
  device.synchronize();
  for (Param& param : params) {
    const std::vector<ParamState>&from = before.states_of(param), &to = states_of(param);
    const bool same = std::equal(from.begin(), from.end(), to.begin(), to.end(),
                                 [](const ParamState& a, const ParamState& b) { return same_tensors(a.spec, b.spec); });
    Kept one;
    if (same)
      before.states(param, [&](const std::string&, Tensor& tensor) { one.bytes.push_back(bytes_of(device, tensor)); });
    else
      one.numbers = before.capture(device, ctx, param);
    kept.push_back(std::move(one));
  }
  before.release();
  allocate(device, memory, dtype);
  size_t index = 0;
  for (Param& param : params) {
    const Kept& one = kept[index++];
    size_t next = 0;
    if (one.numbers.empty()) {
      states(param, [&](const std::string&, Tensor& tensor) {
        if (next < one.bytes.size()) device.upload(tensor.raw(), one.bytes[next].data(), tensor.bytes());
        ++next;
      });
      continue;
    }
    std::vector<StateNumbers> numbers;
    for (const ParamState& state : states_of(param)) {
      const auto found = std::find_if(one.numbers.begin(), one.numbers.end(),
                                      [&](const StateNumbers& each) { return std::string_view(each.spec.name) == state.spec.name; });
      if (found != one.numbers.end()) numbers.push_back(followed(*found, state.spec, site_of(param.name)));
    }
    restore(device, ctx, param, numbers);
  }
}

void Optimizer::update(Ctx& ctx, std::deque<Param>& params) {
  for (Param& param : params)
    if (param.has_grad()) step(ctx, param, param.grad);
  rule_->finish(ctx);
}

void Optimizer::take(Ctx& ctx, Param& param, const Tensor& grad) {
  step(ctx, param, grad);
  rule_->finish(ctx);
}

void Optimizer::add_projected(Ctx& ctx, Param& param, const Tensor& grad) {
  rule_->add_projected(ctx, param, param.grad, grad, States(states_of(param)));
}

void Optimizer::update(Ctx& ctx, Param& param) { take(ctx, param, param.grad); }

// The rule sees the decoded numbers of a coded parameter and makes the step at once, so one parameter is decoded at a time.
void Optimizer::step(Ctx& ctx, Param& param, const Tensor& given) {
  if (param.way == GradWay::rows) return step_rows(ctx, param, given);
  const States states(states_of(param));
  const auto make = [&] {
    param.way == GradWay::projected ? rule_->step_of_sum(ctx, param, given, states) : rule_->step(ctx, param, given, states);
  };
  if (!param.coded()) return make();
  Tensor numbers;
  {
    const Decoded decoded(ctx, param);
    make();
    rule_->finish(ctx);
    numbers = param.value;
  }
  keep_numbers(ctx, param, numbers);
}

// The rule sees a parameter that has the rows of the gradient and no others. Places without a row are rows of zeros, which go nowhere.
void Optimizer::step_rows(Ctx& ctx, Param& param, const Tensor& grad) {
  const auto wide = [](const Tensor& t) { return t.view({t.size(0), t.count() / t.size(0)}); };
  const auto taken = [&](const Tensor& table, const char* tag) {
    const Tensor whole = wide(table), y = ctx.temp({grad.size(0), whole.size(1)}, tag);
    ctx.ops.run(op::TakeRows{y, whole, param.rows});
    return y;
  };
  const std::vector<ParamState>& whole = states_of(param);
  of_rows_ = whole;
  for (ParamState& state : of_rows_) {
    CHECK(!state.spec.coded() && state.spec.shape[0] == param.shape[0], state.spec.name << " of '" << param.name << "' has no rows");
    state.value = taken(state.value, "state of rows");
  }
  struct Rows {
    Param& param;
    const Tensor value = param.value;
    const Shape shape = param.shape;
    ~Rows() {
      param.value = value;
      param.shape = shape;
    }
  };
  Tensor value = taken(param.value, "rows");
  {
    const Rows back{param};
    param.value = value;
    param.shape = grad.shape();
    rule_->step(ctx, param, grad, States(of_rows_));
    rule_->finish(ctx);
  }
  ctx.ops.run(op::PutRows{param.value, value, param.rows});
  for (size_t i = 0; i < whole.size(); ++i) ctx.ops.run(op::PutRows{wide(whole[i].value), wide(of_rows_[i].value), param.rows});
  for (ParamState& state : of_rows_) state.value = {};  // gives the temporaries back
}

bool Optimizer::refresh_due(uint64_t step, Refreshed when) {
  return schedule().any_due(step) && std::any_of(refreshed_.begin(), refreshed_.end(), [&](const auto& each) {
           return refreshed(*each.first) == when && refresh_due(*each.first, step);
         });
}

bool Optimizer::refresh_due(const Param& param, uint64_t step) {
  const auto found = refreshed_.find(&param);
  return found != refreshed_.end() && schedule().due(found->second, step) && schedule().due(found->second, step, times_gap(param));
}

Refreshed Optimizer::refreshed(const Param& param) {
  return param.way == GradWay::given || param.way == GradWay::projected ? Refreshed::in_backward : Refreshed::after_backward;
}

bool Optimizer::refreshes_in_backward() const {
  return std::any_of(refreshed_.begin(), refreshed_.end(),
                     [](const auto& each) { return refreshed(*each.first) == Refreshed::in_backward; });
}

// Read on the device, which waits for it, once a refresh: where the next one would be due.
int64_t Optimizer::times_gap(const Param& param) {
  const ParamState* counts = States(states_of(param)).find(kRefreshCounts);
  if (!counts || !counts->value.raw()) return 1;
  const auto [known, is_new] = times_.try_emplace(&param, 1);
  if (is_new) known->second = std::max<int64_t>(1, static_cast<int64_t>(to_host(*device_, counts->value)[0]));
  return known->second;
}

void Optimizer::refresh(Ctx& ctx, std::deque<Param>& params, uint64_t step) {
  for (Param& param : params)
    if (refreshed(param) == Refreshed::after_backward && refresh_due(param, step)) refresh(ctx, param, param.grad, step);
}

void Optimizer::refresh(Ctx& ctx, Param& param, const Tensor& grad, uint64_t step) {
  rule_->refresh(ctx, param, grad, States(states_of(param)), schedule().number(refreshed_.at(&param), step));
  if (!ctx.ops.dry) times_.erase(&param);
}

namespace {
Tensor room_of_part(Ctx& ctx, const Param& param) { return ctx.temp(param.shape, "gradient of a part"); }
}  // namespace

// From the mean over the examples of the part, of the size of the gradient of the whole batch.
void Optimizer::refresh_from_part(Ctx& ctx, Param& param, const Tensor& sum_over_examples, uint64_t step) {
  const Tensor mean = room_of_part(ctx, param);
  ctx.ops.copy(mean, sum_over_examples);
  ctx.ops.run(op::WeightGradients{mean, ctx.results});
  refresh(ctx, param, mean, step);
}

void Optimizer::plan_refresh(Ctx& ctx, std::deque<Param>& params) {
  for (Param& param : params) {
    if (!refreshed_.contains(&param)) continue;
    const Tensor grad = param.way == GradWay::projected ? room_of_part(ctx, param)
                        : param.has_grad()              ? param.grad
                                                        : Tensor(nullptr, param.shape, ctx.dtype);  // one that is given has no place yet
    for (int64_t number = 0; number < Rule::kRefreshKinds; ++number) rule_->refresh(ctx, param, grad, States(states_of(param)), number);
  }
}

std::vector<ParamState>& Optimizer::states_of(const Param& param) {
  const auto found = index_.find(&param);
  CHECK(found != index_.end(), "'" << param.name << "' was not attached to the optimizer");
  return states_[found->second];
}

void Optimizer::states(Param& param, const std::function<void(const std::string& key, Tensor& value)>& visit) {
  times_.erase(&param);  // it may be written
  for (ParamState& state : states_of(param))
    for_tensors(state, DType::f32, [&](const std::string& key, const Shape&, DType, Tensor& tensor) { visit(key, tensor); });
}

void Optimizer::each_state(const Param& param, const std::function<void(const Tensor& value)>& visit) const {
  for (const ParamState& state : states_[index_.at(&param)])
    for_tensors(state, DType::f32, [&](const std::string&, const Shape&, DType, const Tensor& tensor) { visit(tensor); });
}

Tensor Optimizer::scratch(const ParamState& state, Buffer& buffer) const {
  const DType dtype = state.absmax.dtype();
  buffer = Buffer(*memory_, state.spec.shape.count() * static_cast<int64_t>(size_of(dtype)), Purpose::workspace);
  return Tensor(buffer.data(), state.spec.shape, dtype);
}

std::vector<StateNumbers> Optimizer::capture(Device& device, Ctx& ctx, Param& param) {
  std::vector<StateNumbers> out;
  for (const ParamState& state : states_of(param)) {
    if (!state.spec.coded()) {
      out.push_back({state.spec, to_host(device, state.value)});
      continue;
    }
    Buffer buffer;
    const Tensor plain = scratch(state, buffer);
    decode(ctx.ops, plain, state);
    out.push_back({state.spec, to_host(device, plain)});
  }
  return out;
}

void Optimizer::restore(Device& device, Ctx& ctx, Param& param, const std::vector<StateNumbers>& numbers) {
  size_t taken = 0;
  times_.erase(&param);
  for (const ParamState& state : states_of(param)) {
    const StateSpec& spec = state.spec;
    const auto found = std::find_if(numbers.begin(), numbers.end(),
                                    [&](const StateNumbers& each) { return std::string_view(each.spec.name) == spec.name; });
    if (found == numbers.end()) {
      CHECK(spec.axes == kStartsAnew, "state " << spec.name << " of '" << param.name << "' is missing");
      continue;
    }
    ++taken;
    CHECK(static_cast<int64_t>(found->values.size()) == spec.shape.count(),
          "state " << spec.name << " of '" << param.name << "' is " << spec.shape.text());
    if (!spec.coded()) {
      from_host(device, state.value, found->values);
      continue;
    }
    Buffer buffer;
    const Tensor plain = scratch(state, buffer);
    from_host(device, plain, found->values);
    encode(ctx.ops, state, plain);
    device.synchronize();  // the scratch goes now
  }
  CHECK(taken == numbers.size(), numbers.size() << " states for '" << param.name << "', which has " << taken);
}

}  // namespace comera
