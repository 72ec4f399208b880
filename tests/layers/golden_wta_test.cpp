// Sampled rows against the published code (WTA-CRS): scores, how many rows are certain and which, and the gradient of the published draws.
// The published scores are |x| |dy of the epoch before|; the stash takes |x| alone, which is what the published code does in the first
// epoch. Two faults of it are not ours, and the files hold the right values, too: draws that lack their weight (dw_weighted), and rows
// drawn without replacement (mix_replacement), which no weight makes right.
#include <numeric>

#include "core/ops/row_sampling_math.h"
#include "tests/layers/check_layer.h"
#include "tests/layers/golden.h"

namespace comera::layer_test {
namespace {

struct WtaFile {
  explicit WtaFile(const std::string& path) : file(path) {
    const std::vector<int64_t>&x = file.entry("x").shape, &dy = file.entry("dy").shape;
    epochs = x[0];
    rows = x[1] * x[2];
    in = x[3];
    out = dy[3];
  }
  Values of(const char* name, int64_t epoch, int64_t count) const {
    const Values all = file.values(name);
    return {all.begin() + epoch * count, all.begin() + (epoch + 1) * count};
  }
  SafetensorsFile file;
  int64_t epochs = 0, rows = 0, in = 0, out = 0;
};

double largest_of(const Values& values) {
  double largest = 0;
  for (double x : values) largest = std::max(largest, std::fabs(x));
  return largest;
}

// dw (O, I) = sum over the picked rows.
Values gradient(const WtaFile& f, const Values& x, const Values& dy, const std::vector<int>& index, const Values& weight) {
  Values dw(static_cast<size_t>(f.out * f.in));
  for (size_t i = 0; i < index.size(); ++i)
    for (int64_t o = 0; o < f.out; ++o)
      for (int64_t c = 0; c < f.in; ++c)
        dw[static_cast<size_t>(o * f.in + c)] +=
            weight[i] * dy[static_cast<size_t>(index[i] * f.out + o)] * x[static_cast<size_t>(index[i] * f.in + c)];
  return dw;
}

double check_epoch(const WtaFile& f, int64_t epoch, const Json& picks) {
  const Values x = f.of("x", epoch, f.rows * f.in), dy = f.of("dy", epoch, f.rows * f.out), cached = f.of("cached", epoch, f.rows),
               probability = f.of("probability", epoch, f.rows), exact = f.of("dw_exact", epoch, f.out * f.in);
  const auto certain = picks["certain"].get<std::vector<int>>(), drawn = picks["drawn"].get<std::vector<int>>();
  const bool remembered = largest_of(cached) > 0;
  Values score;
  for (int64_t row = 0; row < f.rows; ++row) {
    double squares = 0;
    for (int64_t c = 0; c < f.in; ++c) squares += x[static_cast<size_t>(row * f.in + c)] * x[static_cast<size_t>(row * f.in + c)];
    const double norm = remembered ? cached[static_cast<size_t>(row)] : 1;
    score.push_back(row_score(squares * norm * norm));
  }
  const int64_t kept = static_cast<int64_t>(certain.size() + drawn.size());
  if (kept == 0)
    return relative_difference(gradient(
                                   f, x, dy,
                                   [&] {
                                     std::vector<int> all(static_cast<size_t>(f.rows));
                                     std::iota(all.begin(), all.end(), 0);
                                     return all;
                                   }(),
                                   Values(static_cast<size_t>(f.rows), 1)),
                               exact, largest_of(exact));
  // The published sum has its floor once, ours once a row.
  const double all = std::accumulate(score.begin(), score.end(), 0.0) - 1e-8 * static_cast<double>(f.rows - 1);
  double worst = 0;
  for (size_t row = 0; row < score.size(); ++row)
    worst = std::max(worst, std::fabs(score[row] / all - probability[row]) / largest_of(probability));

  std::vector<int> order(score.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return score[static_cast<size_t>(a)] > score[static_cast<size_t>(b)]; });
  Values sorted, rest(score.size() + 1);
  for (int row : order) sorted.push_back(score[static_cast<size_t>(row)]);
  for (size_t i = sorted.size(); i-- > 0;) rest[i] = rest[i + 1] + sorted[i];
  const SampledRows sampled{sorted.data(), rest.data(), f.rows, kept};
  const int64_t first = golden_setting<bool>(f.file, "deter_adaptive")
                            ? sampled.best_certain()
                            : static_cast<int64_t>(golden_setting<double>(f.file, "deter_ratio") * static_cast<double>(kept));
  EXPECT_EQ(first, static_cast<int64_t>(certain.size()));
  std::vector<int> index(order.begin(), order.begin() + first);
  EXPECT_EQ(std::vector<int>(certain), [&] {
    std::vector<int> ascending = index;
    std::sort(ascending.begin(), ascending.end());
    return ascending;
  }());
  // The published rest of the probability lacks the floors of all rows but one; where it is below 0.001, it drops the drawn rows.
  const double floors = 1e-8 * static_cast<double>(f.rows - 1), rest_there = rest[static_cast<size_t>(first)] - floors;
  const double deviation = rest_there / (rest[0] - floors) < 1e-3 ? 0 : rest_there / rest[static_cast<size_t>(first)];
  Values weight(index.size(), 1);
  for (int row : drawn) {
    const int64_t place = std::find(order.begin(), order.end(), row) - order.begin();
    index.push_back(row);
    weight.push_back(deviation * sampled.weight(place, first));
  }
  const Values expected = f.of("dw_weighted", epoch, f.out * f.in);
  return std::max(worst, relative_difference(gradient(f, x, dy, index, weight), expected, largest_of(expected)));
}

TEST(Golden, SampledRows) {
  for (const std::string& path : golden_files("wtacrs")) {
    SCOPED_TRACE(path);
    const WtaFile f(path);
    const Json picks = golden_setting<Json>(f.file, "picks");
    double worst = 0;
    for (int64_t epoch = 0; epoch < f.epochs; ++epoch) worst = std::max(worst, check_epoch(f, epoch, picks[static_cast<size_t>(epoch)]));
    EXPECT_LE(worst, kGoldenDouble);
    report_golden(path, worst);
  }
}

}  // namespace
}  // namespace comera::layer_test
