#include "app/studio/compare/group_toolbar.h"

#include <algorithm>

#include "app/studio/parts/named_items.h"
#include "app/studio/parts/widgets.h"

namespace comera::studio {
namespace {

std::string text_of(const std::string& by) { return by.empty() ? "Each run" : by == kBySeed ? "Seeds" : by; }

void choose_group(Compare& compare) {
  const bool open = ImGui::BeginCombo("##group", text_of(compare.group_by).c_str(), ImGuiComboFlags_HeightLarge);
  if (!open) return name_item("group-by");
  std::vector<std::string> choices = group_choices(compare);
  choices.insert(choices.begin(), "");
  // Of other runs, or of how these were: it can be seen, and is in force again when they differ in it.
  if (std::find(choices.begin(), choices.end(), compare.group_by) == choices.end()) choices.push_back(compare.group_by);
  for (const std::string& by : choices) {
    if (ImGui::Selectable((text_of(by) + "###group-" + by).c_str(), by == compare.group_by)) compare.group_by = by;
    name_item("group:" + by);
  }
  ImGui::EndCombo();
}

const char* help_of(const Compare& compare, bool together) {
  if (!compare.over.empty()) return "Over another metric each run is drawn by itself: a mean is of steps.";
  if (compare.group_by.empty() || together)
    return "Runs that are taken together are one curve, where all of them have points: those that differ in nothing but the seed, those "
           "with the same value of a setting, or with the same tag.";
  return compare.group_by == kBySeed ? "No two of these runs differ in nothing but the seed: each is drawn by itself."
                                     : "These runs do not differ in it: each is drawn by itself.";
}

template <class Choice>
void choose(const char* id, Choice& chosen, std::initializer_list<Choice> choices) {
  if (!ImGui::BeginCombo(id, name_of(chosen))) return;
  for (const Choice choice : choices)
    if (ImGui::Selectable(name_of(choice), choice == chosen)) chosen = choice;
  ImGui::EndCombo();
}

}  // namespace

void group_toolbar(Compare& compare) {
  const std::vector<RunGroup> groups = run_groups(compare);
  const bool together = std::any_of(groups.begin(), groups.end(), [](const RunGroup& group) { return group.together(); });
  const auto next = [](float width) {
    beside_or_below(width, em(0.8f));
    ImGui::SetNextItemWidth(width);
  };
  ImGui::BeginDisabled(!compare.over.empty());
  next(em(11));
  choose_group(compare);
  ImGui::EndDisabled();
  tooltip(help_of(compare, together));
  if (!together) return;
  next(em(6));
  choose("##middle", compare.group_middle, {GroupMiddle::mean, GroupMiddle::median});
  tooltip("What is drawn of the runs of a group.");
  next(em(10.5f));
  choose("##band", compare.group_band, {GroupBand::extremes, GroupBand::deviation});
  tooltip("What the band is. Standard deviation: of the runs, to both sides of their mean.");
}

}  // namespace comera::studio
