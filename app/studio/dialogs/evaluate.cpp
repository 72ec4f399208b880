// Evaluates a stored run: which checkpoint, which data, then scores or a file of predictions.
#include <algorithm>
#include <filesystem>

#include "app/format.h"
#include "app/studio/dialogs.h"
#include "app/studio/parts/cards.h"
#include "app/studio/parts/icons.h"
#include "app/studio/parts/inputs.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/texts.h"
#include "app/studio/runs/evaluating.h"
#include "app/studio/ui_state.h"

namespace comera::studio {
namespace {

std::string step_name(int64_t step) { return "step " + thousands(static_cast<double>(step)); }

std::string checkpoint_name(const EvaluationChoices& choices, int64_t step) {
  std::string name = step_name(step);
  if (step == choices.steps.back()) name += ", newest";
  if (step == choices.best) name += ", best validation loss";
  name[0] = 'S';
  return name;
}

std::string file_name(const std::string& path) {
  const std::filesystem::path file = path;
  return (file.has_filename() ? file : file.parent_path()).filename().string();
}

std::string split_name(const EvaluationChoices& choices, const std::string& split) {
  const char* about = !choices.whole              ? ""
                      : split == "dev"            ? ", the rows held out"
                      : choices.splits.size() > 1 ? ", the other rows"
                                                  : ", all rows";
  return split + " of " + file_name(choices.data) + about;
}

void label(const char* text, float width) {
  const float left = ImGui::GetCursorPosX();
  ImGui::AlignTextToFramePadding();
  text_dim(text);
  ImGui::SameLine(left + width);
  ImGui::SetNextItemWidth(-1);
}

void choose_checkpoint(EvaluateView& view, const EvaluationChoices& choices) {
  if (view.step < 0 && !choices.steps.empty()) view.step = choices.steps.back();
  const bool open = ImGui::BeginCombo("##checkpoint", checkpoint_name(choices, view.step).c_str());
  name_item("checkpoint");
  if (!open) return;
  for (auto step = choices.steps.rbegin(); step != choices.steps.rend(); ++step) {
    if (ImGui::Selectable(checkpoint_name(choices, *step).c_str(), *step == view.step)) view.step = *step;
    name_item("checkpoint:" + std::to_string(*step));
  }
  ImGui::EndCombo();
}

// The splits of the run's own data, the files that were chosen, and ways to choose another one.
void choose_data(UiState& ui, const EvaluationChoices& choices) {
  EvaluateView& view = ui.evaluate;
  if (view.split.empty() && !choices.splits.empty()) view.split = choices.splits.front();
  const std::string shown = !view.file.empty()   ? file_name(view.file)
                            : view.split.empty() ? "none chosen"
                                                 : split_name(choices, view.split);
  const bool open = ImGui::BeginCombo("##data", whole_label(shown).c_str());
  name_item("data");
  if (!view.file.empty() && !open) tooltip(view.file.c_str());
  if (!open) return;
  for (const std::string& split : choices.splits) {
    if (ImGui::Selectable(whole_label(split_name(choices, split)).c_str(), view.file.empty() && split == view.split))
      view.split = split, view.file.clear();
    name_item("data:" + split);
  }
  for (const std::string& file : view.files)
    if (ImGui::Selectable((whole_label(file_name(file)) + "###" + file).c_str(), file == view.file)) view.file = file;
  ImGui::Separator();
  if (ImGui::Selectable("A file ...")) open_browser(ui, BrowseFor::evaluation);
  name_item("data:file");
  if (ImGui::Selectable("A folder ...")) open_browser(ui, BrowseFor::evaluation, Choose::folder);
  ImGui::EndCombo();
}

void failure(const std::string& problem, const std::string& why, const std::string& hint) {
  banner(Level::error, problem);
  if (!why.empty()) text_wrapped(why, theme().dim);
  if (!hint.empty()) text_wrapped("Try: " + hint, theme().dim);
}

std::string what_was_evaluated(const Evaluating::Answer& answer) {
  const EvaluateQuestion& of = answer.question;
  return step_name(of.step) + " on " + (of.of.data.empty() ? of.of.split + " (" + answer.data + ")" : answer.data);
}

void show_answer(const Evaluating::Answer& answer) {
  if (answer.given_up) return text_wrapped("Cancelled", theme().dim);
  if (!answer.problem.empty()) return failure(answer.problem, answer.why, answer.hint);
  if (!answer.written.empty())
    return banner(Level::good, "Written: " + answer.written + ", " + counted(answer.rows, "row") + " by " + what_was_evaluated(answer));
  std::string what = what_was_evaluated(answer);
  what[0] = 'S';
  text_wrapped(what, theme().dim);
  const auto texts = score_texts(answer);
  std::string copied;
  ImGui::BeginGroup();
  if (ImGui::BeginTable("scores", 2, ImGuiTableFlags_SizingStretchProp)) {
    ImGui::TableSetupColumn("score", ImGuiTableColumnFlags_WidthStretch, 3);
    ImGui::TableSetupColumn("value", ImGuiTableColumnFlags_WidthStretch, 2);
    for (const auto& [title, value] : texts) {
      ImGui::TableNextRow();
      ImGui::TableNextColumn();
      text_fit(title, ImGui::GetContentRegionAvail().x, theme().text);
      ImGui::TableNextColumn();
      ImGui::PushFont(fonts().numbers, 0);
      ImGui::TextUnformatted(value.c_str());
      ImGui::PopFont();
      name_item("says:" + title + " " + value);
      copied += title + "\t" + value + "\n";
    }
    ImGui::EndTable();
  }
  ImGui::EndGroup();
  copy_menu({{"Copy scores", copied}});
}

void show_progress(const Evaluating& work) {
  const double share = work.share();
  char text[32];
  std::snprintf(text, sizeof text, "%.0f %%", 100 * share);
  progress_bar(share < 0 ? kNotKnown : static_cast<float>(share), {ImGui::GetContentRegionAvail().x, em(1.3f)}, theme().accent,
               work.gives_up() ? "Stopping"
               : share < 0     ? "Reading model and data"
                               : text);
}

}  // namespace

void draw_evaluate(UiState& ui) {
  EvaluateView& view = ui.evaluate;
  const std::shared_ptr<const EvaluateChoices> choices = view.choices();
  text_wrapped(view.name + " (" + view.run + ")", theme().dim);
  const bool ready = choices && choices->problem.empty();
  if (!choices) {
    text_wrapped("Reading the run", theme().dim);
  } else if (!ready) {
    failure(choices->problem, "", "");
  } else {
    const float width = em(7);
    ImGui::BeginDisabled(view.work != nullptr);
    label("Checkpoint", width);
    choose_checkpoint(view, choices->of);
    label("Data", width);
    choose_data(ui, choices->of);
    ImGui::EndDisabled();
    if (ui.dialogs.open != Dialog::evaluate) return;  // a file is being chosen
    if (view.file.empty() && choices->of.splits.empty() && !choices->of.no_splits.empty()) text_wrapped(choices->of.no_splits, theme().dim);
  }
  ImGui::Dummy({0, em(0.2f)});
  if (view.work)
    show_progress(*view.work);
  else if (view.answer)
    show_answer(*view.answer);
  ImGui::Dummy({0, em(0.2f)});
  if (view.work) {
    if (button("Cancel###cancel-evaluation", {.icon = Icon::cross, .enabled = !view.work->gives_up(), .why_not = "Stops after this batch"}))
      view.work->give_up();
    return;
  }
  const bool has_data = ready && (!view.file.empty() || !view.split.empty());
  const char* why_not = !choices ? "The run is still being read" : !ready ? "This run cannot be evaluated" : "No data are chosen";
  if (button("Evaluate###evaluate", {.icon = Icon::play, .primary = true, .enabled = has_data, .why_not = why_not}))
    begin_evaluation(ui, false);
  const bool whole = ready && view.file.empty() && choices->of.whole;
  const std::string tip = "A CSV file in " + exports_folder(ui.exports) +
                          " with the class and the logits of each row, as comera predict prints them; labels are not needed" +
                          (whole ? ". Of all rows of the file, not only of the chosen ones" : "");
  const bool predicts = has_data && choices->of.predicts;
  const ButtonLook look{.icon = Icon::save,
                        .enabled = predicts,
                        .tooltip = tip.c_str(),
                        .why_not = has_data ? "A language model predicts tokens, not classes of rows" : why_not};
  beside_or_below(button_width("Write predictions", look));
  if (button("Write predictions###predict", look)) begin_evaluation(ui, true);
  beside_or_below(button_width("Close", {}));
  if (button("Close###close-evaluate")) close_dialog(ui);
}

}  // namespace comera::studio
