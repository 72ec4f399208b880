#include "app/figure/tt_layout.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>

namespace comera {
namespace {

// Units: lines of text.
constexpr double kCoreWidth = 6.2, kCoreHeight = 1.7, kBond = 3.4, kGap = 3.4, kLeg = 1.1, kRow = 6.0, kCollapsedRow = 2.6, kMargin = 1;
constexpr double kLetter = 0.56, kThinnest = 0.14, kEachDoubling = 0.13;

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

int64_t sum(const std::vector<int64_t>& values) {
  int64_t all = 0;
  for (const int64_t value : values) all += value;
  return all;
}

size_t core_count(const LayerRanks& layer) { return layer.initial.size() + 1; }

// (input mode, output mode) of a core; one is 0 except in embeddings.
std::pair<int64_t, int64_t> modes_of(const LayerRanks& layer, size_t core) {
  if (layer.is_table()) return {layer.in_modes[core], layer.out_modes[core]};
  if (core < layer.in_modes.size()) return {layer.in_modes[core], 0};
  return {0, layer.out_modes[core - layer.in_modes.size()]};
}

int64_t rank_at(const std::vector<int64_t>& ranks, size_t bond) { return bond < ranks.size() ? ranks[bond] : 0; }

double row_width(const LayerRanks& layer) {
  const auto cores = static_cast<double>(core_count(layer));
  return cores * kCoreWidth + (cores - 1) * kBond + (layer.is_table() ? 0 : kGap);
}

void place_row(TTLayout& out, size_t index, const LayerRanks& layer, double left, double y) {
  double x = left + kCoreWidth / 2;
  for (size_t k = 0; k < core_count(layer); ++k) {
    const auto [in, out_mode] = modes_of(layer, k);
    TTCore core{
        .layer = index, .index = k, .x = x, .y = y, .width = kCoreWidth, .height = kCoreHeight, .in_mode = in, .out_mode = out_mode};
    core.rank_in = k == 0 ? 1 : rank_at(layer.live, k - 1);
    core.rank_out = k + 1 == core_count(layer) ? 1 : rank_at(layer.live, k);
    core.entries = core_entries(layer, layer.live, k);
    core.held_entries = core_entries(layer, layer.held, k);
    core.first_entries = core_entries(layer, layer.initial, k);
    out.cores.push_back(core);
    if (in > 0) out.legs.push_back({index, k, x, y - kCoreHeight / 2, y - kCoreHeight / 2 - kLeg, in, true});
    if (out_mode > 0) out.legs.push_back({index, k, x, y + kCoreHeight / 2, y + kCoreHeight / 2 + kLeg, out_mode, false});
    if (k + 1 == core_count(layer)) break;
    const bool turn = !layer.is_table() && k + 1 == layer.in_modes.size();
    const double length = kBond + (turn ? kGap : 0);
    TTBond bond{.layer = index, .index = k, .x0 = x + kCoreWidth / 2, .x1 = x + kCoreWidth / 2 + length, .y = y};
    bond.live = rank_at(layer.live, k);
    bond.held = rank_at(layer.held, k);
    bond.initial = rank_at(layer.initial, k);
    bond.cap = rank_at(layer.caps, k);
    bond.thickness = bond_thickness(bond.live);
    bond.ghost = bond_thickness(bond.initial);
    out.bonds.push_back(bond);
    x += kCoreWidth + length;
  }
}

}  // namespace

const TTRow* TTLayout::row_of(size_t layer) const {
  for (const TTRow& row : rows)
    if (layer >= row.first_layer && layer < row.first_layer + row.layers) return &row;
  return nullptr;
}

std::string group_of(const std::string& layer) {
  const size_t dot = layer.find('.');
  return dot == std::string::npos ? layer : layer.substr(0, dot);
}

std::set<std::string> groups_of(std::span<const LayerRanks> layers) {
  std::map<std::string, int> counts;
  for (const LayerRanks& layer : layers) ++counts[group_of(layer.name)];
  std::set<std::string> out;
  for (const auto& [name, count] : counts)
    if (count > 1) out.insert(name);
  return out;
}

double bond_thickness(int64_t rank) { return rank <= 0 ? 0 : kThinnest + kEachDoubling * std::log2(static_cast<double>(rank)); }

int64_t core_entries(const LayerRanks& layer, const std::vector<int64_t>& ranks, size_t core) {
  if (!has_shape(layer)) return 0;
  const auto [in, out] = modes_of(layer, core);
  const int64_t before = core == 0 ? 1 : rank_at(ranks, core - 1), after = core + 1 == core_count(layer) ? 1 : rank_at(ranks, core);
  return before * std::max<int64_t>(1, in) * std::max<int64_t>(1, out) * after;
}

int64_t layer_entries(const LayerRanks& layer, const std::vector<int64_t>& ranks) {
  if (std::any_of(ranks.begin(), ranks.end(), [](int64_t rank) { return rank == 0; })) return 0;
  int64_t entries = 0;
  for (size_t k = 0; k < core_count(layer); ++k) entries += core_entries(layer, ranks, k);
  return entries;
}

bool has_shape(const LayerRanks& layer) {
  return !layer.initial.empty() && (layer.is_table() || layer.in_modes.size() + layer.out_modes.size() == core_count(layer));
}

TTLayout lay_out(std::span<const LayerRanks> layers, const std::set<std::string>& collapsed, const std::string& wanted) {
  TTLayout out;
  const std::string text = lower(wanted);
  const auto shown = [&](size_t i) { return has_shape(layers[i]) && lower(layers[i].name).find(text) != std::string::npos; };
  double widest = 0;
  for (size_t i = 0; i < layers.size(); ++i) {
    if (!shown(i)) continue;
    widest = std::max(widest, row_width(layers[i]));
    out.names = std::max(out.names, static_cast<double>(layers[i].name.size()) * kLetter);
  }
  const double left = kMargin + out.names + 1;
  double y = kMargin;
  for (size_t i = 0; i < layers.size(); ++i) {
    if (!shown(i)) continue;
    const LayerRanks& layer = layers[i];
    const std::string group = group_of(layer.name);
    TTRow row{.name = layer.name, .group = group, .first_layer = i, .table = layer.is_table(), .y = 0, .height = kRow};
    // Adjacent layers of a collapsed group become one row; a search shows every layer that matches.
    if (text.empty() && collapsed.contains(group)) {
      row.name = group;
      row.collapsed = true;
      row.height = kCollapsedRow;
      while (i + 1 < layers.size() && group_of(layers[i + 1].name) == group) ++i;
      row.layers = i - row.first_layer + 1;
    }
    int64_t live = 0, first = 0;
    for (size_t k = row.first_layer; k < row.first_layer + row.layers; ++k) {
      row.entries += layer_entries(layers[k], layers[k].live);
      row.held_entries += layer_entries(layers[k], layers[k].held);
      row.first_entries += layer_entries(layers[k], layers[k].initial);
      live += sum(layers[k].live);
      first += sum(layers[k].initial);
    }
    row.live_share = first > 0 ? static_cast<double>(live) / static_cast<double>(first) : 0;
    row.y = y + row.height / 2;
    if (!row.collapsed) place_row(out, i, layer, left, row.y);
    y += row.height;
    out.rows.push_back(std::move(row));
  }
  out.width = left + widest + kMargin;
  out.height = y + kMargin;
  return out;
}

TTHit hit(const TTLayout& layout, double x, double y, double reach) {
  for (size_t i = 0; i < layout.bonds.size(); ++i) {
    const TTBond& bond = layout.bonds[i];
    if (x >= bond.x0 && x <= bond.x1 && std::abs(y - bond.y) <= std::max(reach, std::max(bond.ghost, bond.thickness) / 2))
      return {TTHit::bond, i};
  }
  for (size_t i = 0; i < layout.cores.size(); ++i) {
    const TTCore& core = layout.cores[i];
    if (std::abs(x - core.x) <= core.width / 2 && std::abs(y - core.y) <= core.height / 2) return {TTHit::core, i};
  }
  for (size_t i = 0; i < layout.rows.size(); ++i)
    if (std::abs(y - layout.rows[i].y) <= layout.rows[i].height / 2 && x >= 0 && x <= layout.width) return {TTHit::row, i};
  return {};
}

}  // namespace comera
