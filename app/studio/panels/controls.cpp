// Live settings of the run.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>

#include "app/figure/tt_layout.h"
#include "app/format.h"
#include "app/studio/actions.h"
#include "app/studio/form/live_controls.h"
#include "app/studio/newcomer.h"
#include "app/studio/panels.h"
#include "app/studio/parts/cards.h"
#include "app/studio/parts/icons.h"
#include "app/studio/parts/inputs.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/texts.h"
#include "app/studio/shown_run/timeline.h"

namespace comera::studio {
namespace {

// Live settings by card, in order. Those that are in no list come last, in a card of their own; unused ones are left out.
constexpr const char* kSize[] = {"method.comera.late_canonical", "method.comera.hold_at_target"};
constexpr const char* kRanks[] = {"method.comera.loss_target",  "method.comera.rank_weight", "method.comera.threshold",
                                  "method.comera.late_halving", "method.comera.late_weight", "method.comera.late_loss_weight",
                                  "method.comera.gamma",        "method.comera.beta",        "method.comera.w1",
                                  "method.comera.w2",           "method.comera.floor_rank"};
constexpr const char* kRates[] = {"train.lr_core", "train.lr_rank", "train.lr_rank_late", "train.lr", "method.adam.weight_decay"};
constexpr const char* kIntervals[] = {"train.eval_every", "train.checkpoint_every", "train.checkpoint_minutes", "train.keep_checkpoints",
                                      "train.max_steps_per_s"};
constexpr const char* kBegin[] = {"method.comera.late_after", "method.comera.late_on_plateau"};
constexpr const char* kPruning[] = {"method.comera.prune_every", "method.comera.prune_dead_share"};
// Drawn by run_end() and size_target().
constexpr const char* kOwn[] = {"train.steps", "train.epochs", "method.comera.target", "method.comera.target_mib",
                                "method.comera.target_compression"};

using Paths = std::span<const char* const>;
constexpr Paths kListed[] = {kSize, kRanks, kRates, kIntervals, kBegin, kPruning, kOwn};

class LiveSettings {
 public:
  explicit LiveSettings(UiState& ui) : ui_(ui), values_(field_values(ui.config())) {}
  bool used(const std::string& path) const { return ui_.shown().uses(path); }
  void draw(Paths paths) {
    for (const char* path : paths)
      if (used(path)) live_setting(ui_, values_, path);
  }
  // Live settings in no list above: those of the method, and others.
  struct Unlisted {
    std::vector<const char*> of_method, others;
  };
  Unlisted unlisted() const {
    Unlisted found;
    for (const FieldEntry& setting : all_settings()) {
      const auto lists = [&](Paths paths) { return std::find(paths.begin(), paths.end(), setting.path) != paths.end(); };
      if (setting.info.is_live() && used(setting.path) && std::none_of(std::begin(kListed), std::end(kListed), lists))
        (setting.path.starts_with("method.") && !setting.path.starts_with("method.comera.") ? found.of_method : found.others)
            .push_back(setting.path.c_str());
    }
    return found;
  }

 private:
  UiState& ui_;
  FieldValues values_;
};

// The mode of the rank penalty is fixed at the start of a run, so it is shown as text.
void mode_line(const UiState& ui) {
  const std::string& mode = ui.config().method.comera.mode;
  const FieldEntry* setting = find_setting("method.comera.mode");
  std::string about;
  for (const Choice& choice : setting->info.choices)
    if (mode == choice.id) about = choice.about;
  push_small();
  text_dim(setting->info.title);
  ImGui::SameLine();
  chip(mode.c_str(), theme().accent, Icon::dot);
  name_item("says:" + mode);
  ImGui::PushTextWrapPos(0);
  text_dim(about + " Fixed when a run starts.");
  ImGui::PopTextWrapPos();
  ImGui::PopFont();
  ImGui::Dummy({0, em(0.1f)});
}

// End of the run, in epochs or steps; typing steps switches to steps.
void run_end(UiState& ui) {
  const Snapshot& s = *ui.shown().snapshot;
  const TrainConfig& train = ui.config().train;
  const double done = static_cast<double>(std::max<int64_t>(1, s.step)),
               planned = static_cast<double>(std::max(s.total_steps, train.steps));
  live_slider(ui,
              {"Train to step", "Last step of the run; a later one extends the run. 0: from the epochs.", done,
               std::max(1000.0, 4 * planned), true, "%.0f", true},
              static_cast<double>(train.steps > 0 ? train.steps : s.total_steps), "train.steps");
  if (train.steps == 0)
    live_slider(ui, {"Epochs", "Passes over the data.", 0, std::max(20.0, 4 * train.epochs), false, "%.2f"}, train.epochs, "train.epochs");
}

// The size target in one of three units; lines below show the others.
void size_target(UiState& ui, const RunView& view) {
  const Snapshot& s = ui.snapshot();
  const ComeraConfig& comera = ui.config().method.comera;
  const double base = view.target_base_entries(s);
  const double bytes = s.size.bytes_an_entry();
  const double dense = s.size.entries * s.size.compression;  // entries of the dense matrices
  const auto mib_of = [&](double entries) { return entries * bytes / (1 << 20); };
  double entries = comera.target * base;
  if (comera.target_compression > 0 && dense > 0) entries = dense / comera.target_compression;
  if (comera.target_mib > 0) entries = comera.target_mib * (1 << 20) / bytes;
  static constexpr const char* kUnits[] = {"share", "MiB", "x smaller"};
  push_small();
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(em(0.5f), em(0.15f)));
  float width = em(0.3f);
  for (const char* unit : kUnits) width += ImGui::CalcTextSize(unit).x + em(1);
  ImGui::SameLine();
  ImGui::SetCursorPosX(std::max(ImGui::GetCursorPosX(), ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x - width));
  segmented("unit", kUnits, 3, ui.target_unit);
  ImGui::PopStyleVar();
  ImGui::PopFont();
  const char* help =
      "Size of the tensor trains at the end of the late stage: share of their size at its start, MiB, or how many times smaller than dense "
      "matrices. It can be changed at any time; ranks fall and grow again with it.";
  // Upper end of the slider: the size at the start of the late stage; with growth, twice that or twice the size at the initial ranks.
  double first = 0;
  for (const LayerRanks& layer : s.ranks)
    if (has_shape(layer)) first += static_cast<double>(layer_entries(layer, layer.initial));
  const double most = ui.target_beyond && base > 0 ? std::clamp(2 * std::max(base, first) / base, 2.0, 10.0) : 1;
  if (ui.target_unit == 0) {
    live_slider(ui, {"Size target", help, 0.05, most, false, "%.3f"}, base > 0 ? entries / base : comera.target, "method.comera.target");
  } else if (ui.target_unit == 1) {
    const LiveSlider look{"Size target", help, std::max(1e-4, mib_of(base) * 0.02), std::max(1e-3, most * mib_of(base)), true, "%.3f MiB"};
    live_slider(ui, look, mib_of(entries), "method.comera.target_mib");
  } else {
    const double least = base > 0 ? std::max(1.0, dense / base / most) : 1;
    live_slider(ui, {"Size target", help, least, least * 50, true, "%.1f x"}, entries > 0 ? dense / entries : least,
                "method.comera.target_compression");
  }
  draw_size_target_hint(ui);
  // The target at the slider, also while it moves.
  for (const auto& [path, drag] : ui.drags) {
    if (path == "method.comera.target") entries = drag.value * base;
    if (path == "method.comera.target_mib") entries = drag.value * (1 << 20) / bytes;
    if (path == "method.comera.target_compression" && drag.value > 0) entries = dense / drag.value;
  }
  push_small();
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(em(0.2f), em(0.05f)));
  ImGui::Checkbox("Above the start size", &ui.target_beyond);
  name_item("target-beyond");
  ImGui::PopStyleVar();
  ImGui::SameLine(0, em(0.35f));
  help_marker(
      "Extends the slider above the size at the start of the late stage. A target above the size at the initial ranks lets bonds grow up "
      "to the largest rank that their modes allow; memory and step time grow too.");
  if (s.size.entries > 0) {
    char line[128];
    const float column = ImGui::GetCursorPosX() + em(4);
    const auto size = [&](const char* name, double of) {
      text_dim(name);
      ImGui::SameLine(column);
      std::snprintf(line, sizeof line, "%.3f MiB   %sx smaller", mib_of(of), significant(of > 0 ? dense / of : 0.0, 3).c_str());
      text_dim(line);
    };
    size("target", entries);
    size("now", s.size.entries);
    // Progress from the size at the start of the stage to the target.
    const double way = base - entries;
    const float share = way > 0 ? static_cast<float>((base - s.size.entries) / way) : 1;
    progress_bar(s.late ? share : 0, {ImGui::GetContentRegionAvail().x, em(0.4f)}, share >= 1 ? theme().good : theme().accent, "");
  } else {
    ImGui::PushTextWrapPos(0);
    text_dim("MiB and compression appear when the model is ready.");
    ImGui::PopTextWrapPos();
  }
  ImGui::PopFont();
}

void stage(UiState& ui) {
  const Snapshot& s = ui.snapshot();
  const ComeraConfig& comera = ui.config().method.comera;
  LiveRun* run = ui.editable();
  const bool waits = run && run->switches_stage();
  const bool can = run && s.step > 0 && !waits;
  const std::string label = (waits           ? "Switching ..."
                             : s.late && run ? "Back to early stage"
                             : s.late        ? "Late stage"
                                             : "Switch to late stage now") +
                            std::string("###late");
  if (button(label.c_str(),
             {.icon = !s.late ? Icon::step
                      : run   ? Icon::step_back
                              : Icon::check,
              .enabled = can,
              .tooltip =
                  s.late ? "From the next step on, training minimises the loss and a gentle rank penalty. Ranks that fell do not return."
                         : "From the next step on, the late stage drives the size to its target. You can switch back; ranks lost until "
                           "then do not return.",
              .why_not = waits    ? "Takes effect at the next step; undo cancels it"
                         : run    ? "Only after the first step"
                         : s.late ? "The late stage has begun"
                                  : "Only while this window trains the run",
              .size = {ImGui::GetContentRegionAvail().x, 0}}))
    run->edit(kStagePath, s.late ? "early" : "late");
  if (!s.late && !has_ended(s.phase)) {
    push_small();
    ImGui::PushTextWrapPos(0);
    const bool left = std::any_of(ui.shown().marks.begin(), ui.shown().marks.end(),
                                  [&](const Mark& mark) { return mark.kind == Mark::early_stage && mark.step <= s.step; });
    if (comera.late_after > 0 && (!left || comera.late_after >= s.step))
      text_dim("The late stage starts after step " + thousands(static_cast<double>(comera.late_after)) +
               "; from then on the ranks follow the size target.");
    else if (comera.late_on_plateau > 0)
      text_dim("The late stage starts after " + counted(comera.late_on_plateau, "step") + " without a better loss.");
    else
      text_dim("The late stage does not start automatically.");
    ImGui::PopTextWrapPos();
    ImGui::PopFont();
  }
}

// Forks a new run at the checkpoint, so that no steps are computed again; before the first checkpoint, at the step itself.
void fork_button(UiState& ui) {
  const int64_t checkpoint = ui.snapshot().last_checkpoint_step;
  if (checkpoint < 0 && !no_fork(ui, cursor_step(ui))) {
    const std::string label = "Fork from step " + thousands(static_cast<double>(cursor_step(ui))) + "###fork-checkpoint";
    if (button(label.c_str(), {.icon = Icon::fork,
                               .tooltip = "A new run from this step, with its settings. The steps before it are computed again",
                               .size = {ImGui::GetContentRegionAvail().x, 0}}))
      fork_shown(ui);
    return;
  }
  const char* no = no_fork(ui, checkpoint);
  const float room = ImGui::GetContentRegionAvail().x;
  std::string label = "Fork from nearest checkpoint";
  if (checkpoint >= 0) label += " (" + thousands(static_cast<double>(checkpoint)) + ")";
  if (checkpoint >= 0 && button_width(label.c_str(), {.icon = Icon::fork}) > room)
    label = "Fork from checkpoint " + thousands(static_cast<double>(checkpoint));
  if (button((label + "###fork-checkpoint").c_str(),
             {.icon = Icon::fork,
              .enabled = no == nullptr,
              .tooltip = "A new run from the last checkpoint before this step, with the settings of that step. They can be changed there",
              .why_not = no,
              .size = {room, 0}}))
    fork_shown_checkpoint(ui);
}

}  // namespace

void draw_controls(UiState& ui) {
  const RunView& view = ui.shown();
  if (!ui.has_run()) {
    if (begin_card("controls-empty")) empty_state(Icon::chart, "No run yet", "Settings that can change while a run trains appear here.");
    end_card();
    return;
  }
  if (!view.config_problem.empty()) {  // the settings are not known
    if (begin_card("controls-unreadable")) empty_state(Icon::warning, "The settings cannot be read", view.config_problem.c_str());
    end_card();
    return;
  }
  ImGui::BeginChild("controls-scroll", {0, 0}, ImGuiChildFlags_NavFlattened);
  if (!ui.editable()) {
    push_small();
    banner(Level::info, ui.replaying() ? "Replay: values at this step."
                        : view.live    ? "The run has ended: last values."
                                       : "Stored run: last values.");
    ImGui::PopFont();
    if (ui.replaying()) fork_button(ui);
  }
  LiveSettings settings(ui);
  const bool has_ranks = settings.used("method.comera");
  if (has_ranks) {
    if (begin_card("card-size", {0, 0}, ImGuiChildFlags_AutoResizeY)) {
      card_title("Size");
      size_target(ui, view);
      ImGui::Dummy({0, em(0.2f)});
      stage(ui);
      ImGui::Dummy({0, em(0.1f)});
      settings.draw(kSize);
    }
    end_card();
    if (begin_card("card-ranks", {0, 0}, ImGuiChildFlags_AutoResizeY)) {
      card_title("Ranks and loss");
      mode_line(ui);
      settings.draw(kRanks);
    }
    end_card();
  }
  const auto [of_method, others] = settings.unlisted();
  if (!of_method.empty()) {  // ranks, intervals and scales of projections and factors
    if (begin_card("card-method", {0, 0}, ImGuiChildFlags_AutoResizeY)) {
      card_title("Method");
      settings.draw(of_method);
    }
    end_card();
  }
  if (begin_card("card-rates", {0, 0}, ImGuiChildFlags_AutoResizeY)) {
    card_title("Learning rates");
    settings.draw(kRates);
  }
  end_card();
  if (begin_card("card-intervals", {0, 0}, ImGuiChildFlags_AutoResizeY)) {
    card_title("Schedule and checkpoints");
    run_end(ui);
    settings.draw(kIntervals);
  }
  end_card();
  if (has_ranks) {
    if (begin_card("card-stages", {0, 0}, ImGuiChildFlags_AutoResizeY)) {
      card_title("Late stage and pruning");
      if (!ui.snapshot().late) settings.draw(kBegin);
      settings.draw(kPruning);
    }
    end_card();
  }
  if (!others.empty()) {
    if (begin_card("card-others", {0, 0}, ImGuiChildFlags_AutoResizeY)) {
      card_title("Other settings");
      settings.draw(others);
    }
    end_card();
  }
  ImGui::EndChild();
}

}  // namespace comera::studio
