// The bar that starts, pauses and stops a run and shows its progress.
#include <imgui_internal.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "app/format.h"
#include "app/studio/actions.h"
#include "app/studio/frame.h"
#include "app/studio/panels.h"
#include "app/studio/parts/cards.h"
#include "app/studio/parts/icons.h"
#include "app/studio/parts/inputs.h"
#include "app/studio/parts/looks.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/texts.h"
#include "app/studio/shown_run/eta.h"

namespace comera::studio {
namespace {

std::string counts(const Snapshot& s) {
  return thousands(static_cast<double>(s.step)) + " / " + thousands(static_cast<double>(s.total_steps));
}

bool pauses(const Snapshot& s) { return s.pause_at >= 0 && !has_ended(s.phase); }

// Parts of the bar that have words if there is room, else an icon with a tooltip, and finally nothing.
struct Words {
  bool new_run = true, stored = true, start = true, phase = true;
  bool new_run_at_all = true, stage_at_all = true, stored_at_all = true, broad = true;
};

// Order in which parts lose their words or disappear, the least important first. Buttons for the run and the progress always stay.
constexpr bool Words::*kGivenUp[] = {&Words::new_run,        &Words::stored,       &Words::start,         &Words::phase,
                                     &Words::new_run_at_all, &Words::stage_at_all, &Words::stored_at_all, &Words::broad};

struct Chip {
  const char* text;
  ImU32 color;
  Icon icon;
  const char* tip;
  bool words;
};

float width_of(const Chip& one) { return chip_width(one.words ? one.text : "", one.icon); }

// The training stage of a run with tensor trains.
Chip stage_chip(const Snapshot& s) {
  const Theme& t = theme();
  if (s.phase == Phase::finished) return {"Done", t.good, Icon::check, "All steps are done.", true};
  if (s.late) return {"Late", t.series[3], Icon::dot, "Late stage: drives size and loss to their targets.", true};
  return {"Early", t.series[0], Icon::ring, "Early stage: minimises the loss and a gentle rank penalty.", true};
}

// The progress as text; parts that do not fit are left out, the least important first.
std::string progress_text(const UiState& ui, const Snapshot& s, float room) {
  if (!s.message.empty() && s.phase == Phase::preparing) return s.message;
  if (s.total_steps <= 0) return "no steps yet";
  if (const double waited = ImGui::GetTime() - ui.ending_since; ui.ending_since > 0 && waited > 1)
    return "finishing step " + thousands(static_cast<double>(s.step + 1)) + ", " + duration(waited);
  const auto fits = [&](const std::string& text) { return ImGui::CalcTextSize(text.c_str()).x <= room; };
  struct Part {
    std::string text;
    int rank;  // larger ranks are dropped first; 0 always stays
  };
  std::vector<Part> parts = {{counts(s), 0}};
  if (!s.name.empty()) parts.insert(ui.layout == "train" ? parts.end() : parts.begin(), {s.name, 3});  // other pages show several runs
  if (pauses(s)) parts.push_back({"pauses at " + thousands(static_cast<double>(s.pause_at)), 1});
  if (s.pause_at_event && !has_ended(s.phase)) parts.push_back({"pauses at the next event", 1});
  if (s.total_epochs > 0) parts.push_back({"epoch " + three_figures(s.epoch) + " / " + three_figures(s.total_epochs), 5});
  if (s.steps_per_s > 0) {
    parts.push_back({three_figures(s.steps_per_s) + " it/s", 3});
    parts.push_back(s.tokens_per_s > 0
                        ? Part{three_figures(s.tokens_per_s) + " tokens/s", 6}
                        : Part{three_figures(s.steps_per_s * static_cast<double>(ui.shown().config.train.batch)) + " samples/s", 6});
    if (s.gemm_share > 0) parts.push_back({significant(100 * s.gemm_share, 2) + " % of the GEMM rate", 7});
  }
  const Eta eta = s.phase == Phase::running ? estimate_eta(ui.timeline.clock, s.total_steps - s.step) : Eta{};
  const double left = eta.seconds > 0 ? eta.seconds : s.eta_s;
  if (s.phase == Phase::running && left > 0) {
    parts.push_back({"ETA " + duration(left), 2});
    if (eta.spread >= 1) parts.push_back({"\xC2\xB1 " + duration(eta.spread), 4});
  } else if (s.elapsed_s > 0) {
    parts.push_back({"elapsed " + duration(s.elapsed_s), 2});
  }
  for (int rank = 7;; --rank) {
    std::string text;
    for (const Part& part : parts) {
      const bool spread = part.rank == 4;  // follows the ETA without a separator
      if (part.rank <= rank) text += (text.empty() ? "" : spread ? " " : " \xC2\xB7 ") + part.text;
    }
    if (fits(text)) return text;
    if (rank == 0) break;
  }
  const std::string share = significant(100 * static_cast<double>(s.step) / static_cast<double>(s.total_steps), 3) + " %";
  return fits(share) ? share : "";
}

std::string text_of(const Mark& mark) { return "step " + thousands(static_cast<double>(mark.step)) + ": " + mark.text; }

// The other marks are only in the timeline.
bool is_shown(const Mark& mark) { return mark.kind != Mark::cut && (mark.kind != Mark::segment || mark.step != 0); }

// The last marks, newest first.
std::string newest_marks(const RunView& view, int most) {
  std::string text;
  for (auto mark = view.marks.rbegin(); mark != view.marks.rend() && most > 0; ++mark) {
    if (!is_shown(*mark)) continue;
    text += (text.empty() ? "" : "\n") + text_of(*mark);
    --most;
  }
  return text;
}

// Marks of the run at the lower edge of the bar: rank drops as strokes, others as signs. Returns the texts of the marks under the mouse.
std::string draw_marks(const RunView& view, ImVec2 at, ImVec2 size) {
  const Snapshot& s = *view.snapshot;
  std::string under;
  if (s.total_steps <= 0) return under;
  ImDrawList* list = ImGui::GetWindowDrawList();
  const auto x_of = [&](double step) { return at.x + size.x * static_cast<float>(step / static_cast<double>(s.total_steps)); };
  const float bottom = at.y + size.y, wide = std::max(1.0f, em(0.07f)), r = em(0.22f), y = bottom + em(0.35f);
  const auto& drops = view.rank_drops.x();
  for (auto drop = drops.begin(); drop != drops.end();) {  // one stroke per column of pixels
    const float column = std::floor(x_of(*drop) / wide) * wide;
    list->AddRectFilled({column, bottom}, {column + wide, bottom + em(0.28f)}, theme().series[1]);
    const double next = (static_cast<double>(column + wide - at.x) / static_cast<double>(size.x)) * static_cast<double>(s.total_steps);
    drop = std::upper_bound(drop + 1, drops.end(), next);
  }
  for (const Mark& mark : view.marks) {
    if (!is_shown(mark)) continue;
    const float x = x_of(static_cast<double>(mark.step));
    const ImVec2 low(x - 2 * r, y - 2 * r), high(x + 2 * r, y + 2 * r);
    draw_mark_sign(list, mark.kind, {x, y}, r);
    if (collects_items()) name_area("mark:" + std::to_string(mark.step), low, high);
    if (ImGui::IsWindowHovered() && ImGui::IsMouseHoveringRect(low, high)) under += (under.empty() ? "" : "\n") + text_of(mark);
  }
  if (!pauses(s)) return under;
  const float x = std::round(x_of(static_cast<double>(std::min(s.pause_at, s.total_steps))));
  list->AddLine({x, at.y}, {x, bottom}, theme().warning, std::max(1.0f, em(0.12f)));
  return under;
}

// Tooltip and copy menu of the bar, which must be the last item, and of its marks (`under`).
void tell_progress(const RunView& view, const std::string& text, const std::string& under) {
  const bool looked_at = ImGui::IsItemHovered() || ImGui::IsItemFocused();
  if (!under.empty() && !led_by_keyboard()) {
    ImGui::SetTooltip("%s", under.c_str());
  } else if (looked_at) {
    std::string tip = view.snapshot->phase == Phase::running
                          ? "ETA: at the speed of the last 200 steps, with their evaluations and checkpoints, \xC2\xB1 one standard "
                            "deviation. It does not foresee that falling ranks make steps faster."
                          : "";
    if (led_by_keyboard())  // single marks cannot be focused
      if (const std::string marks = newest_marks(view, 8); !marks.empty()) tip += (tip.empty() ? "" : "\n\n") + marks;
    if (!tip.empty()) tooltip(tip.c_str());
  }
  std::vector<Copied> what;
  if (looked_at && !text.empty()) what.push_back({"Copy value", text});
  if (const std::string marks = !under.empty() ? under : looked_at ? newest_marks(view, 100) : ""; !marks.empty())
    what.push_back({"Copy events", marks});
  ImGui::PushID("progress");
  copy_menu(what, looked_at || !under.empty());
  ImGui::PopID();
}

constexpr float kGap = 0.35f, kChipGap = 0.4f, kApart = 1, kEdge = 0.9f;  // in em

// One frame of the bar: what its parts say is settled first, then which of them have words, then they are drawn from left to right.
class Transport {
 public:
  explicit Transport(UiState& ui) : ui_(ui), view_(ui.shown()), s_(*view_.snapshot), run_(ui.commanded()) {
    settle_first_button();
    settle_chips();
    if (ui.hides_live()) live_words_ = "Live: " + counts(*ui.live->view().snapshot);
  }

  void draw() {
    const float bar = fit_words();
    ImGui::SetCursorPosY((ImGui::GetWindowHeight() - height_) / 2);
    first_button();
    run_buttons();
    new_run_button();
    chips();
    live_button();
    progress(bar);
  }

 private:
  bool paused() const { return s_.phase == Phase::paused; }
  bool settled() const { return run_ && !run_->stopping() && (s_.phase == Phase::running || paused()); }
  bool waits() const { return run_ && (run_->waits<PauseCommand>() || run_->waits<ResumeCommand>()); }

  // Why buttons for a run can do nothing.
  const char* why_not() const {
    if (!ui_.has_run()) return "No run yet: start one first";
    if (run_) return run_->stopping() ? "The run is stopping" : "The run is not ready yet";
    if (view_.live) return "The run has ended";
    return ui_.hides_live() ? "Another run is training: go to it with the Live button" : "This is a stored run: resume it first";
  }

  void settle_first_button() {
    commands_ = run_ || ui_.training();
    const bool resumes = !commands_ && ui_.resumable();
    const int64_t more = commands_ || resumes ? 0 : offered_steps(ui_);
    const std::string steps = counted(more, "step");
    if (commands_) {
      start_ = paused() ? "Resume" : "Pause";
      start_tip_ = paused() ? "Continue training" : "Pause after this step";
    } else if (resumes) {
      start_ = "Resume";
      start_tip_ = "Continues from the last checkpoint";
    } else if (more) {
      start_ = "Extend by " + steps;
      start_tip_ = "This run is finished: train it for " + steps + " more, half of its length. The list of runs extends it by any number";
    } else {
      start_ = ui_.preset == "demo" ? "Run demo" : "Start";
      start_tip_ = "Starts the preset " + ui_.preset;
    }
    start_ += "###start";
    start_width_ = std::max(em(6.8f), button_width(start_.c_str(), {.icon = Icon::play}));
  }

  void settle_chips() {
    // A requested stop or pause waits for the end of the step.
    const bool stops = run_ && run_->stopping(), pauses = run_ && s_.phase == Phase::running && run_->waits<PauseCommand>();
    if (!stops && !pauses)
      ui_.ending_since = 0;
    else if (ui_.ending_since == 0)
      ui_.ending_since = ImGui::GetTime();
    const PhaseLook look = look_of(stops ? Phase::stopping : pauses ? Phase::pausing : s_.phase);
    phase_ = {look.text, look.color, look.icon, look.text, true};
    has_stage_ = !s_.ranks.empty();
    stage_ = stage_chip(s_);
    is_stored_ = !view_.live && ui_.has_run();
    is_past_ = ui_.replaying() && !shows_replay_sign(ui_);
  }

  // Width of all parts but the progress.
  float lay_out() {
    square_ = {height_ * (words_.broad ? 1.25f : 1), height_};
    phase_.words = words_.phase;
    stored_.words = past_.words = words_.stored;
    float width = em(0.8f) + (words_.start ? start_width_ : square_.x) + 4 * (em(kGap) + square_.x) + em(kApart) + width_of(phase_) +
                  em(kApart) + em(kEdge);
    if (words_.new_run_at_all) width += em(kGap) + (words_.new_run ? button_width("New run", {.icon = Icon::plus}) : square_.x);
    if (has_stage_ && words_.stage_at_all) width += em(kChipGap) + width_of(stage_);
    if (is_stored_ && words_.stored_at_all) width += em(kChipGap) + width_of(stored_);
    if (is_past_) width += em(kChipGap) + width_of(past_);
    if (ui_.hides_live()) width += em(kChipGap) + button_width(words_.stored ? live_words_.c_str() : "", {.icon = Icon::forward});
    return width;
  }

  // Gives words up until the progress has the width that it needs; returns its width.
  float fit_words() {
    push_numbers(0.93f);
    const float wish = std::max(em(20), ImGui::CalcTextSize((counts(s_) + "   ETA 59 m 59 s").c_str()).x), least = em(6);
    ImGui::PopFont();
    for (const auto given_up : kGivenUp) {
      const bool for_words =
          given_up == &Words::new_run || given_up == &Words::stored || given_up == &Words::start || given_up == &Words::phase;
      if (ImGui::GetWindowWidth() - lay_out() < (for_words ? wish : least)) words_.*given_up = false;
    }
    return std::max(em(2), ImGui::GetWindowWidth() - lay_out());
  }

  void first_button() {
    const std::string no = commands_ ? "" : no_writing(ui_);
    if (button(words_.start ? start_.c_str() : "###start", {.icon = commands_ && !paused() ? Icon::pause : Icon::play,
                                                            .primary = true,
                                                            .enabled = commands_ ? settled() && !waits() : no.empty(),
                                                            .tooltip = start_tip_.c_str(),
                                                            .keys = ui_.settings.keys.of("run.toggle"),
                                                            .why_not = !no.empty() ? no.c_str()
                                                                       : waits()   ? "Waits for the end of the step"
                                                                                   : why_not(),
                                                            .size = {words_.start ? start_width_ : square_.x, height_}}))
      start_or_pause(ui_);
  }

  void run_buttons() {
    const auto act = [&](const char* label, Icon icon, const char* tip, const char* action, bool can = true) {
      ImGui::SameLine(0, em(kGap));
      return button(label, {.icon = icon,
                            .enabled = settled() && can,
                            .tooltip = tip,
                            .keys = ui_.settings.keys.of(action),
                            .why_not = why_not(),
                            .size = square_});
    };
    if (act("###step", Icon::step, "Train one step, then pause", "run.step")) run_->step(1);
    if (act("###run-to", Icon::to_mark, "Train to a step or the next event, then pause", "run.to")) open_dialog(ui_, Dialog::run_to);
    const bool saves = run_ && run_->waits<CheckpointCommand>();
    if (act("###checkpoint", Icon::save, "Write a checkpoint", "run.checkpoint", !saves)) run_->checkpoint();
    if (act("###stop", Icon::stop, "Stop with a checkpoint", "run.stop")) stop_run(ui_, true);
  }

  void new_run_button() {
    if (!words_.new_run_at_all) return;
    ImGui::SameLine(0, em(kGap));
    if (button(words_.new_run ? "New run###new-run" : "###new-run", {.icon = Icon::plus,
                                                                     .tooltip = "New run: all settings before it starts",
                                                                     .keys = ui_.settings.keys.of("layout.new"),
                                                                     .size = {words_.new_run ? 0 : square_.x, height_}}))
      open_form(ui_);
  }

  static void middle(float of) {
    ImGui::SetCursorPosY(std::round((ImGui::GetWindowHeight() - of) / 2));
    ImGui::GetCurrentWindow()->DC.CurrLineTextBaseOffset = 0;  // undo the offset of the preceding buttons
  }

  void chips() const {
    const auto draw_chip = [](const Chip& one, float before) {
      ImGui::SameLine(0, em(before));
      middle(ImGui::GetTextLineHeight());
      const ImVec2 at = ImGui::GetCursorPos(), size(width_of(one), ImGui::GetTextLineHeight());
      chip(one.words ? one.text : "", one.color, one.icon);
      name_item(std::string("says:") + one.text);
      ImGui::PushID(one.text);
      focus_area("##chip", at, size);
      ImGui::PopID();
      told(one.text, one.tip != one.text || !one.words ? one.tip : "", one.text);
    };
    draw_chip(phase_, kApart);
    if (has_stage_ && words_.stage_at_all) draw_chip(stage_, kChipGap);
    if (is_stored_ && words_.stored_at_all) draw_chip(stored_, kChipGap);
    if (is_past_) draw_chip(past_, kChipGap);
  }

  void live_button() {
    if (!ui_.hides_live()) return;
    const Snapshot& live = *ui_.live->view().snapshot;
    const std::string name = live.name.empty() ? "the run" : live.name, tells = "Back to live: " + name + ", " + counts(live);
    ImGui::SameLine(0, em(kChipGap));
    middle(ImGui::GetFrameHeight());
    if (button(words_.stored ? (live_words_ + "###show-live").c_str() : "###show-live", {.icon = Icon::forward, .tooltip = tells.c_str()}))
      show_live(ui_);
  }

  void progress(float bar) const {
    ImGui::SameLine(0, em(kApart));
    middle(em(1.7f));
    const ImU32 color = s_.phase == Phase::failed || s_.phase == Phase::diverged ? theme().bad
                        : s_.phase == Phase::finished                            ? theme().good
                                                                                 : theme().accent;
    const ImVec2 at = ImGui::GetCursorScreenPos(), cursor = ImGui::GetCursorPos(), size(bar, em(1.7f));
    const double share = s_.total_steps > 0 ? static_cast<double>(s_.step) / static_cast<double>(s_.total_steps) : 0;
    push_numbers(0.93f);
    const std::string text = progress_text(ui_, s_, bar - em(1));
    progress_bar(static_cast<float>(share), size, color, text);
    ImGui::PopFont();
    name_item("says:" + text);
    const std::string under = draw_marks(view_, at, size);
    focus_area("##progress", cursor, size);
    name_item("progress");
    tell_progress(view_, text, under);
  }

  UiState& ui_;
  const RunView& view_;
  const Snapshot& s_;
  LiveRun* const run_;
  const float height_ = ImGui::GetFrameHeight() + em(0.3f);
  bool commands_ = false;  // the first button pauses or resumes a run that trains; else it starts one
  std::string start_, start_tip_, live_words_;
  float start_width_ = 0;
  Chip phase_{}, stage_{};
  Chip stored_{"Stored", theme().dim, Icon::clock, "A stored run, not the live run.", true};
  Chip past_{"Replay", theme().warning, Icon::rewind,
             "The training page shows an earlier step of this run; the timeline returns to the newest one.", true};
  bool has_stage_ = false, is_stored_ = false, is_past_ = false;
  Words words_;
  ImVec2 square_;  // size of a button with an icon
};

}  // namespace

void draw_transport(UiState& ui) { Transport(ui).draw(); }

}  // namespace comera::studio
