// Memory by purpose, a bar a run on one scale, and the figures.
#include <algorithm>
#include <cstdio>

#include "app/format.h"
#include "app/studio/compare/tabs.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/widgets.h"

namespace comera::studio {
namespace {

const MemoryByPurpose& memory_of(const Compare& compare, const ComparedRun& run) {
  return compare.memory_at_peak ? run.snapshot().memory_peak : run.snapshot().memory_now;
}

void draw_bar(Compare& compare, const ComparedRun& run, const MemoryByPurpose& memory, double full, float width, float height) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(at, {at.x + width, at.y + height}, theme().raised, em(0.2f));
  std::vector<Copied> copied;
  float x = at.x;
  for (int i = 0; i < kPurposes; ++i) {
    const PurposeLook look = look_of(static_cast<Purpose>(i));
    const auto bytes = static_cast<double>(memory.bytes[static_cast<size_t>(i)]);
    const float part = full > 0 ? static_cast<float>(bytes / full) * width : 0;
    if (part <= 0) continue;
    list->AddRectFilled({x, at.y}, {x + std::max(part - (part > 3 ? 1.0f : 0.0f), 0.5f), at.y + height},
                        with_alpha(look.color, run.faint() ? 0.3f : 1), em(0.12f));
    if (ImGui::IsMouseHoveringRect({x, at.y}, {x + part, at.y + height}) && ImGui::IsWindowHovered()) {
      ImGui::SetTooltip("%s  %s = %s", look.title, mebibytes(bytes).c_str(), megabytes(bytes).c_str());
      copied = {{"Copy value", std::string(look.title) + "  " + mebibytes(bytes)}};
    }
    x += part;
  }
  ImGui::PushID(run.wanted.c_str());
  copy_menu(copied, !copied.empty());
  ImGui::PopID();
  ImGui::Dummy({width, height});
  if (ImGui::IsItemHovered()) compare.hovered = run.wanted;
  name_item("chart:memory");
}

std::string against(double bytes, double base) {
  char text[32];
  std::snprintf(text, sizeof text, "%+.1f %%", 100 * (bytes - base) / base);
  return text;
}

}  // namespace

void draw_memory_tab(Compare& compare) {
  push_small();
  static constexpr const char* kWhen[] = {"Peak", "Now"};
  int when = compare.memory_at_peak ? 0 : 1;
  if (segmented("when", kWhen, 2, when)) compare.memory_at_peak = when == 0;
  ImGui::SameLine(0, em(1));
  ImGui::AlignTextToFramePadding();
  text_fit(compare.memory_at_peak ? "The moment at which training held most, up to the cursor."
                                  : "At the cursor; at the end of each run without one.",
           ImGui::GetContentRegionAvail().x, theme().dim);
  double full = 0;
  std::string lacking;
  for (const auto& run : compare.runs) {
    if (!run->read()) continue;
    const auto total = static_cast<double>(memory_of(compare, *run).total());
    full = std::max(full, total);
    if (total == 0) add_name(lacking, label_of(compare, *run));
  }
  if (!lacking.empty()) banner(Level::warning, "Memory was not recorded: " + lacking);
  ImGui::PopFont();
  if (full == 0) {
    empty_state(Icon::chart, "No memory", "None of these runs recorded its memory.");
    return;
  }
  const ComparedRun* baseline = compare.baseline_run();
  const double base = baseline && baseline->read() ? static_cast<double>(memory_of(compare, *baseline).total()) : 0;
  ImGui::BeginChild("bars", {0, 0});
  push_small();
  const float room = ImGui::GetContentRegionAvail().x, names = std::clamp(room * 0.28f, em(7), em(18)), numbers = em(13.5f);
  const float width = std::max(em(4), room - names - numbers - em(1));
  const float height = em(1.25f);
  for (const auto& run : compare.runs) {
    if (!run->read() || memory_of(compare, *run).total() == 0) continue;
    const auto total = static_cast<double>(memory_of(compare, *run).total());
    const float left = ImGui::GetCursorPosX(), top = ImGui::GetCursorPosY(), middle = (height - ImGui::GetTextLineHeight()) / 2;
    ImGui::SetCursorPosY(top + middle);
    run_label(compare, *run, names);
    ImGui::SetCursorPos({left + names + em(0.5f), top});
    draw_bar(compare, *run, memory_of(compare, *run), full, width, height);
    ImGui::PushFont(fonts().numbers, 0);
    ImGui::SetCursorPos({left + names + width + em(0.5f), top + middle});
    text_right(mebibytes(total), left + names + width + em(0.5f) + numbers * 0.55f, theme().text);
    if (run.get() != baseline && base > 0) {
      const ImU32 color = total < base ? theme().good : total > base ? theme().bad : theme().dim;
      ImGui::SetCursorPos({left + names + width + em(0.5f) + numbers * 0.55f, top + middle});
      text_right(total == base ? "same" : against(total, base), left + names + width + numbers + em(0.5f), color);
    } else if (run.get() == baseline) {
      ImGui::SetCursorPos({left + names + width + em(0.5f) + numbers * 0.55f, top + middle});
      text_right("baseline", left + names + width + numbers + em(0.5f), theme().accent);
    }
    ImGui::PopFont();
    ImGui::SetCursorPos({left, top + height + em(0.45f)});
    ImGui::Dummy({0, 0});
  }
  ImGui::Dummy({0, em(0.4f)});
  if (begin_run_table("purposes", compare, "Purpose", em(8.5f), em(8))) {
    for (int i = 0; i < kPurposes; ++i) {
      const auto at = static_cast<size_t>(i);
      if (std::all_of(compare.runs.begin(), compare.runs.end(),
                      [&](const auto& run) { return !run->read() || memory_of(compare, *run).bytes[at] == 0; }))
        continue;
      const PurposeLook look = look_of(static_cast<Purpose>(i));
      ImGui::TableNextRow();
      ImGui::TableNextColumn();
      const ImVec2 where = ImGui::GetCursorScreenPos();
      const float line = ImGui::GetTextLineHeight();
      ImGui::GetWindowDrawList()->AddRectFilled({where.x, where.y + line * 0.2f}, {where.x + line * 0.6f, where.y + line * 0.8f},
                                                look.color, line * 0.12f);
      ImGui::SetCursorPosX(ImGui::GetCursorPosX() + line);
      text_fit(look.title, ImGui::GetContentRegionAvail().x, theme().text);
      tooltip(look.help);
      for (const auto& run : compare.runs) {
        ImGui::TableNextColumn();
        if (!run->read()) continue;
        const MemoryByPurpose& memory = memory_of(compare, *run);
        ImGui::PushFont(fonts().numbers, 0);
        const auto bytes = static_cast<double>(memory.bytes[at]);
        text_right(memory.total() == 0 ? "-"
                   : bytes == 0        ? "0"
                                       : mebibytes(bytes),
                   ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x, bytes == 0 ? theme().dim : theme().text);
        ImGui::PopFont();
        if (memory.total() == 0) continue;
        ImGui::PushID((std::to_string(i) + run->wanted).c_str());
        copy_menu({{"Copy value", mebibytes(bytes)}, {"Copy bytes", csv_number(bytes)}});
        ImGui::PopID();
      }
    }
    ImGui::EndTable();
  }
  ImGui::PopFont();
  ImGui::EndChild();
}

std::vector<Chart> compared_memory_charts(Compare& compare) {
  std::vector<Chart> out;
  double full = 0;
  for (const auto& run : compare.runs)
    if (run->read()) full = std::max(full, static_cast<double>(memory_of(compare, *run).total()));
  if (full == 0) return out;
  constexpr float kNames = 220, kBar = 480, kRow = 30, kTop = 96;
  const char* title = compare.memory_at_peak ? "Peak memory by purpose" : "Memory by purpose";
  Chart chart{"memory",
              title,
              {},
              begin_drawing({kNames + kBar + 150, kTop + 20 + kRow * static_cast<float>(compare.runs.size())}, title, note_of(compare))};
  Drawing& drawing = chart.drawing;
  float x = 20;
  std::vector<std::vector<std::string>> table = {{"run"}};
  for (int i = 0; i < kPurposes; ++i) {
    const PurposeLook look = look_of(static_cast<Purpose>(i));
    table[0].push_back(std::string(look.title) + " (bytes)");
    if (std::all_of(compare.runs.begin(), compare.runs.end(),
                    [&](const auto& run) { return !run->read() || memory_of(compare, *run).bytes[static_cast<size_t>(i)] == 0; }))
      continue;
    drawing.rect({x, 60}, {x + 10, 70}, look.color, 2);
    drawing.text({x + 15, 65}, 11, theme().dim, look.title);
    x += 34 + static_cast<float>(std::string(look.title).size()) * 6.2f;
  }
  drawing.size.x = std::max(drawing.size.x, x + 10);
  table[0].push_back("all (bytes)");
  for (size_t r = 0; r < compare.runs.size(); ++r) {
    const ComparedRun& run = *compare.runs[r];
    const float y = kTop + kRow * static_cast<float>(r);
    drawing.text({20, y + kRow / 2}, 12, theme().text, label_of(compare, run));
    if (!run.read()) continue;
    const MemoryByPurpose& memory = memory_of(compare, run);
    float at = kNames;
    table.push_back({label_of(compare, run)});
    for (int i = 0; i < kPurposes; ++i) {
      const auto bytes = memory.bytes[static_cast<size_t>(i)];
      table.back().push_back(std::to_string(bytes));
      const float part = static_cast<float>(static_cast<double>(bytes) / full) * kBar;
      if (part > 0) drawing.rect({at, y + 5}, {at + part, y + kRow - 5}, look_of(static_cast<Purpose>(i)).color, 1);
      at += part;
    }
    table.back().push_back(std::to_string(memory.total()));
    drawing.text({at + 8, y + kRow / 2}, 12, theme().text, mebibytes(static_cast<double>(memory.total())));
  }
  chart.csv = [table = std::move(table)] { return csv_text(table); };
  out.push_back(std::move(chart));
  return out;
}

}  // namespace comera::studio
