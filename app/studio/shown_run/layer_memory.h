// Memory of each layer by purpose. Exact for parameters, gradients and moments. Activations and workspace are shared by the
// layers, so they are known for the whole model only.
#pragma once
#include <string>
#include <vector>

#include "core/session/snapshot.h"

namespace comera::studio {

// Bytes of a tensorised layer in memory now.
struct LayerMemory {
  std::string name;
  MemoryByPurpose bytes;    // tt_core, rank_vector, gradient, optimizer
  double dense = 0;         // the same with one dense matrix: value, gradient, moments
  double dense_values = 0;  // of that the values
};

struct ModelMemory {
  std::vector<LayerMemory> layers;  // in the order of the model
  MemoryByPurpose rest;             // of what is no tensor train, and of the whole step
  bool known = false;               // shapes and memory are
  double dense = 0;                 // of everything, with a dense matrix in the place of each tensor train
};

// Of a snapshot, live or stored. Gradients and moments are shared out by the values they belong to.
ModelMemory memory_by_layer(const Snapshot& snapshot);

// Rectangles of these areas in a rectangle, near to squares: a squarified treemap (Bruls, Huizing, van Wijk 2000). In the
// order of `sizes`, which must fall; those that are 0 get no area.
struct Tile {
  float x = 0, y = 0, width = 0, height = 0;
};
std::vector<Tile> squarify(const std::vector<double>& sizes, Tile into);

}  // namespace comera::studio
