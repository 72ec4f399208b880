// Recorded step times, phases and ops of profiled steps, and frame times of the window.
#include <algorithm>
#include <cmath>

#include "app/format.h"
#include "app/studio/panels.h"
#include "app/studio/parts/cards.h"
#include "app/studio/parts/icons.h"
#include "app/studio/parts/inputs.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/texts.h"
#include "app/studio/runs/run_actions.h"

namespace comera::studio {

void ProfileView::add_frame(double ms, double at) {
  constexpr size_t kFrames = 240;
  if (frame_ms.size() >= kFrames) frame_ms.erase(frame_ms.begin());
  if (frame_at.size() >= kFrames) frame_at.erase(frame_at.begin());
  frame_ms.push_back(ms);
  frame_at.push_back(at);
}

double ProfileView::frame_share() const {
  if (frame_at.size() < 2 || frame_at.back() <= frame_at.front()) return 0;
  double ms = 0;  // excludes the oldest frame, which was made before the interval begins
  for (size_t i = 1; i < frame_ms.size(); ++i) ms += frame_ms[i];
  return ms / 1000 / (frame_at.back() - frame_at.front());
}

namespace {

struct PartLook {
  const char* name;
  const char* title;
  size_t color;  // index into the theme's series colours
  const char* help;
};

constexpr PartLook kPhases[] = {
    {"data", "Waiting for data", 3, "The next batch was not ready yet."},
    {"forward", "Forward", 0, "Batch to the device, the model, the loss."},
    {"backward", "Backward", 1, "Gradients of all parameters."},
    {"others", "Other processes", 5, "Waiting for other processes, and summing their gradients."},
    {"refresh", "Projection refresh", 4, "New projections of gradients."},
    {"update", "Update", 2, "The optimizer's step."},
    {"ranks", "Ranks and other", 7, "Live ranks, caps, pruning."},
};

const PartLook* part_look(const std::string& name) {
  for (const PartLook& look : kPhases)
    if (name == look.name) return &look;
  return nullptr;
}

std::string ms_text(double ms) {
  char text[32];
  std::snprintf(text, sizeof text, ms >= 100 ? "%.0f ms" : ms >= 10 ? "%.1f ms" : ms >= 1 ? "%.2f ms" : "%.3f ms", ms);
  return text;
}

std::string share_text(double part, double whole) {
  char text[32] = "-";
  if (whole > 0) std::snprintf(text, sizeof text, "%.1f %%", part / whole * 100);
  return text;
}

const StepTimeSummary& times_of(UiState& ui) {
  ProfileView& p = ui.profile;
  const Curve& curve = ui.shown().metric("step_ms");
  const double until = ui.replaying() ? static_cast<double>(ui.snapshot().step) : INFINITY;
  const auto points = static_cast<size_t>(std::upper_bound(curve.x().begin(), curve.x().end(), until) - curve.x().begin());
  // Of a run that trains, recomputed only after a growth of 2 %: smaller changes are not visible.
  const bool grew = points < p.points || points - p.points > (ui.replaying() || ui.shown().ended() ? 0 : p.points / 50);
  if (p.curve == &curve && p.rewrites == curve.rewrites() && !grew) return p.times;
  p.curve = &curve;
  p.points = points;
  p.rewrites = curve.rewrites();
  p.times = step_times(curve, until);
  return p.times;
}

// The newest profile up to the shown step; null = none.
const StepProfile* profile_of(const UiState& ui) {
  const StepProfile* found = nullptr;
  for (const StepProfile& profile : ui.shown().profiles)
    if (profile.steps > 0 && (!ui.replaying() || profile.step <= ui.snapshot().step)) found = &profile;
  return found;
}

constexpr const char* kStepTimes = "Steps by their time";

Figure histogram(const StepTimeSummary& times, const std::string& note) {
  Figure figure{.title = kStepTimes, .note = note, .x_title = "ms"};
  const double width = (times.high - times.low) / static_cast<double>(std::max<size_t>(1, times.bins.size()));
  for (size_t i = 0; i < times.bins.size(); ++i)
    figure.bars.push_back({"", times.low + width * static_cast<double>(i), times.low + width * static_cast<double>(i + 1),
                           static_cast<double>(times.bins[i]), theme().series[6]});
  return figure;
}

void number_cell(const std::string& text, ImU32 color) {
  ImGui::TableNextColumn();
  ImGui::PushFont(fonts().numbers, 0);
  text_right(text, ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x, color);
  ImGui::PopFont();
  ImGui::PushID(ImGui::TableGetRowIndex() * 8 + ImGui::TableGetColumnIndex());
  copy_menu({{"Copy value", text}});
  ImGui::PopID();
}

void header_row(std::initializer_list<const char*> names) {
  ImGui::TableNextRow();
  bool first = true;
  for (const char* name : names) {
    ImGui::TableNextColumn();
    if (first)
      text_dim(name);
    else
      text_right(name, ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x, theme().dim);
    first = false;
  }
}

void step_section(UiState& ui, float height) {
  const StepTimeSummary& times = times_of(ui);
  card_title("Step time", "Milliseconds of all recorded steps up to the shown one, without evaluation and checkpoints.");
  if (times.count == 0) {
    push_small();
    text_dim(ui.shown().live ? "The first time appears after the first step." : "Not recorded for this run.");
    ImGui::PopFont();
    return;
  }
  push_small();
  stat("median", ms_text(times.median));
  ImGui::SameLine(0, em(1.6f));
  stat("p95", ms_text(times.p95));
  ImGui::SameLine(0, em(1.6f));
  stat("steps", thousands(static_cast<double>(times.count)));
  if (times.beyond > 0) {
    ImGui::PushTextWrapPos(0);
    text_dim("Not shown: the slowest " + thousands(static_cast<double>(times.beyond)) + ", up to " + ms_text(times.slowest) + ".");
    ImGui::PopTextWrapPos();
  }
  // The bars fill the remaining height.
  const ImVec2 space(ImGui::GetContentRegionAvail().x, std::max(em(5), height));
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const size_t most = *std::max_element(times.bins.begin(), times.bins.end());
  const float axis = ImGui::GetTextLineHeight(), step = space.x / static_cast<float>(times.bins.size()), full = space.y - axis - em(0.2f);
  ImDrawList* list = ImGui::GetWindowDrawList();
  for (size_t i = 0; i < times.bins.size(); ++i) {
    const float x = at.x + step * static_cast<float>(i),
                tall = full * static_cast<float>(times.bins[i]) / static_cast<float>(std::max<size_t>(1, most));
    list->AddRectFilled({x, at.y + full - std::max(times.bins[i] > 0 ? 1.0f : 0.0f, tall)}, {x + std::max(1.0f, step - 1), at.y + full},
                        theme().series[6]);
  }
  const auto place = [&](double ms) {
    return at.x + space.x * static_cast<float>(std::clamp((ms - times.low) / (times.high - times.low), 0.0, 1.0));
  };
  list->AddLine({at.x, at.y + full}, {at.x + space.x, at.y + full}, theme().dim);
  for (const double ms : {times.median, times.p95})
    for (const auto& [from, to] : dashes({{place(ms), at.y}, {place(ms), at.y + full}}, em(0.3f), em(0.25f)))
      list->AddLine({from.x, from.y}, {to.x, to.y}, ms == times.median ? theme().text : theme().warning, std::max(1.0f, em(0.08f)));
  const std::string low = ms_text(times.low), high = ms_text(times.high);
  list->AddText({at.x, at.y + full + em(0.1f)}, theme().dim, low.c_str());
  list->AddText({at.x + space.x - ImGui::CalcTextSize(high.c_str()).x, at.y + full + em(0.1f)}, theme().dim, high.c_str());
  ImGui::Dummy(space);
  std::string copied;  // text about the bar under the mouse
  const bool over = ImGui::IsItemHovered();
  if (over) {
    const auto bin = std::min(times.bins.size() - 1, static_cast<size_t>(std::max(0.0f, (ImGui::GetMousePos().x - at.x) / step)));
    const double width = (times.high - times.low) / static_cast<double>(times.bins.size()),
                 from = times.low + width * static_cast<double>(bin);
    copied = counted(static_cast<int64_t>(times.bins[bin]), "step") + " of " + significant(from, 4) + " to " + ms_text(from + width);
    ImGui::SetTooltip("%s", copied.c_str());
  }
  ImGui::PushID("step-times");
  copy_menu({{"Copy value", copied}}, over);
  ImGui::PopID();
  ImGui::PopFont();
}

void ask_button(UiState& ui) {
  LiveRun* run = ui.editable();
  const bool waits = run && run->waits<ProfileCommand>();
  const std::string label = waits ? "Waiting ...###profile" : "Profile " + std::to_string(ui.profile.steps) + " steps###profile";
  if (button(label.c_str(), {.icon = Icon::clock,
                             .primary = true,
                             .enabled = run && !waits,
                             .tooltip = "Times the phases and ops of the next steps. There is no cost before and after. The first profile "
                                        "of a session also measures the peak rates of the device, for about a second.",
                             .why_not = run ? "Waits for the next step" : "Only while this window trains the run"})) {
    run->profile(ui.profile.steps);
    ui.profile.asked = &ui.shown();
    ui.profile.asked_after = ui.snapshot().step;
    ui.profile.asked_steps = ui.profile.steps;
  }
  ImGui::SameLine();
  ImGui::SetNextItemWidth(em(6));
  ImGui::BeginDisabled(!run);
  ImGui::SliderInt("##profile-steps", &ui.profile.steps, 5, 200, "%d", ImGuiSliderFlags_Logarithmic | ImGuiSliderFlags_AlwaysClamp);
  ImGui::EndDisabled();
  tooltip("Number of steps");
}

// How long each process computes its parts of a batch, and then waits for the slowest and for the sum of gradients.
void process_table(const StepProfile& profile) {
  double shared = 0;  // from the first part to the sum, the same for all
  for (const StepProfile::Phase& phase : profile.phases)
    if (phase.name == "others") shared = profile.processes_ms[0] + phase.mean;
  if (!ImGui::BeginTable("processes", 4, ImGuiTableFlags_SizingStretchProp)) return;
  ImGui::TableSetupColumn("Process", ImGuiTableColumnFlags_WidthStretch, 2);
  for (const char* name : {"Busy", "Waits", "Share"}) ImGui::TableSetupColumn(name, ImGuiTableColumnFlags_WidthStretch, 1);
  header_row({"Process", "Busy", "Waits", "Share"});
  for (size_t process = 0; process < profile.processes_ms.size(); ++process) {
    const double waits = std::max(0.0, shared - profile.processes_ms[process]);
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    text_fit("Process " + std::to_string(process), ImGui::GetContentRegionAvail().x, theme().text);
    number_cell(ms_text(profile.processes_ms[process]), theme().text);
    number_cell(ms_text(waits), theme().dim);
    number_cell(share_text(waits, profile.whole.mean), theme().text);
  }
  ImGui::EndTable();
}

void phase_section(UiState& ui, const StepProfile* profile) {
  card_title("One step by phase", "Means over the profiled steps; they add up to the step.");
  push_small();
  ask_button(ui);
  const ProfileView& p = ui.profile;
  if (p.asked == &ui.shown() && ui.editable() && (!profile || profile->step <= p.asked_after))
    text_dim(ui.snapshot().phase == Phase::paused ? "Profiles the next " + std::to_string(p.asked_steps) + " steps when the run continues."
                                                  : "Profiling " + std::to_string(p.asked_steps) + " steps ...");
  if (!profile) {
    ImGui::PushTextWrapPos(0);
    text_dim(ui.editable() ? "No profile yet." : "Not recorded for this run: no steps were profiled.");
    ImGui::PopTextWrapPos();
    ImGui::PopFont();
    return;
  }
  text_dim(counted(profile->steps, "step") + " up to step " + thousands(static_cast<double>(profile->step)) + ", " +
           ms_text(profile->whole.mean) + " each");
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x, height = em(0.9f);
  float x = at.x;
  for (const StepProfile::Phase& phase : profile->phases) {
    const PartLook* look = part_look(phase.name);
    const float part = profile->whole.mean > 0 ? width * static_cast<float>(phase.mean / profile->whole.mean) : 0;
    ImGui::GetWindowDrawList()->AddRectFilled({x, at.y}, {x + std::max(0.0f, part - (part > 3 ? 1.0f : 0.0f)), at.y + height},
                                              look ? theme().series[look->color] : theme().dim, em(0.12f));
    x += part;
  }
  ImGui::Dummy({width, height});
  if (ImGui::BeginTable("phases", 4, ImGuiTableFlags_SizingStretchProp)) {
    ImGui::TableSetupColumn("Phase", ImGuiTableColumnFlags_WidthStretch, 2);
    for (const char* name : {"Median", "p95", "Share"}) ImGui::TableSetupColumn(name, ImGuiTableColumnFlags_WidthStretch, 1);
    header_row({"Phase", "Median", "p95", "Share"});
    for (const StepProfile::Phase& phase : profile->phases) {
      const PartLook* look = part_look(phase.name);
      ImGui::TableNextRow();
      ImGui::TableNextColumn();
      const ImVec2 where = ImGui::GetCursorScreenPos();
      const float line = ImGui::GetTextLineHeight();
      ImGui::GetWindowDrawList()->AddRectFilled({where.x, where.y + line * 0.2f}, {where.x + line * 0.6f, where.y + line * 0.8f},
                                                look ? theme().series[look->color] : theme().dim, line * 0.12f);
      ImGui::SetCursorPosX(ImGui::GetCursorPosX() + line);
      text_fit(look ? look->title : phase.name, ImGui::GetContentRegionAvail().x, theme().text);
      if (look) tooltip(look->help);
      number_cell(ms_text(phase.median), theme().text);
      number_cell(ms_text(phase.p95), theme().dim);
      number_cell(share_text(phase.mean, profile->whole.mean), theme().text);
    }
    ImGui::EndTable();
  }
  if (!profile->processes_ms.empty()) process_table(*profile);
  ImGui::PopFont();
}

// A column of the table of ops. `room`: columns of larger values are left out first; 0 is always shown.
struct OpColumn {
  const char* title;
  const char* unit;  // column name in the exported table
  const char* help;
  float room;
  std::string (*text)(const OpTime& op, const StepProfile& of);
  double (*value)(const OpTime& op, const StepProfile& of);  // 0 = none
};

double share_of_step(const OpTime& op, const StepProfile& of) { return of.whole.mean > 0 ? op.ms / of.whole.mean : 0; }
std::string or_none(double value, int digits = 3) { return value > 0 ? significant(value, digits) : "-"; }

constexpr OpColumn kOpColumns[] = {
    {"Calls", "calls", "Calls per step.", 30, [](const OpTime& op, const StepProfile&) { return significant(op.calls, 4); },
     [](const OpTime& op, const StepProfile&) { return op.calls; }},
    {"ms", "ms", "Milliseconds per step.", 0, [](const OpTime& op, const StepProfile&) { return significant(op.ms, 3); },
     [](const OpTime& op, const StepProfile&) { return op.ms; }},
    {"Share", "share", "Share of the step.", 0, [](const OpTime& op, const StepProfile& of) { return share_text(op.ms, of.whole.mean); },
     share_of_step},
    {"GB", "gbyte", "Bytes moved per step by non-GEMM ops.", 26, [](const OpTime& op, const StepProfile&) { return or_none(op.gbyte); },
     [](const OpTime& op, const StepProfile&) { return op.gbyte; }},
    {"GB/s", "gbyte_per_s", "Bandwidth of non-GEMM ops.", 19, [](const OpTime& op, const StepProfile&) { return or_none(gbs_of(op)); },
     [](const OpTime& op, const StepProfile&) { return gbs_of(op); }},
    {"GFLOP/s", "gflop_per_s", "Rate of matrix products.", 23, [](const OpTime& op, const StepProfile&) { return or_none(gflops_of(op)); },
     [](const OpTime& op, const StepProfile&) { return gflops_of(op); }},
    {"% of peak", "share_of_rate", "Percentage of the measured peak rate of this device: of GEMM for ops with products, else of copies.",
     16,
     [](const OpTime& op, const StepProfile& of) {
       const double share = share_of_rate(op, of.rates);
       return share > 0 ? share_text(share, 1) : std::string("-");
     },
     [](const OpTime& op, const StepProfile& of) { return share_of_rate(op, of.rates); }},
};

void op_section(const StepProfile* profile) {
  card_title("One step by op",
             "Ops run one after another: an op lasts until the next one begins. The first profile of a session measures the peak rates: a "
             "product of 2048 x 2048 matrices, a copy of 64 MiB.");
  push_small();
  if (!profile || profile->ops.empty()) {
    text_dim(profile ? "Not recorded for these steps." : "Appears with the phases.");
    ImGui::PopFont();
    return;
  }
  const DeviceRates& rates = profile->rates;
  const std::string best = rates.sgemm_gflops > 0 ? "Peak: GEMM " + significant(rates.sgemm_gflops, 3) + " GFLOP/s, copies " +
                                                        significant(rates.copy_gbs, 3) + " GB/s"
                                                  : "Peak rates were not recorded for these steps.";
  text_fit(best, ImGui::GetContentRegionAvail().x, theme().dim);
  name_item("says:" + best);
  ImGui::PushID("best");
  copy_menu({{"Copy values", best}});
  ImGui::PopID();
  std::vector<const OpColumn*> columns;
  const float room = ImGui::GetContentRegionAvail().x;
  ImGui::PushFont(fonts().numbers, 0);
  const float number = ImGui::CalcTextSize("000.0 %").x;
  ImGui::PopFont();
  const auto width_of = [number](const OpColumn& column) { return std::max(number, ImGui::CalcTextSize(column.title).x); };
  const auto fits = [&](const OpColumn& column) {  // next to all that matter more
    float taken = em(6);
    for (const OpColumn& other : kOpColumns)
      if (other.room <= column.room) taken += width_of(other) + 2 * ImGui::GetStyle().CellPadding.x;
    return column.room == 0 || taken <= room;
  };
  for (const OpColumn& column : kOpColumns)
    if (fits(column)) columns.push_back(&column);
  if (ImGui::BeginTable("ops", static_cast<int>(columns.size()) + 1, ImGuiTableFlags_SizingStretchProp)) {
    ImGui::TableSetupColumn("Op", ImGuiTableColumnFlags_WidthStretch);
    for (const OpColumn* column : columns) ImGui::TableSetupColumn(column->title, ImGuiTableColumnFlags_WidthFixed, width_of(*column));
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    text_dim("Op");
    for (const OpColumn* column : columns) {
      ImGui::TableNextColumn();
      text_right(column->title, ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x, theme().dim);
      tooltip(column->help);
    }
    const double most = std::max(1e-9, profile->ops.front().ms);
    for (const OpTime& op : profile->ops) {
      ImGui::TableNextRow();
      ImGui::TableNextColumn();
      const ImVec2 at = ImGui::GetCursorScreenPos();
      const float width = ImGui::GetContentRegionAvail().x * static_cast<float>(op.ms / most);
      ImGui::GetWindowDrawList()->AddRectFilled(at, {at.x + width, at.y + ImGui::GetTextLineHeight()}, with_alpha(theme().series[0], 0.25f),
                                                em(0.15f));
      text_fit(op.op, ImGui::GetContentRegionAvail().x, theme().text);
      for (const OpColumn* column : columns) number_cell(column->text(op, *profile), column->room > 0 ? theme().dim : theme().text);
    }
    ImGui::EndTable();
  }
  ImGui::PopFont();
}

void window_section(const UiState& ui) {
  const int most = ui.settings.training_fps;
  card_title("This window", ("Milliseconds per frame, over the newest frames. While a run trains without input, the window draws at most " +
                             std::to_string(most) + (most == 1 ? " frame" : " frames") + " a second (Settings).")
                                .c_str());
  push_small();
  const std::vector<double>& frames = ui.profile.frame_ms;
  if (frames.empty())
    text_dim("Not measured here.");
  else
    text_dim("median " + ms_text(quantile_of(frames, 0.5)) + ", p95 " + ms_text(quantile_of(frames, 0.95)) + " (" +
             std::to_string(frames.size()) + " frames)");
  if (const double share = ui.profile.frame_share(); share > 0) text_dim(share_text(share, 1) + " of a core");
  ImGui::PopFont();
}

// Share of a step spent waiting for data: from the newest profile, else from the metric sampled about once a second.
std::string waiting_text(const UiState& ui, const StepProfile* profile) {
  if (profile && profile->whole.mean > 0)
    for (const StepProfile::Phase& phase : profile->phases)
      if (phase.name == "data") return "waiting for data: " + share_text(phase.mean, profile->whole.mean) + " of a step";
  const double at = static_cast<double>(ui.snapshot().step), data = ui.shown().metric("data_ms").at(at),
               step = ui.shown().metric("step_ms").at(at);
  if (std::isfinite(data) && step > 0) return "waiting for data: " + share_text(std::min(data, step), step) + " of a step";
  return "waiting for data: not recorded";
}

// Exports the profile from the store as a file for Perfetto or chrome://tracing.
void trace_button(UiState& ui) {
  const RunView& view = ui.shown();
  const bool stored = ui.store && !view.store.empty() && !view.snapshot->run.empty() && ui.store->path() == view.store;
  if (button("Trace###trace",
             {.icon = Icon::save,
              .enabled = stored && view.snapshot->step > 0,
              .tooltip = "Writes the stored steps, phases and events as a Chrome trace (JSON) for Perfetto or chrome://tracing",
              .why_not = stored ? "No steps yet" : "This run is not in the open database"}))
    export_runs(ui, {view.snapshot->run}, RunChange::export_trace);
}

}  // namespace

void draw_profile(UiState& ui) {
  if (begin_card("profile-card")) {
    if (!ui.has_run()) {
      empty_state(Icon::clock, "No run yet", "Times of steps, phases and ops appear here while a run trains.");
      end_card();
      return;
    }
    const StepProfile* profile = profile_of(ui);
    push_small();
    ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(em(0.5f), em(0.1f)));
    const float trace = button_width("Trace", {.icon = Icon::save});
    const float right = ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x - export_button_width() - trace - em(0.8f);
    const std::string waiting = waiting_text(ui, profile);
    text_fit(waiting, std::max(1.0f, right - ImGui::GetCursorPosX() - em(0.6f)), theme().dim);
    name_item("says:" + waiting);
    copy_menu({{"Copy value", waiting}});
    ImGui::SameLine();
    ImGui::SetCursorPosX(std::max(ImGui::GetCursorPosX(), right));
    trace_button(ui);
    ImGui::PopStyleVar();
    ImGui::SameLine(0, em(0.4f));
    export_button(ui, "profile");
    ImGui::PopFont();
    const ImVec2 space = ImGui::GetContentRegionAvail();
    const float gap = em(1.2f);
    if (space.x > em(62)) {
      const float width = std::floor((space.x - 2 * gap) * 0.315f);  // the table of ops needs more width
      ImGui::BeginChild("profile-left", {width, space.y});
      step_section(ui, space.y - em(11));
      ImGui::Dummy({0, em(0.3f)});
      window_section(ui);
      ImGui::EndChild();
      ImGui::SameLine(0, gap);
      ImGui::BeginChild("profile-middle", {width, space.y});
      phase_section(ui, profile);
      ImGui::EndChild();
      ImGui::SameLine(0, gap);
      ImGui::BeginChild("profile-right", {0, space.y});
      op_section(profile);
      ImGui::EndChild();
    } else {
      ImGui::BeginChild("profile-all", space);
      step_section(ui, em(7));
      ImGui::Dummy({0, em(0.4f)});
      phase_section(ui, profile);
      ImGui::Dummy({0, em(0.4f)});
      op_section(profile);
      ImGui::Dummy({0, em(0.4f)});
      window_section(ui);
      ImGui::EndChild();
    }
  }
  end_card();
}

namespace {

Chart step_times_chart(const UiState& ui) {
  const Snapshot& s = ui.snapshot();
  const StepTimeSummary times = step_times(ui.shown().metric("step_ms"), ui.replaying() ? static_cast<double>(s.step) : INFINITY);
  return chart_of("step-times", histogram(times, s.name + ", " + counted(static_cast<int64_t>(times.count), "step") + ", median " +
                                                     ms_text(times.median) + ", p95 " + ms_text(times.p95)));
}

Chart phases_chart(const StepProfile& profile, const std::string& title, const std::string& note) {
  Figure phases{.title = title, .note = note, .unit = "ms", .x_title = "phase"};
  for (const StepProfile::Phase& phase : profile.phases) {
    const PartLook* look = part_look(phase.name);
    phases.bars.push_back({look ? look->title : phase.name, 0, 0, phase.mean, look ? theme().series[look->color] : theme().dim});
  }
  return chart_of("phases", std::move(phases));
}

// The drawing has the longest ops; the CSV has all ops with calls and work.
Chart ops_chart(const StepProfile& profile, const std::string& title, const std::string& note) {
  Figure ops{.title = title, .note = note, .unit = "ms", .x_title = "op"};
  constexpr size_t kMost = 12;  // ops that fit side by side
  double rest = 0;
  for (size_t i = 0; i < profile.ops.size(); ++i)
    if (i < kMost || profile.ops.size() == kMost + 1)
      ops.bars.push_back({profile.ops[i].op, 0, 0, profile.ops[i].ms, theme().series[0]});
    else
      rest += profile.ops[i].ms;
  if (rest > 0) ops.bars.push_back({"others", 0, 0, rest, theme().dim});
  Chart chart = chart_of("ops", std::move(ops));
  chart.csv = [profile] {
    std::vector<std::vector<std::string>> rows{{"op"}};
    for (const OpColumn& column : kOpColumns) rows[0].push_back(column.unit);
    rows[0].push_back("gflop");
    for (const OpTime& op : profile.ops) {
      rows.push_back({op.op});
      for (const OpColumn& column : kOpColumns) {
        const double value = column.value(op, profile);
        rows.back().push_back(value > 0 ? csv_number(value) : "");
      }
      rows.back().push_back(csv_number(op.gflop));
    }
    return csv_text(rows);
  };
  return chart;
}

// Some step up to the shown one has a time, so step_times() is not empty.
bool knows_step_times(const UiState& ui) {
  const Curve& curve = ui.shown().metric("step_ms");
  double low = 0, high = 0;
  return curve.extremes(-INFINITY, ui.replaying() ? static_cast<double>(ui.snapshot().step) : INFINITY, low, high);
}

}  // namespace

std::vector<ListedChart> profile_charts(UiState& ui) {
  std::vector<ListedChart> out;
  if (knows_step_times(ui)) out.push_back({"step-times", kStepTimes, [&ui] { return step_times_chart(ui); }});
  const StepProfile* profile = profile_of(ui);
  if (!profile) return out;
  const std::string note =
      ui.snapshot().name + ", mean of " + counted(profile->steps, "step") + " up to step " + thousands(static_cast<double>(profile->step));
  const std::string phases = "One step by phase", ops = "One step by op";
  out.push_back({"phases", phases, [profile, phases, note] { return phases_chart(*profile, phases, note); }});
  if (!profile->ops.empty()) out.push_back({"ops", ops, [profile, ops, note] { return ops_chart(*profile, ops, note); }});
  return out;
}

}  // namespace comera::studio
