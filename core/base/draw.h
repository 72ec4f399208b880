// Random numbers in double for values that are drawn once, on the host: initial values, new slices of a bond. A pure
// function of the stream, so they are equal on every device.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/rng.h"

namespace comera {

// The drawing site of something with a name.
uint32_t site_of(const std::string& name);

std::vector<double> draw_normals(const Philox& random, size_t count);   // mean 0, variance 1
std::vector<double> draw_uniforms(const Philox& random, size_t count);  // in [-1, 1)

// Matrices (rows, columns), one after another, each drawn evenly from those with orthonormal rows, or columns where they are fewer.
std::vector<double> draw_orthonormal(const Philox& random, size_t matrices, size_t rows, size_t columns);

}  // namespace comera
