#include "core/methods/rank_resize.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "core/base/error.h"

namespace comera {
namespace {

using Bytes = std::vector<char>;

Bytes download(Device& device, const Tensor& tensor) {
  Bytes bytes(static_cast<size_t>(tensor.bytes()));
  if (!bytes.empty()) device.download(bytes.data(), tensor.raw(), tensor.bytes());
  return bytes;
}

void upload(Device& device, const Tensor& tensor, const Bytes& bytes) {
  CHECK(static_cast<int64_t>(bytes.size()) == tensor.bytes(), bytes.size() << " bytes for " << tensor.shape().text());
  if (!bytes.empty()) device.upload(tensor.raw(), bytes.data(), tensor.bytes());
}

double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

// Which slices a parameter shall have: rows of its first axis and columns of its last one, null = those it has. The same
// holds for its states, which may lack axes: those count as size 1.
struct Slice {
  const std::vector<int64_t>* first = nullptr;
  const std::vector<int64_t>* last = nullptr;

  // Null where nothing changes along this axis of a tensor over `axes` of a parameter of `shape`.
  const std::vector<int64_t>* along(const Shape& shape, int axis, unsigned axes) const {
    if (!(axes >> axis & 1u)) return nullptr;
    if (axis == shape.rank() - 1) return last;  // a vector has columns only
    return axis == 0 ? first : nullptr;
  }

  Shape of(const Shape& shape, unsigned axes) const {
    Shape out;
    for (int axis = 0; axis < shape.rank(); ++axis) {
      const std::vector<int64_t>* entries = along(shape, axis, axes);
      out.push_back(entries ? static_cast<int64_t>(entries->size()) : axes >> axis & 1u ? shape[axis] : 1);
    }
    return out;
  }

  // The same on the elements, each `width` items of T; those of new slices are 0.
  template <class T>
  std::vector<T> of(const Shape& shape, unsigned axes, const std::vector<T>& values, size_t width) const {
    const Shape from = Slice{}.of(shape, axes);
    CHECK(values.size() == static_cast<size_t>(from.count()) * width, values.size() << " items for " << from.text());
    const bool vector = shape.rank() == 1;
    const std::vector<int64_t>*rows_kept = vector ? nullptr : along(shape, 0, axes), *columns_kept = along(shape, shape.rank() - 1, axes);
    const int64_t a = vector ? 1 : from[0], b = from[-1], middle = from.count() / std::max<int64_t>(1, a * b);
    std::vector<T> out;
    out.reserve(static_cast<size_t>(of(shape, axes).count()) * width);
    const int64_t rows = rows_kept ? static_cast<int64_t>(rows_kept->size()) : a;
    const int64_t columns = columns_kept ? static_cast<int64_t>(columns_kept->size()) : b;
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t j = 0; j < middle; ++j)
        for (int64_t column = 0; column < columns; ++column) {
          const int64_t i = rows_kept ? (*rows_kept)[static_cast<size_t>(row)] : row,
                        k = columns_kept ? (*columns_kept)[static_cast<size_t>(column)] : column;
          if (i == kNewEntry || k == kNewEntry) {
            out.insert(out.end(), width, T(0));
            continue;
          }
          const T* element = values.data() + static_cast<size_t>((i * middle + j) * b + k) * width;
          out.insert(out.end(), element, element + width);
        }
    return out;
  }

  // 1 for each old element, 0 for each new one.
  std::vector<double> old(const Shape& shape, unsigned axes) const {
    return of(shape, axes, std::vector<double>(static_cast<size_t>(Slice{}.of(shape, axes).count()), 1.0), 1);
  }

  // An optimizer's state. A mean over axes that it lacks keeps its sums; entries that are new there count as 0, or as the mean.
  StateNumbers of(const Shape& shape, StateNumbers state) const {
    state.values = of(shape, state.spec.axes, state.values, 1);
    const bool by_mean = state.spec.grown == StateSpec::mean;
    if (state.spec.averages) {
      const unsigned lacks = all_axes(shape) & ~state.spec.axes;
      const double before = static_cast<double>(Slice{}.of(shape, lacks).count()), now = static_cast<double>(of(shape, lacks).count());
      for (double& value : state.values) value *= before / (by_mean ? std::max(1.0, sum(old(shape, lacks))) : now);
    }
    if (by_mean) {
      const std::vector<double> is_old = old(shape, state.spec.axes);
      const double mean = sum(state.values) / std::max(1.0, sum(is_old));
      for (size_t i = 0; i < is_old.size(); ++i)
        if (is_old[i] == 0) state.values[i] = mean;
    }
    return state;
  }
};

// Old entries ascending, new ones after them, at least one.
bool well_formed(const std::vector<int64_t>& entries, int64_t count) {
  const auto first_new = std::find(entries.begin(), entries.end(), kNewEntry);
  if (entries.empty() || std::any_of(first_new, entries.end(), [](int64_t entry) { return entry != kNewEntry; })) return false;
  for (auto it = entries.begin(); it != first_new; ++it)
    if (*it < 0 || *it >= count || (it != entries.begin() && *it <= *std::prev(it))) return false;
  return true;
}

// The parameters that change, with what becomes of them.
std::map<const Param*, Slice> slices(const ParamSet& params, const BondEntries& bonds) {
  std::map<const Param*, Slice> out;
  CHECK(bonds.size() == params.rank_layers().size(), "bonds of another model");
  for (size_t index = 0; index < bonds.size(); ++index) {
    const RankLayer& layer = params.rank_layers()[index];
    CHECK(bonds[index].size() == layer.ranks.size(), layer.name << ": bonds of another model");
    for (size_t bond = 0; bond < layer.ranks.size(); ++bond) {
      const std::vector<int64_t>& entries = bonds[index][bond];
      const int64_t count = layer.ranks[bond]->count();
      CHECK(well_formed(entries, count), layer.name << ": bond " << bond + 1);
      if (static_cast<int64_t>(entries.size()) == count && entries.back() != kNewEntry) continue;
      out[layer.ranks[bond]].last = &entries;
      out[layer.cores[bond]].last = &entries;
      out[layer.cores[bond + 1]].first = &entries;
    }
  }
  return out;
}

// Everything a parameter is on the host: its value as bytes; its optimizer states as bytes where they stay as they are,
// as numbers, sliced, where they do not.
struct Saved {
  std::vector<Bytes> value;  // its tensors
  std::vector<Bytes> states;
  std::vector<StateNumbers> sliced;
};

void resize(Device& device, Memory& memory, ParamSet& params, Optimizer& optimizer, Ctx& ctx,
            const std::map<const Param*, Slice>& changed) {
  const DType dtype = params.dtype();
  device.synchronize();
  std::vector<Saved> saved;
  for (Param& param : params.params()) {
    Saved one;
    param.stored([&](const char*, const Tensor& tensor) { one.value.push_back(download(device, tensor)); });
    const auto slice = changed.find(&param);
    if (slice == changed.end()) {
      optimizer.states(param, [&](const std::string&, Tensor& state) { one.states.push_back(download(device, state)); });
    } else {
      CHECK(one.value.size() == 1, param.name << ": codes in groups are not cut");
      one.value[0] = slice->second.of(param.shape, all_axes(param.shape), one.value[0], size_of(param.value.dtype()));
      for (StateNumbers& state : optimizer.capture(device, ctx, param))
        if (state.spec.axes != kStartsAnew) one.sliced.push_back(slice->second.of(param.shape, std::move(state)));
    }
    saved.push_back(std::move(one));
  }
  std::vector<Bytes> run_states;
  for (const State& state : params.states()) run_states.push_back(download(device, state.value));

  optimizer.release();  // before anything new is taken, so that old and new never lie side by side
  params.release();
  for (Param& param : params.params()) {
    const auto slice = changed.find(&param);
    if (slice != changed.end()) param.shape = slice->second.of(param.shape, all_axes(param.shape));
    optimizer.attach(param);
  }
  params.allocate(memory, dtype);
  optimizer.allocate(device, memory, dtype);

  size_t index = 0;
  for (Param& param : params.params()) {
    const Saved& one = saved[index++];
    size_t stored = 0;
    param.stored([&](const char*, const Tensor& tensor) { upload(device, tensor, one.value[stored++]); });
    if (changed.count(&param)) {
      optimizer.restore(device, ctx, param, one.sliced);
    } else {
      size_t next = 0;
      optimizer.states(param, [&](const std::string&, Tensor& state) { upload(device, state, one.states[next++]); });
    }
  }
  index = 0;
  for (const State& state : params.states()) upload(device, state.value, run_states[index++]);
}

}  // namespace

void resize_bonds(Device& device, Memory& memory, ParamSet& params, Optimizer& optimizer, Ctx& ctx, const BondEntries& bonds) {
  if (!bonds.empty()) resize(device, memory, params, optimizer, ctx, slices(params, bonds));
}

void resize_factors(Device& device, Memory& memory, ParamSet& params, Optimizer& optimizer, Ctx& ctx, const FactorEntries& entries) {
  const std::vector<LoraFactors> factors = lora_factors(params);
  CHECK(entries.size() == factors.size(), "factors of another model");
  std::map<const Param*, Slice> changed;
  for (size_t i = 0; i < factors.size(); ++i) {
    const Param& a = *factors[i].a;
    CHECK(well_formed(entries[i], a.shape[0]), a.name << ": entries");
    changed[&a].first = &entries[i];
    changed[factors[i].b].last = &entries[i];
  }
  resize(device, memory, params, optimizer, ctx, changed);
}

}  // namespace comera
