// What a product x L would gain from rows that the norm in front of it has just written: both one after the other, as in a step, and tile
// by tile. The 512 rows of one of two threads, D = 768, 32 columns. Between repetitions 32 MiB pass through the cache, as in a step.
//
//     g++ -O3 -march=native -ffast-math -std=c++20 -I. experiments/bench/norm_product.cpp -o build/norm_product && build/norm_product
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <vector>

#include "core/cpu/register_tile.h"

int main() {
  using namespace comera;
  constexpr int64_t kRows = 512, kWidth = 768, kColumns = 32, kTile = 32;
  std::vector<float> x(kRows * kWidth), branch(kRows * kWidth), y(kRows * kWidth), left(kWidth * kColumns), t1(kRows * kColumns),
      others(8 << 20);
  for (size_t i = 0; i < x.size(); ++i) x[i] = branch[i] = static_cast<float>(i % 7);
  for (size_t i = 0; i < left.size(); ++i) left[i] = 0.01f * static_cast<float>(i % 5);

  const auto norm = [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float *a = x.data() + row * kWidth, *b = branch.data() + row * kWidth;
      float *to = y.data() + row * kWidth, mean = 0, squares = 0;
      for (int64_t j = 0; j < kWidth; ++j) mean += a[j] + b[j];
      mean /= kWidth;
      for (int64_t j = 0; j < kWidth; ++j) squares += (a[j] + b[j] - mean) * (a[j] + b[j] - mean);
      const float scale = 1 / std::sqrt(squares / kWidth + 1e-5f);
      for (int64_t j = 0; j < kWidth; ++j) to[j] = (a[j] + b[j] - mean) * scale;
    }
  };
  const auto multiply = [&](int64_t begin, int64_t end) {
    const Tile tile{y.data() + begin * kWidth, kWidth, 1, left.data(), kColumns, kWidth};
    product(tile, end - begin, kColumns / kLanes, t1.data() + begin * kColumns, kColumns, false);
  };
  const auto fastest_us = [&](const std::function<void()>& work) {
    double least = 1e9;
    for (int repetition = 0; repetition < 400; ++repetition) {
      for (size_t i = 0; i < others.size(); i += 16) others[i] += 1;
      const auto begin = std::chrono::steady_clock::now();
      work();
      least = std::min(least, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    return 1e6 * least;
  };

  const double first = fastest_us([&] { norm(0, kRows); });
  const double apart = fastest_us([&] {
    norm(0, kRows);
    multiply(0, kRows);
  });
  const double by_tiles = fastest_us([&] {
    for (int64_t row = 0; row < kRows; row += kTile) {
      norm(row, row + kTile);
      multiply(row, row + kTile);
    }
  });
  std::printf("norm %.0f us; norm, then product %.0f us; tile by tile %.0f us, %.3f\n", first, apart, by_tiles, by_tiles / apart);
}
