#include "core/methods/rank_resize.h"

#include <algorithm>
#include <map>

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

// Which slices a parameter shall have: rows of its first axis and columns of its last one, null = those it has.
struct Slice {
  const std::vector<int64_t>* first = nullptr;
  const std::vector<int64_t>* last = nullptr;

  Shape of(const Shape& shape) const {
    Shape out;
    for (int axis = 0; axis < shape.rank(); ++axis) {
      int64_t size = shape[axis];
      if (axis == 0 && first) size = static_cast<int64_t>(first->size());
      if (axis == shape.rank() - 1 && last) size = static_cast<int64_t>(last->size());
      out.push_back(size);
    }
    return out;
  }

  // The same on the elements, each `width` items of T; those of new slices are 0.
  template <class T>
  std::vector<T> of(const Shape& shape, const std::vector<T>& values, size_t width) const {
    const bool vector = shape.rank() == 1;
    const int64_t a = vector ? 1 : shape[0], b = shape[-1], middle = shape.count() / std::max<int64_t>(1, a * b);
    std::vector<T> out;
    out.reserve(static_cast<size_t>(of(shape).count()) * width);
    const int64_t rows = first && !vector ? static_cast<int64_t>(first->size()) : a;
    const int64_t columns = last ? static_cast<int64_t>(last->size()) : b;
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t j = 0; j < middle; ++j)
        for (int64_t column = 0; column < columns; ++column) {
          const int64_t i = first && !vector ? (*first)[static_cast<size_t>(row)] : row,
                        k = last ? (*last)[static_cast<size_t>(column)] : column;
          if (i == kNewEntry || k == kNewEntry) {
            out.insert(out.end(), width, T(0));
            continue;
          }
          const T* element = values.data() + static_cast<size_t>((i * middle + j) * b + k) * width;
          out.insert(out.end(), element, element + width);
        }
    return out;
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

// Everything a parameter is on the host: its value as bytes; its optimizer state as bytes where it stays as it is,
// as numbers, sliced, where it does not.
struct Saved {
  Bytes value;
  std::vector<Bytes> states;
  std::vector<std::vector<double>> moments;
};

}  // namespace

void resize_bonds(Device& device, Memory& memory, ParamSet& params, Optimizer& optimizer, Ctx& ctx, const BondEntries& bonds) {
  if (bonds.empty()) return;
  const std::map<const Param*, Slice> changed = slices(params, bonds);
  const DType dtype = params.dtype();
  device.synchronize();
  std::vector<Saved> saved;
  for (Param& param : params.params()) {
    Saved one{download(device, param.value), {}, {}};
    const auto slice = changed.find(&param);
    if (slice == changed.end()) {
      optimizer.states(param, [&](const std::string&, Tensor& state) { one.states.push_back(download(device, state)); });
    } else {
      one.value = slice->second.of(param.shape, one.value, size_of(dtype));
      for (const std::vector<double>& moment : optimizer.capture(device, ctx, param))
        one.moments.push_back(slice->second.of(param.shape, moment, 1));
    }
    saved.push_back(std::move(one));
  }
  std::vector<Bytes> run_states;
  for (const State& state : params.states()) run_states.push_back(download(device, state.value));

  optimizer.release();  // before anything new is taken, so that old and new never lie side by side
  params.release();
  for (Param& param : params.params()) {
    const auto slice = changed.find(&param);
    if (slice != changed.end()) param.shape = slice->second.of(param.shape);
    optimizer.attach(param);
  }
  params.allocate(memory, dtype);
  optimizer.allocate(device, memory, dtype);

  size_t index = 0;
  for (Param& param : params.params()) {
    const Saved& one = saved[index++];
    upload(device, param.value, one.value);
    if (changed.count(&param)) {
      optimizer.restore(device, ctx, param, one.moments);
    } else {
      size_t next = 0;
      optimizer.states(param, [&](const std::string&, Tensor& state) { upload(device, state, one.states[next++]); });
    }
  }
  index = 0;
  for (const State& state : params.states()) upload(device, state.value, run_states[index++]);
}

}  // namespace comera
