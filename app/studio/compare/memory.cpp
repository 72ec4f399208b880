// Memory by purpose: one bar per run on a common scale, and the figures.
#include <algorithm>
#include <cstdio>

#include "app/format.h"
#include "app/studio/compare/run_bars.h"
#include "app/studio/compare/tabs.h"
#include "app/studio/parts/cards.h"
#include "app/studio/parts/icons.h"
#include "app/studio/parts/inputs.h"
#include "app/studio/parts/looks.h"
#include "app/studio/parts/texts.h"

namespace comera::studio {
namespace {

const MemoryByPurpose& memory_of(const Compare& compare, const ComparedRun& run) {
  return compare.memory_at_peak ? run.snapshot().memory_peak : run.snapshot().memory_now;
}

std::string against(double bytes, double base) {
  char text[32];
  std::snprintf(text, sizeof text, "%+.1f %%", 100 * (bytes - base) / base);
  return text;
}

// Bar of a run: memory by purpose, and the difference from `base`, the bytes of the baseline (0 = not known).
RunBar bar_of(const Compare& compare, const ComparedRun& run, double base) {
  RunBar bar{&run, {}, {}};
  if (!run.read()) return bar;
  const MemoryByPurpose& memory = memory_of(compare, run);
  bar.parts = purpose_parts(memory);
  const auto total = static_cast<double>(memory.total());
  bar.figures.push_back({mebibytes(total), theme().text});
  if (&run == compare.baseline_run())
    bar.figures.push_back({"baseline", theme().accent});
  else if (base > 0)
    bar.figures.push_back({total == base ? "same" : against(total, base), total < base   ? theme().good
                                                                          : total > base ? theme().bad
                                                                                         : theme().dim});
  return bar;
}

}  // namespace

void draw_memory_tab(Compare& compare) {
  push_small();
  static constexpr const char* kWhen[] = {"Peak", "Now"};
  int when = compare.memory_at_peak ? 0 : 1;
  if (segmented("when", kWhen, 2, when)) compare.memory_at_peak = when == 0;
  ImGui::SameLine(0, em(1));
  ImGui::AlignTextToFramePadding();
  text_fit(compare.memory_at_peak ? "The peak of training up to the cursor." : "At the cursor, or at the end of each run.",
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
  std::vector<RunBar> bars;
  for (const auto& run : compare.runs)
    if (run->read() && memory_of(compare, *run).total() > 0) bars.push_back(bar_of(compare, *run, base));
  draw_run_bars(compare, bars, full, "chart:memory");
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

namespace {

double most_bytes(const Compare& compare) {
  double most = 0;
  for (const auto& run : compare.runs)
    if (run->read()) most = std::max(most, static_cast<double>(memory_of(compare, *run).total()));
  return most;
}

Chart compared_memory_chart(const Compare& compare, const char* title) {
  std::vector<BarKind> kinds;
  std::vector<RunBar> bars;
  std::vector<std::vector<std::string>> table = {{"run"}};
  for (int i = 0; i < kPurposes; ++i) {
    const PurposeLook look = look_of(static_cast<Purpose>(i));
    table[0].push_back(std::string(look.title) + " (bytes)");
    if (std::any_of(compare.runs.begin(), compare.runs.end(),
                    [&](const auto& run) { return run->read() && memory_of(compare, *run).bytes[static_cast<size_t>(i)] > 0; }))
      kinds.push_back({look.title, look.color});
  }
  table[0].push_back("all (bytes)");
  for (const auto& run : compare.runs) {
    bars.push_back(bar_of(compare, *run, 0));
    if (!run->read()) continue;
    const MemoryByPurpose& memory = memory_of(compare, *run);
    table.push_back({label_of(compare, *run)});
    for (const int64_t bytes : memory.bytes) table.back().push_back(std::to_string(bytes));
    table.back().push_back(std::to_string(memory.total()));
  }
  Chart chart = run_bars_chart(compare, "memory", title, kinds, bars, most_bytes(compare));
  chart.csv = [table = std::move(table)] { return csv_text(table); };
  return chart;
}

}  // namespace

std::vector<ListedChart> compared_memory_charts(Compare& compare) {
  if (most_bytes(compare) == 0) return {};
  const char* title = compare.memory_at_peak ? "Peak memory by purpose" : "Memory by purpose";
  return {{"memory", title, [&compare, title] { return compared_memory_chart(compare, title); }}};
}

}  // namespace comera::studio
