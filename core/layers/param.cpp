#include "core/layers/param.h"

#include <algorithm>
#include <utility>

#include "core/base/draw.h"
#include "core/base/error.h"
#include "core/base/rounding.h"
#include "core/ops/group_codes.h"
#include "core/ops/small_floats.h"

namespace comera {
namespace {

// Hands out the bytes of one block from front to back. Without a base it only counts.
struct Cursor {
  char* base = nullptr;
  int64_t used = 0;

  Tensor place(const Shape& shape, DType dtype) {
    Tensor tensor(base ? base + used : nullptr, shape, dtype);
    used += Arena::aligned(tensor.bytes());
    return tensor;
  }
  // All that was placed behind the first `begin` bytes.
  Tensor run(int64_t begin, DType dtype) const {
    return {base ? base + begin : nullptr, {(used - begin) / static_cast<int64_t>(size_of(dtype))}, dtype};
  }
};

// Where everything lies, by purpose; the one walk that describing, planning and allocating share.
struct Layout {
  Cursor cores, dense, ranks, grads, states;

  Cursor& of(const Param& param) { return param.kind == ParamKind::tt_core ? cores : dense; }
  MemoryByPurpose bytes() const {
    MemoryByPurpose out;
    out[Purpose::tt_core] = cores.used;
    out[Purpose::dense_weight] = dense.used;
    out[Purpose::rank_vector] = ranks.used;
    out[Purpose::gradient] = grads.used;
    out[Purpose::data] = states.used;  // neither trained nor an optimizer's
    return out;
  }
};

// Rank vectors of all layers as one tensor, in the order of the layers.
int64_t rank_values(const std::deque<RankLayer>& layers) {
  int64_t count = 0;
  for (const RankLayer& layer : layers)
    for (const Param* rank : layer.ranks) count += rank->count();
  return count;
}

struct IsCoded {};
struct IsRows {};
struct IsPlace {};

// Calls visit(param, value, grad), visit(param, scale, zero, IsCoded), visit(param, rows, IsRows), visit(param, place of grad in all
// gradients, IsPlace) and visit(state, value) for everything.
template <class Params, class States, class Visit>
ParamRuns place_all(Layout& layout, Params& params, States& states, const std::deque<RankLayer>& layers, DType dtype, const Visit& visit) {
  const int64_t count = rank_values(layers);
  ParamRuns runs;
  int64_t in_layers = 0, in_params = 0;
  if (count > 0) {
    const int64_t place = layout.grads.used / static_cast<int64_t>(size_of(dtype));
    runs.ranks = layout.ranks.place({count}, dtype);
    runs.rank_grads = layout.grads.place({count}, dtype);
    int64_t first = 0;
    for (const RankLayer& layer : layers)
      for (Param* rank : layer.ranks) {
        visit(*rank, place + first, IsPlace{});
        visit(*rank, runs.ranks.rows(first, rank->count()), runs.rank_grads.rows(first, rank->count()));
        first += rank->count();
        ++in_layers;
      }
  }
  for (auto& param : params) {
    if (param.kind == ParamKind::rank_vector) {
      CHECK(param.shape.rank() == 1 && param.has_grad(), param.name << " " << param.shape.text());
      ++in_params;
      continue;
    }
    Cursor& weights = layout.of(param);
    const Tensor value = weights.place(param.shape, param.stored_as(dtype));
    if (param.format == WeightFormat::int8) {
      const Shape groups{ceil_div(param.count(), kWeightGroup)};
      const Tensor scale = weights.place(groups, dtype);
      visit(param, scale, weights.place(groups, dtype), IsCoded{});
    }
    if (param.has_grad()) visit(param, layout.grads.used / static_cast<int64_t>(size_of(dtype)), IsPlace{});
    visit(param, value, param.has_grad() ? layout.grads.place(param.grad_shape(), dtype) : Tensor());
    if (param.has_grad() && param.way == GradWay::rows) visit(param, layout.states.place({param.projected[0]}, DType::i32), IsRows{});
  }
  CHECK(in_layers == in_params, in_params << " rank vectors, of which " << in_layers << " belong to a rank layer");
  const int64_t first = layout.states.used;
  for (auto& state : states) visit(state, layout.states.place(state.shape, dtype));
  runs.states = layout.states.run(first, dtype);
  runs.grads = layout.grads.run(0, dtype);
  return runs;
}

struct SetTensors {
  void operator()(Param& param, const Tensor& value, const Tensor& grad) const {
    param.value = value;
    param.grad = grad;
  }
  void operator()(Param& param, const Tensor& scale, const Tensor& zero, IsCoded) const {
    param.scale = scale;
    param.zero = zero;
  }
  void operator()(Param& param, const Tensor& rows, IsRows) const { param.rows = rows; }
  void operator()(Param& param, int64_t place, IsPlace) const { param.grad_place = place; }
  void operator()(State& state, const Tensor& value) const { state.value = value; }
};

struct SetGradients {
  void operator()(Param& param, const Tensor&, const Tensor& grad) const { param.grad = grad; }
  void operator()(Param& param, int64_t place, IsPlace) const { param.grad_place = place; }
  void operator()(Param&, const Tensor&, const Tensor&, IsCoded) const {}
  void operator()(Param&, const Tensor&, IsRows) const {}
  void operator()(State&, const Tensor&) const {}
};

struct OnlyCount {
  void operator()(const Param&, const Tensor&, const Tensor&) const {}
  void operator()(const Param&, const Tensor&, const Tensor&, IsCoded) const {}
  void operator()(const Param&, const Tensor&, IsRows) const {}
  void operator()(const Param&, int64_t, IsPlace) const {}
  void operator()(const State&, const Tensor&) const {}
};

Layout layout_of(const ParamSet& set, DType dtype) {
  Layout layout;
  place_all(layout, set.params(), set.states(), set.rank_layers(), dtype, OnlyCount{});
  return layout;
}

template <class T>
std::vector<double> download_as(Device& device, const Tensor& tensor) {
  std::vector<T> raw(static_cast<size_t>(tensor.count()));
  if (!raw.empty()) device.download(raw.data(), tensor.raw(), tensor.bytes());
  return std::vector<double>(raw.begin(), raw.end());
}

template <class T>
void upload_as(Device& device, const Tensor& tensor, const std::vector<double>& values) {
  std::vector<T> raw(values.size());
  std::transform(values.begin(), values.end(), raw.begin(), [](double value) { return static_cast<T>(value); });
  if (!raw.empty()) device.upload(tensor.raw(), raw.data(), tensor.bytes());
}

}  // namespace

// ---- declaring ----------------------------------------------------------------------------------------------------
Param& ParamSet::add(std::string name, Shape shape, ParamKind kind, ParamGroup group, Init init) {
  CHECK(!find(name), "two parameters are called '" << name << "'");
  params_.push_back({std::move(name), shape, kind, group, init});
  return params_.back();
}

State& ParamSet::add_state(std::string name, Shape shape, double initial) {
  for (const State& state : states_) CHECK(state.name != name, "two states are called '" << name << "'");
  states_.push_back({std::move(name), shape, {}, initial});
  return states_.back();
}

RankLayer& ParamSet::add_rank_layer(RankLayer layer) {
  CHECK(layer.cores.size() == layer.ranks.size() + 1 && layer.mode_sizes.size() == layer.cores.size(), layer.name);
  rank_layers_.push_back(std::move(layer));
  return rank_layers_.back();
}

Param* ParamSet::find(const std::string& name) {
  for (Param& param : params_)
    if (param.name == name) return &param;
  return nullptr;
}

int64_t ParamSet::count() const {
  int64_t sum = 0;
  for (const Param& param : params_) sum += param.count();
  return sum;
}

int64_t ParamSet::trained() const {
  int64_t sum = 0;
  for (const Param& param : params_) sum += param.trainable ? param.count() : 0;
  return sum;
}

int64_t ParamSet::dense_equivalent() const {
  int64_t sum = 0;
  for (const Param& param : params_)
    if (param.kind != ParamKind::tt_core && param.kind != ParamKind::rank_vector && param.kind != ParamKind::factor) sum += param.count();
  for (const RankLayer& layer : rank_layers_) sum += layer.dense_entries();
  return sum;
}

// ---- memory -------------------------------------------------------------------------------------------------------
void ParamSet::describe(DType dtype) {
  CHECK(buffers_.empty(), "described while allocated");
  dtype_ = dtype;
  Layout layout;
  runs_ = place_all(layout, params_, states_, rank_layers_, dtype, SetTensors{});
}

MemoryByPurpose ParamSet::planned(DType dtype) const { return layout_of(*this, dtype).bytes(); }

void ParamSet::allocate(Memory& memory, DType dtype) {
  CHECK(buffers_.empty(), "the parameters are allocated already");
  dtype_ = dtype;
  const Layout sizes = layout_of(*this, dtype);
  Layout layout;
  std::vector<Buffer> buffers;  // given back if one of them is too much
  Buffer gradients;
  const auto take = [&](Cursor& cursor, int64_t bytes, Purpose purpose) {
    if (bytes == 0) return;
    Buffer& buffer = purpose == Purpose::gradient ? gradients : buffers.emplace_back();
    buffer = Buffer(memory, bytes, purpose);
    cursor.base = static_cast<char*>(buffer.data());
  };
  take(layout.cores, sizes.cores.used, Purpose::tt_core);
  take(layout.dense, sizes.dense.used, Purpose::dense_weight);
  take(layout.ranks, sizes.ranks.used, Purpose::rank_vector);
  take(layout.grads, sizes.grads.used, Purpose::gradient);
  take(layout.states, sizes.states.used, Purpose::data);
  runs_ = place_all(layout, params_, states_, rank_layers_, dtype, SetTensors{});
  buffers_ = std::move(buffers);
  gradients_ = std::move(gradients);
}

void ParamSet::allocate_gradients(Memory& memory) {
  CHECK(!buffers_.empty(), "gradients of parameters that are not allocated");
  gradients_ = {};
  const int64_t bytes = layout_of(*this, dtype_).grads.used;
  if (bytes > 0) gradients_ = Buffer(memory, bytes, Purpose::gradient);
  Layout layout;
  layout.grads.base = static_cast<char*>(gradients_.data());
  const ParamRuns runs = place_all(layout, params_, states_, rank_layers_, dtype_, SetGradients{});
  runs_.rank_grads = runs.rank_grads;
  runs_.grads = runs.grads;
}

void ParamSet::release() {
  buffers_.clear();
  gradients_ = {};
  describe(dtype_);  // no address may outlive its memory
}

std::vector<double> drawn_values(const Param& param, uint64_t seed, uint32_t step) {
  const auto count = static_cast<size_t>(param.count());
  const Philox random{seed, step, site_of(param.name)};
  std::vector<double> values;
  switch (param.init.kind) {
    case Init::zeros:
    case Init::ones:
      return std::vector<double>(count, param.init.kind == Init::ones ? 1.0 : 0.0);
    case Init::normal:
      values = draw_normals(random, count);
      break;
    case Init::uniform:
      values = draw_uniforms(random, count);
      break;
    case Init::orthonormal: {
      const auto rows = static_cast<size_t>(param.shape[param.shape.rank() - 2]),
                 columns = static_cast<size_t>(param.shape[param.shape.rank() - 1]);
      values = draw_orthonormal(random, count / (rows * columns), rows, columns);
      break;
    }
  }
  for (double& value : values) value *= param.init.scale;
  return values;
}

void ParamSet::initialise(Device& device, uint64_t seed) {
  for (const Param& param : params_) from_host(device, param, drawn_values(param, seed));
  for (const State& state : states_)
    from_host(device, state.value, std::vector<double>(static_cast<size_t>(state.value.count()), state.initial));
}

// ---- host copies --------------------------------------------------------------------------------------------------
std::vector<double> to_host(Device& device, const Tensor& tensor) {
  switch (tensor.dtype()) {
    case DType::f32:
      return download_as<float>(device, tensor);
    case DType::f64:
      return download_as<double>(device, tensor);
    case DType::i32:
      return download_as<int32_t>(device, tensor);
    case DType::bf16: {
      std::vector<double> values = download_as<uint16_t>(device, tensor);
      for (double& value : values) value = from_bf16(static_cast<uint16_t>(value));
      return values;
    }
    case DType::u8:
      break;
  }
  return download_as<uint8_t>(device, tensor);
}

void from_host(Device& device, const Tensor& tensor, const std::vector<double>& values) {
  CHECK(static_cast<int64_t>(values.size()) == tensor.count(), values.size() << " values for " << tensor.shape().text());
  switch (tensor.dtype()) {
    case DType::f32:
      return upload_as<float>(device, tensor, values);
    case DType::f64:
      return upload_as<double>(device, tensor, values);
    case DType::i32:
      return upload_as<int32_t>(device, tensor, values);
    case DType::u8:
      return upload_as<uint8_t>(device, tensor, values);
    case DType::bf16: {
      std::vector<double> codes(values.size());
      std::transform(values.begin(), values.end(), codes.begin(), [](double value) { return bf16_of(static_cast<float>(value)); });
      return upload_as<uint16_t>(device, tensor, codes);
    }
  }
}

namespace {

// Codes of numbers of type T, whose scales and zeros have it, too.
template <class T>
struct HostCodes {
  std::vector<double> codes, scale, zero;

  explicit HostCodes(const std::vector<double>& values) : codes(values.size()) {
    for (size_t first = 0; first < values.size(); first += kWeightGroup) {
      const size_t last = std::min(values.size(), first + static_cast<size_t>(kWeightGroup));
      T low = 0, high = 0, bad = 0;
      for (size_t i = first; i < last; ++i) {
        const T x = static_cast<T>(values[i]);
        low = std::min(low, x);
        high = std::max(high, x);
        bad += x - x;
      }
      const GroupRange<T> range = GroupRange<T>::of(low, high, bad, 8);
      for (size_t i = first; i < last; ++i) codes[i] = range.code(static_cast<T>(values[i]), 8);
      scale.push_back(static_cast<double>(range.scale));
      zero.push_back(static_cast<double>(range.zero));
    }
  }
};

template <class T>
void upload_codes(Device& device, const Param& param, const std::vector<double>& values) {
  const HostCodes<T> coded(values);
  from_host(device, param.value, coded.codes);
  from_host(device, param.scale, coded.scale);
  from_host(device, param.zero, coded.zero);
}

}  // namespace

std::vector<double> to_host(Device& device, const Param& param) {
  std::vector<double> values = to_host(device, param.value);
  if (param.format != WeightFormat::int8) return values;
  const std::vector<double> scale = to_host(device, param.scale), zero = to_host(device, param.zero);
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t group = i / static_cast<size_t>(kWeightGroup);
    values[i] = (values[i] - zero[group]) * scale[group];
  }
  return values;
}

void from_host(Device& device, const Param& param, const std::vector<double>& values) {
  if (param.format != WeightFormat::int8) return from_host(device, param.value, values);
  param.scale.dtype() == DType::f64 ? upload_codes<double>(device, param, values) : upload_codes<float>(device, param, values);
}

}  // namespace comera
