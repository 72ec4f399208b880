#include "app/studio/memory/in_step.h"

#include <algorithm>

#include "app/format.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/painting.h"
#include "app/studio/parts/texts.h"

namespace comera::studio {
namespace {

const char* title_of_phase(const std::string& name) {
  return name == "forward" ? "Forward" : name == "backward" ? "Backward" : name == "update" ? "Update" : "Evaluation";
}

constexpr size_t kPhaseColors[] = {0, 1, 2, 7};  // as for the phases in the profile

// Planned temporaries of a step by phase, on top of persistent memory, with a marker at the peak.
struct StepPicture {
  Drawing drawing;
  std::vector<Box> phases;  // place of each phase
  std::string says;         // peak size, and the phase it is in
};
// `unit`: height of a line of text; `text`: font size in the drawing.
StepPicture step_picture(const Snapshot& s, Point size, float unit, float text) {
  const std::vector<StepMemory::Phase>& phases = s.step_memory->phases;
  const double held =
      static_cast<double>(s.memory_planned.total() - s.memory_planned[Purpose::activation] - s.memory_planned[Purpose::workspace]);
  StepPicture out;
  size_t parts = 0, peak_phase = 0, peak_part = 0;
  int64_t most = -1;
  for (size_t i = 0; i < phases.size(); ++i) {
    parts += std::max<size_t>(1, phases[i].bytes.size());
    for (size_t k = 0; k < phases[i].bytes.size(); ++k)
      if (phases[i].bytes[k] > most) {
        most = phases[i].bytes[k];
        peak_phase = i;
        peak_part = k;
      }
  }
  most = std::max<int64_t>(most, 0);
  out.says = std::string("peak in ") + title_of_phase(phases[peak_phase].name) + ": " + mebibytes(static_cast<double>(most)) +
             " of temporaries on top of " + mebibytes(held) + " held";
  const float sign = unit * 0.5f, least = unit * 3.2f, gap = std::max(1.0f, unit * 0.12f);
  const float full = std::max(unit * 1.5f, size.y - sign - text * 1.3f), bottom = sign + full;
  const float spread = std::max(0.0f, size.x - least * static_cast<float>(phases.size()));
  const Theme& t = theme();
  float x = 0;
  for (size_t i = 0; i < phases.size(); ++i) {
    const std::vector<int64_t>& bytes = phases[i].bytes;
    const float width = least + spread * static_cast<float>(std::max<size_t>(1, bytes.size())) / static_cast<float>(parts);
    const Color color = t.series[kPhaseColors[std::min(i, std::size(kPhaseColors) - 1)]];
    out.drawing.rect({x, sign}, {x + width - gap, bottom}, t.raised, unit * 0.12f);
    const float each = (width - gap) / static_cast<float>(std::max<size_t>(1, bytes.size()));
    for (size_t k = 0; k < bytes.size(); ++k) {
      const float tall = most > 0 ? full * static_cast<float>(bytes[k]) / static_cast<float>(most) : 0;
      const float from = x + each * static_cast<float>(k);
      out.drawing.rect({from, bottom - tall}, {from + each, bottom}, with_alpha(color, 0.85f));
      if (i == peak_phase && k == peak_part) {
        const float middle = from + each / 2;
        out.drawing.polygon({{middle - sign / 2, 0}, {middle + sign / 2, 0}, {middle, sign * 0.8f}}, t.text);
      }
    }
    const char* title = title_of_phase(phases[i].name);
    if (drawn_width(title, text) < width) out.drawing.text({x, bottom + text * 0.7f}, text, t.dim, title);
    out.phases.push_back({x, 0, x + width, bottom + text * 1.3f});
    x += width;
  }
  out.drawing.size = {size.x, bottom + text * 1.3f};
  return out;
}

}  // namespace

bool knows_step(const Snapshot& s) { return s.step_memory && !s.step_memory->phases.empty(); }

void draw_memory_in_step(const Snapshot& s, ImVec2 size) {
  if (!knows_step(s)) return text_dim("This run has no recorded plan of a step.");
  const ImVec2 line = ImGui::GetCursorScreenPos();
  const float below = ImGui::GetTextLineHeight() + ImGui::GetStyle().ItemSpacing.y;
  const StepPicture picture = step_picture(s, {size.x, size.y - below}, em(1), ImGui::GetFontSize());
  text_fit(picture.says, std::max(1.0f, size.x - em(1.6f)), theme().dim);
  name_item("says:" + picture.says);
  ImGui::SameLine(0, em(0.35f));
  help_marker(
      "Temporaries of forward, backward, update and evaluation, in addition to weights, gradients, moments and data; from the dry run "
      "before step 1, with the initial ranks. The x axis is the order of allocations and releases, not time.");
  const ImVec2 at(line.x, ImGui::GetCursorScreenPos().y);
  paint(picture.drawing, *ImGui::GetWindowDrawList(), at, 1);
  ImGui::Dummy(picture.drawing.size.x > 0 ? ImVec2(picture.drawing.size.x, picture.drawing.size.y) : ImVec2(1, 1));
  name_item("chart:memory-in-step");
  std::vector<Copied> copied;
  for (size_t i = 0; i < picture.phases.size(); ++i) {
    const Box& box = picture.phases[i];
    if (!ImGui::IsMouseHoveringRect({at.x + box.x0, at.y + box.y0}, {at.x + box.x1, at.y + box.y1}) || !ImGui::IsWindowHovered()) continue;
    const StepMemory::Phase& phase = s.step_memory->phases[i];
    const auto most = static_cast<double>(phase.bytes.empty() ? 0 : *std::max_element(phase.bytes.begin(), phase.bytes.end()));
    const std::string text = std::string(title_of_phase(phase.name)) + ": " + exact_bytes(most) + " of temporaries at the peak";
    ImGui::SetTooltip("%s", text.c_str());
    copied = {{"Copy value", text}};
  }
  ImGui::PushID("in-step");
  copy_menu(copied, !copied.empty());
  ImGui::PopID();
}

Chart memory_in_step_chart(const Snapshot& s, const std::string& note) {
  constexpr Point kSize = {860, 260};
  const StepPicture picture = step_picture(s, kSize, 13, 12);
  Chart chart{"memory-in-step", "Memory in a step", {}, on_page(picture.drawing, "Temporaries in a step", note + ": " + picture.says)};
  chart.csv = [memory = s.step_memory] {
    std::vector<std::vector<std::string>> rows{{"phase", "request", "bytes"}};
    for (const StepMemory::Phase& phase : memory->phases)
      for (size_t i = 0; i < phase.bytes.size(); ++i) rows.push_back({phase.name, std::to_string(i + 1), std::to_string(phase.bytes[i])});
    return csv_text(rows);
  };
  return chart;
}

}  // namespace comera::studio
