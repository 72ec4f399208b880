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

HostTensor dense_weight(const RankLayer& layer, Device& device, double threshold) {
  const std::vector<double> train = multiply_out(layer, device, threshold);
  const bool table = layer.cores[0]->shape.rank() == 4;
  int64_t in = 1, out = 1;
  for (int64_t n : layer.in_modes) in *= n;
  for (int64_t m : layer.out_modes) out *= m;
  // TTM: in_modes are the row factors m_k, out_modes the column factors n_k of the cores.
  if (table) {
    in = out = 1;
    for (const Param* core : layer.cores) {
      in *= core->shape[1];
      out *= core->shape[2];
    }
  }
  const int64_t all_rows = table ? in : out, all_columns = table ? out : in;
  CHECK(static_cast<int64_t>(train.size()) == in * out, layer.name << ": " << train.size() << " entries for " << in << " x " << out);
  const int64_t rows = layer.rows, columns = layer.columns;
  CHECK(rows <= all_rows && columns <= all_columns,
        layer.name << ": " << rows << " x " << columns << " of " << all_rows << " x " << all_columns);

  HostTensor dense{layer.name, {rows, columns}, std::vector<double>(static_cast<size_t>(rows * columns))};
  const auto put = [&](int64_t row, int64_t column, double value) {
    if (row < rows && column < columns) dense.values[static_cast<size_t>(row * columns + column)] = value;
  };
  for (size_t index = 0; index < train.size(); ++index) {
    if (!table) {  // the train is W^T (in, out)
      put(static_cast<int64_t>(index) % out, static_cast<int64_t>(index) / out, train[index]);
      continue;
    }
    int64_t rest = static_cast<int64_t>(index), row = 0, column = 0, row_step = 1, column_step = 1;
    for (size_t k = layer.cores.size(); k-- > 0;) {
      const int64_t m = layer.cores[k]->shape[1], n = layer.cores[k]->shape[2], x = rest % (m * n);
      rest /= m * n;
      row += (x / n) * row_step;
      column += (x % n) * column_step;
      row_step *= m;
      column_step *= n;
    }
    put(row, column, train[index]);
  }
  return dense;
}

}  // namespace comera
