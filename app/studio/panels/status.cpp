// The status bar: device, memory, state of the database, frame time, alerts. A click on an item opens its details.
#include <algorithm>
#include <cstdio>

#include "app/format.h"
#include "app/studio/actions.h"
#include "app/studio/panels.h"
#include "app/studio/parts/cards.h"
#include "app/studio/parts/icons.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/texts.h"
#include "core/store/process.h"

namespace comera::studio {
namespace {

struct Item {
  const char* id = "";
  std::string text = {};
  std::string tip = {};
  int rank = 0;                        // items with the largest rank are dropped first
  void (*act)(UiState& ui) = nullptr;  // on click; null: none
  ImU32 color = theme().dim;           // of the text
  Icon icon = Icon::none;              // drawn as a chip, for a state that needs attention
  bool at_end = false;                 // at the right end of the bar
};

std::string step_text(int64_t step) { return thousands(static_cast<double>(step)); }

// Database of the shown run, and time since its last write.
Item store_item(const UiState& ui) {
  const Snapshot& s = *ui.shown().snapshot;
  const auto to_runs = [](UiState& state) { show_layout(state, "start"); };
  Item item{.id = "store", .text = "not stored", .tip = "This run is not saved", .rank = 2, .act = to_runs};
  if (!s.store_problem.empty()) {
    item.text = "not saved";
    item.tip = s.store_problem;
    item.rank = 0;
    item.color = theme().bad;
    item.icon = Icon::warning;
    item.act = [](UiState& state) { show_panel(state, "log"); };
    return item;
  }
  const bool nowhere = ui.shown().live && ui.shown().store.empty();
  if (nowhere || (s.run.empty() && has_ended(s.phase))) return item;
  if (s.run.empty()) {
    item.text = "not stored yet";
    item.tip = "The run is being prepared";
    return item;
  }
  const double age = now_s() - s.saved_at;
  const bool waits = ui.shown().live && s.phase == Phase::running && s.saved_at > 0;  // otherwise everything is saved
  item.text = waits ? "saved " + ago(age) + " ago" : "saved";
  item.tip = (s.name.empty() ? "run" : s.name) + "  " + s.run + "\nin " + ui.shown().store;
  if (s.last_checkpoint_step >= 0) {
    item.tip += "\nlast checkpoint: step " + step_text(s.last_checkpoint_step);
    if (s.last_checkpoint_at > 0) item.tip += ", " + ago(now_s() - s.last_checkpoint_at) + " ago";
  }
  return item;
}

std::vector<Item> items_of(const UiState& ui) {
  const Snapshot& s = *ui.shown().snapshot;
  std::vector<Item> all;
  all.push_back({.id = "device",
                 .text = s.device.empty() ? "CPU" : s.device,
                 .tip = "Device of the run; About shows more about this machine",
                 .rank = 3,
                 .act = [](UiState& state) { open_dialog(state, Dialog::about); }});
  const auto memory = [](UiState& state) { show_panel(state, "memory"); };
  all.push_back({.id = "process",
                 .text = "process " + mebibytes(static_cast<double>(ui.process_bytes)),
                 .tip = "Resident memory of this program",
                 .rank = 4,
                 .act = memory});
  if (const int64_t held = s.memory_now.total(); held > 0 && s.device.rfind("CPU", 0) != 0 && !s.device.empty())
    all.push_back({.id = "gpu",
                   .text = "GPU " + mebibytes(static_cast<double>(held)),
                   .tip = "Memory that the run holds on the device",
                   .rank = 3,
                   .act = memory});
  if (ui.has_run()) all.push_back(store_item(ui));
  if (ui.load_request != 0 && ui.store && ui.store->progress() > 0) {
    char reading[48];
    std::snprintf(reading, sizeof reading, "reading the run: %.0f %%", 100 * ui.store->progress());
    all.push_back({.id = "reading", .text = reading, .rank = 1, .color = theme().accent, .icon = Icon::clock});
  }
  if (ui.queue)
    all.push_back({.id = ui.queue->order.noun.c_str(),
                   .text = ui.queue->order.noun + " " + queue_progress(*ui.queue),
                   .tip = "Runs that are trained one after another. Opens the form",
                   .rank = 1,
                   .act = ui.queue->order.open_form,
                   .color = theme().accent,
                   .icon = Icon::play});
  if (!ui.runs->read_only.empty())
    all.push_back({.id = "read-only",
                   .text = "read-only",
                   .tip = "The database is read-only: " + ui.runs->read_only,
                   .rank = 1,
                   .act = [](UiState& state) { show_layout(state, "start"); },
                   .color = theme().warning,
                   .icon = Icon::warning});
  if (!ui.ending.empty())
    all.push_back(
        {.id = "ending", .text = "an earlier run is writing its checkpoint", .rank = 2, .color = theme().warning, .icon = Icon::clock});
  const auto alerts_in = [](const std::vector<LogLine>& log) {
    return std::count_if(log.begin(), log.end(), [](const LogLine& line) { return line.level >= Level::warning; });
  };
  if (const auto alerts = alerts_in(ui.shown().log) + alerts_in(ui.window_log); alerts > 0)
    all.push_back({.id = "alerts",
                   .text = std::to_string(alerts) + (alerts == 1 ? " alert" : " alerts"),
                   .tip = "Show them in the log",
                   .rank = 0,
                   .act =
                       [](UiState& state) {
                         state.log.level = 1;
                         show_panel(state, "log");
                       },
                   .color = theme().warning,
                   .icon = Icon::warning});
  char frame[32];
  std::snprintf(frame, sizeof frame, "frame %.1f ms", ui.frame_ms);
  all.push_back({.id = "frame",
                 .text = frame,
                 .tip = "Time to draw a frame of this window; Profile shows more",
                 .rank = 5,
                 .act = [](UiState& state) { show_panel(state, "profile"); },
                 .at_end = true});
  return all;
}

float width_of(const Item& item) {
  return item.icon == Icon::none ? ImGui::CalcTextSize(item.text.c_str()).x + em(0.6f) : chip_width(item.text.c_str(), item.icon);
}

// True if it was clicked.
bool draw_item(const Item& item) {
  const ImVec2 at = ImGui::GetCursorPos();
  if (item.icon != Icon::none) {
    chip(item.text.c_str(), item.color, item.icon);
  } else {
    ImGui::SetCursorPosX(at.x + em(0.3f));
    ImGui::PushStyleColor(ImGuiCol_Text, item.color);
    ImGui::TextUnformatted(item.text.c_str());
    ImGui::PopStyleColor();
  }
  name_item("says:" + item.text);
  ImGui::PushID(item.id);
  const bool pressed = focus_area("##item", at, {width_of(item), ImGui::GetTextLineHeight()});
  ImGui::PopID();
  name_item(std::string("status:") + item.id);
  if (item.act && ImGui::IsItemHovered() && item.icon == Icon::none)  // highlight of a text button
    ImGui::GetWindowDrawList()->AddRectFilled(ImGui::GetItemRectMin(), ImGui::GetItemRectMax(), with_alpha(theme().hover, 0.5f), em(0.2f));
  told(item.id, item.tip, item.text);
  return pressed && item.act;
}

}  // namespace

void draw_status(UiState& ui) {
  const float room = ImGui::GetContentRegionAvail().x;
  push_small();
  const float gap = em(0.9f);
  ImGui::SetCursorPosY((ImGui::GetWindowHeight() - ImGui::GetTextLineHeight()) / 2);
  std::vector<Item> all = items_of(ui);
  const auto width = [&] {
    float sum = -gap;
    for (const Item& item : all) sum += width_of(item) + gap;
    return sum;
  };
  while (all.size() > 1 && width() > room)
    all.erase(std::max_element(all.begin(), all.end(), [](const Item& a, const Item& b) { return a.rank < b.rank; }));
  const Item* clicked = nullptr;
  const float left = ImGui::GetCursorPosX();
  for (size_t i = 0; i < all.size(); ++i) {
    if (i > 0) ImGui::SameLine(0, gap);
    if (all[i].at_end) ImGui::SetCursorPosX(std::max(ImGui::GetCursorPosX(), left + room - width_of(all[i])));
    if (draw_item(all[i])) clicked = &all[i];
  }
  ImGui::PopFont();
  if (clicked) clicked->act(ui);
}

}  // namespace comera::studio
