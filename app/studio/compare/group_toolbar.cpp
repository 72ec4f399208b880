#include "app/studio/compare/group_toolbar.h"

#include <algorithm>

#include "app/studio/parts/named_items.h"
#include "app/studio/parts/texts.h"

namespace comera::studio {
namespace {

std::string text_of(const std::string& by) { return by.empty() ? "Each run" : by == kBySeed ? "Seeds" : by; }

void choose_group(Compare& compare) {
  const bool open = ImGui::BeginCombo("##group", whole_label(text_of(compare.group_by)).c_str(), ImGuiComboFlags_HeightLarge);
  if (!open) return name_item("group-by");
  std::vector<std::string> choices = group_choices(compare);
  choices.insert(choices.begin(), "");
  // A grouping that is not possible with these runs stays in the list, and applies again once their values differ.
  if (std::find(choices.begin(), choices.end(), compare.group_by) == choices.end()) choices.push_back(compare.group_by);
  for (const std::string& by : choices) {
    if (ImGui::Selectable((whole_label(text_of(by)) + "###group-" + by).c_str(), by == compare.group_by)) compare.group_by = by;
    name_item("group:" + by);
  }
  ImGui::EndCombo();
}

const char* help_of(const Compare& compare, bool together) {
  if (!compare.over.empty()) return "With a metric as the x axis, each run is drawn separately: means need steps.";
  if (compare.group_by.empty() || together)
    return "Groups runs into one curve where all have points: by seed (all other settings equal), by the value of a setting, or by tag.";
  return compare.group_by == kBySeed ? "No two of these runs differ only in the seed: each is drawn separately."
                                     : "These runs do not differ in this setting: each is drawn separately.";
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
  tooltip("Curve of a group: mean or median of its runs.");
  next(em(10.5f));
  choose("##band", compare.group_band, {GroupBand::extremes, GroupBand::deviation});
  tooltip("Band of a group: lowest to highest run, or one standard deviation on both sides of the mean.");
}

}  // namespace comera::studio
