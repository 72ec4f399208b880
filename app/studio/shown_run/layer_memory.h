// Memory of each layer by purpose. Exact for parameters, gradients and moments. Layers share activations and workspace, so these are known
// for the whole model only.
#pragma once
#include <string>
#include <vector>

#include "core/session/snapshot.h"

namespace comera::studio {

// Memory of a layer with tensor trains, in bytes.
struct LayerMemory {
  std::string name;
  MemoryByPurpose bytes;    // tt_core, rank_vector, gradient, optimizer
  double dense = 0;         // the same for a dense matrix: values, gradient, moments
  double dense_values = 0;  // the values alone
};

struct ModelMemory {
  std::vector<LayerMemory> layers;  // in model order
  MemoryByPurpose rest;             // everything else: dense parameters, activations, workspace
  bool known = false;               // shapes and memory are known
  double dense = 0;                 // total with a dense matrix instead of each tensor train
};

// From a live or stored snapshot. Gradients and moments are divided among layers in proportion to their values.
ModelMemory memory_by_layer(const Snapshot& snapshot);

// Divides a rectangle into tiles of these areas, close to squares: a squarified treemap (Bruls, Huizing, van Wijk 2000). `sizes` must
// descend; tiles of size 0 are empty.
struct Tile {
  float x = 0, y = 0, width = 0, height = 0;
};
std::vector<Tile> squarify(const std::vector<double>& sizes, Tile into);

}  // namespace comera::studio
