// Geometry of the diagram of tensor trains: cores as boxes, bonds between them, legs for the modes. Lengths are in lines of text.
// Does not draw.
//
// A row is a layer: its input cores, a gap, its output cores, as METHODS and core/layers order them (n_1..n_p,
// m_1..m_q); an embedding's cores have both legs. Input legs point up, output legs down.
#pragma once
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/session/snapshot.h"

namespace comera {

struct TTCore {
  size_t layer = 0, index = 0;  // layer: index into the snapshot's ranks; index: core, from 0
  double x = 0, y = 0;          // middle
  double width = 0, height = 0;
  int64_t rank_in = 1, in_mode = 0, out_mode = 0, rank_out = 1;  // live ranks; a missing mode is 0
  int64_t held_entries = 0, entries = 0, first_entries = 0;      // with the ranks in memory, with live ranks, with initial ranks
};

struct TTBond {
  size_t layer = 0, index = 0;  // index: bond, from 0
  double x0 = 0, x1 = 0, y = 0;
  double thickness = 0, ghost = 0;  // line width for the live and the initial rank
  int64_t live = 0, held = 0, initial = 0, cap = 0;
};

struct TTLeg {
  size_t layer = 0, core = 0;
  double x = 0, from = 0, to = 0;  // y
  int64_t size = 0;
  bool input = false;
};

// A layer, or a collapsed group of layers.
struct TTRow {
  std::string name, group;
  size_t first_layer = 0, layers = 1;
  bool collapsed = false, table = false;
  double y = 0, height = 0;  // middle
  int64_t entries = 0, held_entries = 0, first_entries = 0;
  double live_share = 0;  // sum of live ranks / sum of initial ranks
};

struct TTLayout {
  std::vector<TTRow> rows;
  std::vector<TTCore> cores;
  std::vector<TTBond> bonds;
  std::vector<TTLeg> legs;
  double width = 0, height = 0, names = 0;  // names: width of the left column with names
  const TTRow* row_of(size_t layer) const;
};

// The group that a layer collapses into: its name up to the first dot ("enc0.attn.q" -> "enc0").
std::string group_of(const std::string& layer);
// Groups of more than one layer.
std::set<std::string> groups_of(std::span<const LayerRanks> layers);

// 0 for a dead bond; grows with log2 of the rank.
double bond_thickness(int64_t rank);

// Entries of a core with these ranks at its sides; 0 if a bond is dead (METHODS.md 1.4).
int64_t core_entries(const LayerRanks& layer, const std::vector<int64_t>& ranks, size_t core);
// Entries of all cores of a layer; 0 if a bond is dead.
int64_t layer_entries(const LayerRanks& layer, const std::vector<int64_t>& ranks);
// True if modes and ranks of a layer are consistent, so that its cores can be drawn.
bool has_shape(const LayerRanks& layer);

// `collapsed`: names of groups; `wanted`: text that names of layers must contain (any case), "" = all layers.
TTLayout lay_out(std::span<const LayerRanks> layers, const std::set<std::string>& collapsed, const std::string& wanted = "");

// The item at a point. A bond within `reach` of its line has precedence over a core.
struct TTHit {
  enum Kind { nothing, core, bond, row };
  Kind kind = nothing;
  size_t index = 0;  // index into the layout's cores, bonds or rows
};
TTHit hit(const TTLayout& layout, double x, double y, double reach);

}  // namespace comera
