#include "core/config/tt_shape.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>

#include "core/base/error.h"

namespace comera {
namespace {

constexpr int64_t kMaxModes = 5;  // a side
// How far the sum of the factors may lie above that of equal factors. A size as it is may be rougher than one that is
// padded anyway: padding must be worth its while.
constexpr double kRoughness = 1.25, kPaddedRoughness = 1.1;

int64_t product(const std::vector<int64_t>& modes) {
  int64_t out = 1;
  for (int64_t mode : modes) out = mode > 0 && out > INT64_MAX / mode ? INT64_MAX : out * mode;
  return out;
}

double equal_sum(int64_t size, int64_t count) {
  return static_cast<double>(count) * std::pow(static_cast<double>(size), 1.0 / static_cast<double>(count));
}

// Writes `size` as `count` factors, largest first, of the smallest sum that is below `limit`; empty when there are none.
struct Factors {
  std::vector<int64_t> best, chosen;
  int64_t limit = 0;

  void search(int64_t size, int64_t count, int64_t largest, int64_t sum) {
    if (count == 1) {
      if (size > largest || sum + size >= limit) return;
      best = chosen;
      best.push_back(size);
      limit = sum + size;
      return;
    }
    // The largest factor is no smaller than the root, and each of the others is at least 1.
    const int64_t root = static_cast<int64_t>(equal_sum(size, count) / static_cast<double>(count));
    for (int64_t factor = std::max<int64_t>(1, root); factor <= largest && sum + factor + count - 1 < limit; ++factor) {
      if (size % factor != 0) continue;
      chosen.push_back(factor);
      search(size / factor, count - 1, factor, sum + factor);
      chosen.pop_back();
    }
  }
};

std::vector<int64_t> factors(int64_t size, int64_t count, double roughness) {
  Factors found;
  // size, 1, 1, ... is the roughest of all.
  found.limit = static_cast<int64_t>(std::min(std::floor(roughness * equal_sum(size, count)) + 1, static_cast<double>(size + count)));
  found.search(size, count, size, 0);
  return found.best;
}

// The most balanced factors without padding: always some, if need be (size, 1, 1, ...).
std::vector<int64_t> exact_modes(int64_t size, int64_t count, bool ascending) {
  std::vector<int64_t> modes = factors(size, count, std::numeric_limits<double>::infinity());
  if (ascending) std::reverse(modes.begin(), modes.end());
  return modes;
}

std::string list_text(const std::vector<int64_t>& values) {
  std::string out;
  for (int64_t value : values) out += (out.empty() ? "" : ", ") + std::to_string(value);
  return out;
}

// Collects what is wrong with the options of one layer.
struct Checker {
  std::string path;
  std::vector<Problem>& problems;
  bool good = true;

  void wrong(const char* field, const std::string& text, const std::string& hint) {
    problems.push_back({path.empty() ? field : path + "." + field, text, hint});
    good = false;
  }

  // `exact`: the modes must multiply to `size`; else to at least that.
  void modes(const char* field, const std::vector<int64_t>& modes, int64_t least, int64_t size, bool exact) {
    const int64_t count = static_cast<int64_t>(modes.size());
    if (count < least || count > kMaxModes)
      return wrong(field, std::string(field) + " has " + std::to_string(count) + " modes, " + std::to_string(least) + " to 5 are possible",
                   "leave it empty to have modes chosen");
    if (*std::min_element(modes.begin(), modes.end()) < 1)
      return wrong(field, std::string(field) + " are " + list_text(modes) + ", each must be at least 1",
                   "leave it empty to have modes chosen");
    const int64_t all = product(modes);
    if (exact ? all == size : all >= size) return;
    wrong(field,
          std::string(field) + " multiply to " + std::to_string(all) + ", the size is " + (exact ? "" : "at least ") + std::to_string(size),
          "for example " + list_text(exact ? exact_modes(size, count, false) : choose_modes(size, count, false)) +
              "; empty lets modes be chosen");
  }

  void cores(int64_t cores, int64_t least) {
    if (cores < least || cores > kMaxModes)
      wrong("cores", "cores is " + std::to_string(cores) + ", must be " + std::to_string(least) + " to 5",
            "3 suits most matrices, 4 most tables");
  }

  // r_0..r_K of modes l_1..l_K: the given ones, or the rank where the modes allow it.
  std::vector<int64_t> ranks(const TTOptions& options, const std::vector<int64_t>& sizes) {
    const size_t cores = sizes.size();
    if (!options.ranks.empty()) {
      const std::vector<int64_t>& given = options.ranks;
      const std::string hint = "give r_0 to r_" + std::to_string(cores) + " with 1 at both ends, or leave it empty";
      if (given.size() != cores + 1)
        wrong(
            "ranks",
            "ranks has " + std::to_string(given.size()) + " entries, " + std::to_string(cores) + " cores need " + std::to_string(cores + 1),
            hint);
      else if (given.front() != 1 || given.back() != 1)
        wrong("ranks",
              "ranks begin with " + std::to_string(given.front()) + " and end with " + std::to_string(given.back()) + ", both must be 1",
              hint);
      else if (*std::min_element(given.begin(), given.end()) < 1)
        wrong("ranks", "ranks are " + list_text(given) + ", each must be at least 1", hint);
      return given;
    }
    if (options.rank < 1) {
      wrong("rank", "rank is " + std::to_string(options.rank) + ", must be at least 1",
            "30 is the published rank; 1 is the smallest model");
      return {};
    }
    // No rank above the size of the smaller side of its cut: more could not be used.
    std::vector<int64_t> out(cores + 1, 1);
    for (size_t k = 1; k < cores; ++k) {
      const std::vector<int64_t> left(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(k));
      const std::vector<int64_t> right(sizes.begin() + static_cast<std::ptrdiff_t>(k), sizes.end());
      out[k] = std::min({options.rank, product(left), product(right)});
    }
    return out;
  }
};

// The l_k: modes of both sides in a row, or for a TTM rows times columns of each core.
std::vector<int64_t> core_sizes(const TTShape& shape) {
  std::vector<int64_t> sizes = shape.in_modes;
  if (shape.ranks.size() == shape.in_modes.size() + 1) {
    for (size_t k = 0; k < sizes.size(); ++k) sizes[k] *= shape.out_modes[k];
  } else {
    sizes.insert(sizes.end(), shape.out_modes.begin(), shape.out_modes.end());
  }
  return sizes;
}

double real(int64_t value) { return static_cast<double>(value); }

}  // namespace

int64_t TTShape::padded_in() const { return product(in_modes); }
int64_t TTShape::padded_out() const { return product(out_modes); }

std::vector<int64_t> choose_modes(int64_t size, int64_t count, bool ascending) {
  CHECK(size >= 1 && count >= 1 && count <= kMaxModes, size << " in " << count << " modes");
  std::vector<int64_t> modes = factors(size, count, kRoughness);
  for (int64_t padded = size + 1; modes.empty(); ++padded) modes = factors(padded, count, kPaddedRoughness);
  if (ascending) std::reverse(modes.begin(), modes.end());
  return modes;
}

TTShape linear_shape(int64_t in, int64_t out, const TTOptions& options, const char* path, std::vector<Problem>& problems) {
  if (in < 1 || out < 1) return {};  // the size has a field of its own, which is at fault
  Checker check{path, problems};
  if (options.in_modes.empty() || options.out_modes.empty()) check.cores(options.cores, 1);
  if (!options.in_modes.empty()) check.modes("in_modes", options.in_modes, 1, in, true);
  if (!options.out_modes.empty()) check.modes("out_modes", options.out_modes, 1, out, true);
  if (!check.good) return {};
  TTShape shape;
  shape.in = in;
  shape.out = out;
  shape.in_modes = options.in_modes.empty() ? choose_modes(in, options.cores, false) : options.in_modes;
  shape.out_modes = options.out_modes.empty() ? choose_modes(out, options.cores, true) : options.out_modes;
  std::vector<int64_t> sizes = shape.in_modes;
  sizes.insert(sizes.end(), shape.out_modes.begin(), shape.out_modes.end());
  shape.ranks = check.ranks(options, sizes);
  return check.good ? shape : TTShape{};
}

TTShape table_shape(int64_t rows, int64_t columns, const TTOptions& options, const char* path, std::vector<Problem>& problems) {
  if (rows < 1 || columns < 1) return {};
  Checker check{path, problems};
  const bool given_rows = !options.in_modes.empty(), given_columns = !options.out_modes.empty();
  if (!given_rows && !given_columns) check.cores(options.cores, 2);
  // Rows beyond the vocabulary are never looked up; columns beyond the width would have to be cut from every result.
  if (given_rows) check.modes("in_modes", options.in_modes, 2, rows, false);
  if (given_columns) check.modes("out_modes", options.out_modes, 2, columns, true);
  if (given_rows && given_columns && options.in_modes.size() != options.out_modes.size())
    check.wrong("out_modes",
                "in_modes has " + std::to_string(options.in_modes.size()) + " modes, out_modes " + std::to_string(options.out_modes.size()),
                "each core of a table has one of both");
  if (!check.good) return {};
  const int64_t cores = given_rows      ? static_cast<int64_t>(options.in_modes.size())
                        : given_columns ? static_cast<int64_t>(options.out_modes.size())
                                        : options.cores;
  TTShape shape;
  shape.in = rows;
  shape.out = columns;
  // Opposite orders keep the sizes m_k n_k of the cores, and so the two halves, alike.
  shape.in_modes = given_rows ? options.in_modes : choose_modes(rows, cores, false);
  shape.out_modes = given_columns ? options.out_modes : exact_modes(columns, cores, true);
  std::vector<int64_t> sizes;
  for (size_t k = 0; k < shape.in_modes.size(); ++k) sizes.push_back(shape.in_modes[k] * shape.out_modes[k]);
  shape.ranks = check.ranks(options, sizes);
  return check.good ? shape : TTShape{};
}

double merged_cost(const TTShape& shape, int64_t tokens) {
  const size_t p = shape.in_modes.size(), q = shape.out_modes.size();
  const std::vector<int64_t>& r = shape.ranks;
  CHECK(r.size() == p + q + 1, "the cost of a matrix, not of a table");
  double cost = 0, size = real(shape.in_modes[0]);
  for (size_t k = 2; k <= p; ++k) {  // (n_1..n_k) r_{k-1} r_k
    size *= real(shape.in_modes[k - 1]);
    cost += size * real(r[k - 1] * r[k]);
  }
  size = real(shape.out_modes[q - 1]);
  for (size_t k = q - 1; k >= 1; --k) {  // (m_k..m_q) r_{p+k-1} r_{p+k}
    size *= real(shape.out_modes[k - 1]);
    cost += size * real(r[p + k - 1] * r[p + k]);
  }
  return cost + real(tokens) * real(r[p]) * real(shape.padded_in() + shape.padded_out());
}

double sequential_cost(const TTShape& shape, int64_t tokens) {
  const size_t p = shape.in_modes.size(), q = shape.out_modes.size();
  const std::vector<int64_t>& r = shape.ranks;
  CHECK(r.size() == p + q + 1, "the cost of a matrix, not of a table");
  double a_token = 0, size = real(shape.padded_in());
  for (size_t k = 1; k <= p; ++k) {  // r_{k-1} (n_k..n_p) r_k
    a_token += size * real(r[k - 1] * r[k]);
    size /= real(shape.in_modes[k - 1]);
  }
  size = 1;
  for (size_t k = 1; k <= q; ++k) {  // r_{p+k-1} (m_1..m_k) r_{p+k}
    size *= real(shape.out_modes[k - 1]);
    a_token += size * real(r[p + k - 1] * r[p + k]);
  }
  return real(tokens) * a_token;
}

int64_t tt_entries(const TTShape& shape) {
  const std::vector<int64_t> sizes = core_sizes(shape);
  int64_t entries = 0;
  for (size_t k = 0; k < sizes.size(); ++k) entries += shape.ranks[k] * sizes[k] * shape.ranks[k + 1];
  return entries;
}

}  // namespace comera
