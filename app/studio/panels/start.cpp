// The start page: demo, presets, recent runs.
#include <algorithm>
#include <cmath>

#include "app/format.h"
#include "app/studio/actions.h"
#include "app/studio/newcomer.h"
#include "app/studio/panels.h"
#include "app/studio/parts/cards.h"
#include "app/studio/parts/icons.h"
#include "app/studio/parts/inputs.h"
#include "app/studio/parts/looks.h"
#include "app/studio/parts/texts.h"

namespace comera::studio {
namespace {

void wrapped(const char* text) {
  ImGui::PushTextWrapPos(0);
  text_dim(text);
  ImGui::PopTextWrapPos();
}

// In narrow windows the cards are one below another, each as high as its content.
bool stacks_cards() { return ImGui::GetMainViewport()->Size.x < em(50); }

bool begin_start_card(const char* id, ImVec2 size) {
  return stacks_cards() ? begin_card(id, {0, 0}, ImGuiChildFlags_AutoResizeY) : begin_card(id, size, 0, ImGuiWindowFlags_NoScrollbar);
}

// Aligns the buttons of cards at their bottom.
void to_bottom() {
  if (stacks_cards()) return;
  const float y = ImGui::GetWindowHeight() - ImGui::GetFrameHeight() - em(0.55f) - ImGui::GetStyle().WindowPadding.y;
  ImGui::SetCursorPosY(std::max(ImGui::GetCursorPosY(), y));
}

ImVec2 wide_button() { return {ImGui::GetContentRegionAvail().x, ImGui::GetFrameHeight() + em(0.5f)}; }

// The run that trains in this window, or its last one.
void this_session(UiState& ui) {
  const Snapshot& s = *ui.live->view().snapshot;
  card_title("This session");
  const PhaseLook look = look_of(s.phase);
  chip(look.text, look.color, look.icon);
  ImGui::SameLine();
  text_fit(s.name, ImGui::GetContentRegionAvail().x, theme().text);
  const double share = s.total_steps > 0 ? static_cast<double>(s.step) / static_cast<double>(s.total_steps) : 0;
  progress_bar(static_cast<float>(share), {ImGui::GetContentRegionAvail().x, em(0.4f)}, theme().accent, "");
  wrapped((thousands(static_cast<double>(s.step)) + " of " + counted(s.total_steps, "step")).c_str());
  to_bottom();
  if (button("Show it", {.icon = Icon::chart, .size = wide_button()})) show_live(ui);
}

// The newest run of the store. `no`: why it cannot be resumed here; "" = it can.
void last_run(UiState& ui, const std::string& no) {
  const RunRow& row = ui.runs->rows.front();
  card_title("Last run");
  const PhaseLook look = look_of(phase_of(row.status));
  chip(look.text, look.color, look.icon);
  ImGui::SameLine();
  text_fit(row.name.empty() ? row.id : row.name, ImGui::GetContentRegionAvail().x, theme().text);
  std::string text = thousands(static_cast<double>(row.summary.step)) + " of " + counted(row.summary.total_steps, "step");
  if (std::isfinite(row.summary.val_accuracy)) text += ", accuracy " + significant(row.summary.val_accuracy * 100, 3) + " %";
  if (row.summary.compression > 1) text += ", " + significant(row.summary.compression, 3) + "x smaller";
  wrapped(text.c_str());
  const bool resumable = row.status == "interrupted" || row.status == "stopped";
  to_bottom();
  ImVec2 size = wide_button();
  if (resumable) size.x = (size.x - ImGui::GetStyle().ItemSpacing.x) / 2;
  if (button("Open###open-last", {.icon = Icon::chart, .size = size})) open_run(ui, row.id);
  if (!resumable) return;
  ImGui::SameLine();
  if (button("Resume###resume-last", {.icon = Icon::play,
                                      .enabled = no.empty(),
                                      .tooltip = "Continues from the last checkpoint",
                                      .why_not = no.c_str(),
                                      .size = size}))
    resume_run(ui, row.id);
}

// Side by side: train the demo, and replay the recorded run.
void demo_buttons(UiState& ui, const std::string& no) {
  ImVec2 run = wide_button();
  const char* replay = "Replay a recorded run###replay-recorded";
  const ButtonLook look{.icon = Icon::rewind,
                        .tooltip = "Plays a run that ships with the program: six text encoders whose ranks fall and grow again",
                        .size = {0, run.y}};
  if (!recorded_store().empty()) {
    const float gap = ImGui::GetStyle().ItemSpacing.x;
    if (run.x - gap - button_width(replay, look) < em(9)) replay = "Replay###replay-recorded";
    run.x -= gap + button_width(replay, look);
  }
  if (button("Run the demo", {.icon = Icon::play,
                              .primary = true,
                              .enabled = no.empty(),
                              .tooltip = "Starts at once: a small image network on 10,000 pictures of clothes",
                              .why_not = no.c_str(),
                              .size = run}))
    start_preset(ui, "demo");
  if (recorded_store().empty()) return;
  ImGui::SameLine();
  if (button(replay, look)) replay_recorded(ui);
}

// Name and purpose of the program; a button to open another database at the right.
void heading(UiState& ui) {
  const float right = ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x;
  push_large();
  ImGui::TextUnformatted("CoMERA Studio");
  ImGui::PopFont();
  const char* about = "Train networks as tensor trains with trainable ranks.";
  if (ui.runs->rows.empty()) return wrapped(about);  // in this case a card has the button
  const ButtonLook look{.tooltip = "Shows the runs of another database; you can also drop it onto this window",
                        .keys = ui.settings.keys.of("file.open_store")};
  const char* open = "Open database ...###open-database";
  const float left = right - button_width("Open database ...", look);
  if (ImGui::GetCursorPosX() + ImGui::CalcTextSize(about).x + em(1) > left) {
    wrapped(about);
  } else {
    ImGui::AlignTextToFramePadding();
    text_dim(about);
    ImGui::SameLine();
    ImGui::SetCursorPosX(left);
  }
  if (button(open, look)) open_browser(ui, BrowseFor::store);
}

// Card for opening databases and files.
void open_something(UiState& ui) {
  card_title("Open");
  wrapped("Open a database or config, or drop one here. Checkpoints, event files, CSV and data sets can be dropped too.");
  to_bottom();
  const ImVec2 all = wide_button(), half((all.x - ImGui::GetStyle().ItemSpacing.x) / 2, all.y);
  if (button("Database ...###card-open-store",
             {.tooltip = "Show the runs of another database", .keys = ui.settings.keys.of("file.open_store"), .size = half}))
    open_browser(ui, BrowseFor::store);
  ImGui::SameLine();
  if (button("Config ...###card-open-config",
             {.tooltip = "A new run from a config file", .keys = ui.settings.keys.of("file.open_config"), .size = half}))
    open_browser(ui, BrowseFor::config);
}

}  // namespace

void draw_start(UiState& ui) {
  const std::string no = no_writing(ui);
  const float full = ImGui::GetContentRegionAvail().x, page = std::min(full, em(92));
  const bool tall = ImGui::GetContentRegionAvail().y > em(38);
  ImGui::SetCursorPosX(ImGui::GetCursorPosX() + std::floor((full - page) / 2));
  ImGui::BeginChild("start-page", {page, 0}, ImGuiChildFlags_NavFlattened);  // scrolls in low windows
  const float wide = ImGui::GetContentRegionAvail().x;
  ImGui::Dummy({0, em(tall ? 1.2f : 0)});
  heading(ui);
  ImGui::Dummy({0, em(tall ? 0.6f : 0)});

  const float gap = std::round(ImGui::GetStyle().ItemSpacing.x * 1.4f), height = em(tall ? 10.8f : 9.6f);
  const float width = std::floor((wide - 2 * gap) / 3);
  const auto next_card = [&] {
    if (!stacks_cards()) ImGui::SameLine(0, gap);
  };
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(ImGui::GetStyle().ItemSpacing.x, em(0.45f)));
  if (begin_start_card("card-demo", {width, height})) {
    card_title("Demo");
    wrapped("A network trains for two and a half minutes. After ten seconds its ranks fall: drag \"Size target\", they follow.");
    to_bottom();
    demo_buttons(ui, no);
  }
  end_card();
  next_card();
  if (begin_start_card("card-preset", {width, height})) {
    card_title("New run");
    wrapped("All settings of a run with a forecast of its cost, or a preset as it is.");
    to_bottom();
    ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(ImGui::GetStyle().FramePadding.x, ImGui::GetStyle().FramePadding.y + em(0.25f)));
    const float buttons = button_width("Start", {.icon = Icon::play}) + button_width("Settings ...", {});
    const float rest = ImGui::GetContentRegionAvail().x - buttons - 2 * ImGui::GetStyle().ItemSpacing.x;
    const bool one_line = rest > em(6);
    ImGui::SetNextItemWidth(one_line ? rest : ImGui::GetContentRegionAvail().x);
    if (ImGui::BeginCombo("##preset", ui.preset.c_str())) {
      for (const std::string& name : presets())
        if (ImGui::Selectable(name.c_str(), name == ui.preset)) ui.preset = name;
      ImGui::EndCombo();
    }
    if (one_line) ImGui::SameLine();
    if (button("Settings ...", {.tooltip = "Opens its settings in the form", .keys = ui.settings.keys.of("layout.new")}))
      open_form(ui, ui.preset);
    ImGui::SameLine();
    if (button("Start", {.icon = Icon::play, .enabled = no.empty(), .tooltip = "Starts this preset", .why_not = no.c_str()}))
      start_preset(ui, ui.preset);
    ImGui::PopStyleVar();
  }
  end_card();
  next_card();
  if (begin_start_card("card-continue", {wide - 2 * (width + gap), height})) {  // extends to the right edge of the list below
    if (ui.live)
      this_session(ui);
    else if (!ui.runs->rows.empty())
      last_run(ui, no);
    else
      open_something(ui);
  }
  end_card();
  ImGui::PopStyleVar();

  ImGui::Dummy({0, em(0.1f)});
  if (begin_card("card-runs", {wide, std::max(ImGui::GetContentRegionAvail().y, em(13))})) draw_runs(ui);
  end_card();
  ImGui::EndChild();
}

}  // namespace comera::studio
