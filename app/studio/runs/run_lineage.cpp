#include "app/studio/runs/run_lineage.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace comera::studio {

std::vector<Branch> arrange_by_lineage(std::vector<const RunRow*>& rows) {
  constexpr int kMostRails = 31;
  std::unordered_map<std::string_view, std::vector<size_t>> forks;  // rows by the id of their parent, in order
  std::unordered_map<std::string_view, size_t> places;
  for (size_t i = 0; i < rows.size(); ++i) places.emplace(rows[i]->id, i);
  std::vector<bool> below(rows.size(), false), placed(rows.size(), false);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!places.contains(rows[i]->parent) || rows[i]->parent == rows[i]->id) continue;
    forks[rows[i]->parent].push_back(i);
    below[i] = true;
  }
  std::vector<const RunRow*> arranged;
  std::vector<Branch> branches;
  struct Next {
    size_t row;
    Branch branch;
  };
  std::vector<Next> next;
  const auto place_tree = [&](size_t root) {
    next.push_back({root, {}});
    while (!next.empty()) {
      const auto [row, branch] = next.back();
      next.pop_back();
      if (placed[row]) continue;
      placed[row] = true;
      arranged.push_back(rows[row]);
      branches.push_back(branch);
      const auto of = forks.find(rows[row]->id);
      if (of == forks.end()) continue;
      Branch fork{branch.depth + 1, true, branch.rails};
      if (!branch.last && branch.depth > 0 && branch.depth <= kMostRails) fork.rails |= uint32_t{1} << branch.depth;
      for (auto child = of->second.rbegin(); child != of->second.rend(); ++child, fork.last = false) next.push_back({*child, fork});
    }
  };
  for (size_t i = 0; i < rows.size(); ++i)
    if (!below[i]) place_tree(i);
  for (size_t i = 0; i < rows.size(); ++i)  // cycles of parents, possible in a store that was edited by hand
    if (!placed[i]) place_tree(i);
  rows = std::move(arranged);
  return branches;
}

}  // namespace comera::studio
