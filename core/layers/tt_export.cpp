#include "core/layers/tt_export.h"

#include <map>

#include "core/base/error.h"

namespace comera {
namespace {

double live(double d, double threshold) { return d > threshold ? d : 0; }

// U (.., r) times thr(D) (r) along the last axis.
void mask(std::vector<double>& core, const std::vector<double>& ranks, double threshold) {
  for (size_t i = 0; i < core.size(); ++i) core[i] *= live(ranks[i % ranks.size()], threshold);
}

// The train multiplied out: element [x_1, .., x_K] at row-major place, x_k over the mode sizes.
std::vector<double> multiply_out(const RankLayer& layer, Device& device, double threshold) {
  std::vector<double> left{1};  // (x_1..x_k, r_k)
  int64_t rank = 1;
  for (size_t k = 0; k < layer.cores.size(); ++k) {
    std::vector<double> core = to_host(device, layer.cores[k]->value);
    if (k < layer.ranks.size()) mask(core, to_host(device, layer.ranks[k]->value), threshold);
    const int64_t next = layer.cores[k]->shape[-1], width = layer.cores[k]->count() / rank;  // core as (rank, width)
    const int64_t rows = static_cast<int64_t>(left.size()) / rank;
    std::vector<double> product(static_cast<size_t>(rows * width), 0.0);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t a = 0; a < rank; ++a) {
        const double factor = left[static_cast<size_t>(i * rank + a)];
        if (factor == 0) continue;
        const double* source = core.data() + a * width;
        double* target = product.data() + i * width;
        for (int64_t j = 0; j < width; ++j) target[j] += factor * source[j];
      }
    left = std::move(product);
    rank = next;
  }
  return left;
}

}  // namespace

std::vector<HostTensor> fold(const ParamSet& params, Device& device, double threshold) {
  std::vector<HostTensor> out;
  std::map<const Param*, size_t> place;
  for (const Param& param : params.params()) {
    place[&param] = out.size();
    out.push_back({param.name, param.shape, to_host(device, param)});
  }
  for (const RankLayer& layer : params.rank_layers())
    for (size_t k = 0; k < layer.ranks.size(); ++k) {
      std::vector<double>& ranks = out[place.at(layer.ranks[k])].values;
      mask(out[place.at(layer.cores[k])].values, ranks, threshold);
      for (double& value : ranks) value = live(value, threshold) > 0 ? 1 : 0;
    }
  return out;
}

TrainPlaces::TrainPlaces(const RankLayer& layer) : layer_(layer), table_(layer.cores[0]->shape.rank() == 4) {
  int64_t in = 1;
  for (int64_t n : layer.in_modes) in *= n;
  for (int64_t m : layer.out_modes) out_ *= m;
  // TTM: in_modes are the row factors m_k, out_modes the column factors n_k of the cores.
  if (table_) {
    in = out_ = 1;
    for (const Param* core : layer.cores) {
      in *= core->shape[1];
      out_ *= core->shape[2];
    }
  }
  count_ = in * out_;
  const int64_t all_rows = table_ ? in : out_, all_columns = table_ ? out_ : in;
  CHECK(layer.rows <= all_rows && layer.columns <= all_columns,
        layer.name << ": " << layer.rows << " x " << layer.columns << " of " << all_rows << " x " << all_columns);
}

int64_t TrainPlaces::of(int64_t index) const {
  int64_t row = index % out_, column = index / out_;  // the train is W^T (in, out)
  if (table_) {
    int64_t rest = index, row_step = 1, column_step = 1;
    row = column = 0;
    for (size_t k = layer_.cores.size(); k-- > 0;) {
      const int64_t m = layer_.cores[k]->shape[1], n = layer_.cores[k]->shape[2], x = rest % (m * n);
      rest /= m * n;
      row += (x / n) * row_step;
      column += (x % n) * column_step;
      row_step *= m;
      column_step *= n;
    }
  }
  return row < layer_.rows && column < layer_.columns ? row * layer_.columns + column : kPadding;
}

HostTensor dense_weight(const RankLayer& layer, Device& device, double threshold) {
  const std::vector<double> train = multiply_out(layer, device, threshold);
  const TrainPlaces places(layer);
  CHECK(static_cast<int64_t>(train.size()) == places.count(), layer.name << ": " << train.size() << " entries");
  HostTensor dense{layer.name, {layer.rows, layer.columns}, std::vector<double>(static_cast<size_t>(layer.dense_entries()))};
  for (int64_t i = 0; i < places.count(); ++i)
    if (const int64_t place = places.of(i); place != TrainPlaces::kPadding)
      dense.values[static_cast<size_t>(place)] = train[static_cast<size_t>(i)];
  return dense;
}

}  // namespace comera
