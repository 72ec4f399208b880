// Where the parts of tensor trains stand in their diagram: cores as boxes, bonds between them, legs for the modes. Pure
// geometry in units of a line of text; knows nothing of drawing.
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
  size_t layer = 0, index = 0;  // of the snapshot's ranks; core 0..
  double x = 0, y = 0;          // middle
  double width = 0, height = 0;
  int64_t rank_in = 1, in_mode = 0, out_mode = 0, rank_out = 1;  // live; a mode that is not there is 0
  int64_t held_entries = 0, entries = 0, first_entries = 0;      // with the ranks in memory, alive, of the start
};

struct TTBond {
  size_t layer = 0, index = 0;  // bond 0..
  double x0 = 0, x1 = 0, y = 0;
  double thickness = 0, ghost = 0;  // of the live rank, and of the initial one
  int64_t live = 0, held = 0, initial = 0, cap = 0;
};

struct TTLeg {
  size_t layer = 0, core = 0;
  double x = 0, from = 0, to = 0;  // y
  int64_t size = 0;
  bool input = false;
};

// A layer, or several under one name that are not shown one by one.
struct TTRow {
  std::string name, group;
  size_t first_layer = 0, layers = 1;
  bool collapsed = false, table = false;
  double y = 0, height = 0;  // middle
  int64_t entries = 0, held_entries = 0, first_entries = 0;
  double live_share = 0;  // sum of ranks, of that at the start
};

struct TTLayout {
  std::vector<TTRow> rows;
  std::vector<TTCore> cores;
  std::vector<TTBond> bonds;
  std::vector<TTLeg> legs;
  double width = 0, height = 0, names = 0;  // names: width of the column of names at the left
  const TTRow* row_of(size_t layer) const;
};

// The part of a layer's name before its first dot: what is collapsed together ("enc0.attn.q" -> "enc0").
std::string group_of(const std::string& layer);
// Groups of more than one layer.
std::set<std::string> groups_of(std::span<const LayerRanks> layers);

// 0 for a dead bond; grows with log2 of the rank.
double bond_thickness(int64_t rank);

// Entries of a core with these ranks beside it, 0 where a bond is dead (METHODS 1.4).
int64_t core_entries(const LayerRanks& layer, const std::vector<int64_t>& ranks, size_t core);
// Of all cores of a layer; 0 when a bond is dead.
int64_t layer_entries(const LayerRanks& layer, const std::vector<int64_t>& ranks);
// What is known of a layer fits together: there are cores to draw.
bool has_shape(const LayerRanks& layer);

// `collapsed`: names of groups; `wanted`: only layers whose name has this text (in any case), "" = all.
TTLayout lay_out(std::span<const LayerRanks> layers, const std::set<std::string>& collapsed, const std::string& wanted = "");

// What is at a point: a bond before a core, within `reach` of the bond's line.
struct TTHit {
  enum Kind { nothing, core, bond, row };
  Kind kind = nothing;
  size_t index = 0;  // of the layout's cores, bonds or rows
};
TTHit hit(const TTLayout& layout, double x, double y, double reach);

}  // namespace comera
