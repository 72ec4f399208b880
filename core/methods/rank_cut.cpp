// The second half of rank_control.h: planning and doing a cut.
#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "core/methods/rank_control.h"

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

// Which slices of a parameter survive: rows of its first axis and columns of its last one, null = all.
struct Slice {
  const std::vector<int64_t>* first = nullptr;
  const std::vector<int64_t>* last = nullptr;

  Shape cut(const Shape& shape) const {
    Shape out;
    for (int axis = 0; axis < shape.rank(); ++axis) {
      int64_t size = shape[axis];
      if (axis == 0 && first) size = static_cast<int64_t>(first->size());
      if (axis == shape.rank() - 1 && last) size = static_cast<int64_t>(last->size());
      out.push_back(size);
    }
    return out;
  }

  // The same on the elements, each `width` items of T.
  template <class T>
  std::vector<T> cut(const Shape& shape, const std::vector<T>& values, size_t width) const {
    const bool vector = shape.rank() == 1;
    const int64_t a = vector ? 1 : shape[0], b = shape[-1], middle = shape.count() / std::max<int64_t>(1, a * b);
    std::vector<T> out;
    out.reserve(static_cast<size_t>(cut(shape).count()) * width);
    const int64_t rows = first && !vector ? static_cast<int64_t>(first->size()) : a;
    const int64_t columns = last ? static_cast<int64_t>(last->size()) : b;
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t j = 0; j < middle; ++j)
        for (int64_t column = 0; column < columns; ++column) {
          const int64_t i = first && !vector ? (*first)[static_cast<size_t>(row)] : row,
                        k = last ? (*last)[static_cast<size_t>(column)] : column;
          const T* element = values.data() + static_cast<size_t>((i * middle + j) * b + k) * width;
          out.insert(out.end(), element, element + width);
        }
    return out;
  }
};

// The parameters that lose something, with what stays of them.
std::map<const Param*, Slice> slices(const ParamSet& params, const RankCut& cut) {
  std::map<const Param*, Slice> out;
  CHECK(cut.keep.size() == params.rank_layers().size(), "a cut of another model");
  for (size_t index = 0; index < cut.keep.size(); ++index) {
    const RankLayer& layer = params.rank_layers()[index];
    CHECK(cut.keep[index].size() == layer.ranks.size(), layer.name << ": a cut of another model");
    for (size_t bond = 0; bond < layer.ranks.size(); ++bond) {
      const std::vector<int64_t>& keep = cut.keep[index][bond];
      CHECK(!keep.empty() && keep.back() < layer.ranks[bond]->count() && std::is_sorted(keep.begin(), keep.end()),
            layer.name << ": bond " << bond + 1);
      if (static_cast<int64_t>(keep.size()) == layer.ranks[bond]->count()) continue;
      out[layer.ranks[bond]].last = &keep;
      out[layer.cores[bond]].last = &keep;
      out[layer.cores[bond + 1]].first = &keep;
    }
  }
  return out;
}

// Everything a parameter is on the host: its value as bytes; its optimizer state as bytes where it stays as it is,
// as cut numbers where it does not.
struct Saved {
  Bytes value;
  std::vector<Bytes> states;
  std::vector<std::vector<double>> moments;
};

}  // namespace

RankCut plan_cut(const ParamSet& params, Device& device, double threshold, double cut_share) {
  RankCut cut;
  if (params.rank_layers().empty()) return cut;
  const std::vector<double> values = to_host(device, params.ranks());
  bool due = false;
  size_t begin = 0;
  for (const RankLayer& layer : params.rank_layers()) {
    cut.keep.emplace_back();
    for (const Param* ranks : layer.ranks) {
      const double* entries = values.data() + begin;
      begin += static_cast<size_t>(ranks->count());
      std::vector<int64_t> keep;
      for (int64_t i = 0; i < ranks->count(); ++i)
        if (entries[i] > threshold) keep.push_back(i);
      // A dead bond keeps its largest entry: the one that a floor would revive.
      if (keep.empty()) keep.push_back(std::max_element(entries, entries + ranks->count()) - entries);
      const double gone = static_cast<double>(ranks->count()) - static_cast<double>(keep.size());
      due = due || (gone > 0 && gone >= cut_share * static_cast<double>(ranks->count()));
      cut.keep.back().push_back(std::move(keep));
    }
  }
  if (!due) cut.keep.clear();
  return cut;
}

void apply_cut(Device& device, Memory& memory, ParamSet& params, Optimizer& optimizer, Ctx& ctx, const RankCut& cut) {
  if (cut.empty()) return;
  const std::map<const Param*, Slice> changed = slices(params, cut);
  const DType dtype = params.dtype();
  device.synchronize();
  std::vector<Saved> saved;
  for (Param& param : params.params()) {
    Saved one{download(device, param.value), {}, {}};
    const auto slice = changed.find(&param);
    if (slice == changed.end()) {
      optimizer.states(param, [&](const std::string&, Tensor& state) { one.states.push_back(download(device, state)); });
    } else {
      one.value = slice->second.cut(param.shape, one.value, size_of(dtype));
      for (const std::vector<double>& moment : optimizer.capture(device, ctx, param))
        one.moments.push_back(slice->second.cut(param.shape, moment, 1));
    }
    saved.push_back(std::move(one));
  }
  std::vector<Bytes> run_states;
  for (const State& state : params.states()) run_states.push_back(download(device, state.value));

  optimizer.release();  // before anything new is taken, so that old and new never lie side by side
  params.release();
  for (Param& param : params.params()) {
    const auto slice = changed.find(&param);
    if (slice != changed.end()) param.shape = slice->second.cut(param.shape);
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
