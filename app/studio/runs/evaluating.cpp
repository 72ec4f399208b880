#include "app/studio/runs/evaluating.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdio>

#include "app/format.h"
#include "app/studio/free_path.h"
#include "app/studio/ui_state.h"
#include "app/studio/whole_file.h"
#include "core/base/error.h"
#include "core/base/paths.h"
#include "core/config/metrics.h"
#include "core/store/export.h"

namespace comera::studio {
namespace {

EvaluateChoices look_for_choices(const std::pair<std::string, std::string>& question) {
  EvaluateChoices choices;
  try {
    choices.of = evaluation_choices(question.first, question.second);
    if (choices.of.steps.empty()) choices.problem = "This run has no checkpoint whose file is there";
  } catch (const Error& error) {
    choices.problem = full_text(error);
  } catch (const std::exception& error) {
    choices.problem = error.what();
  }
  return choices;
}

// The lines of `comera predict` as a table: row, label, and a column for each logit.
int64_t write_predictions(Evaluation& evaluation, std::ostream& out, const std::function<void(double)>& progress) {
  bool begun = false;
  return evaluation.predict(
      [&](const Evaluation::Prediction& one) {
        if (!std::exchange(begun, true)) {
          out << "row,label";
          for (size_t i = 0; i < one.logits.size(); ++i) out << ",logit_" << i;
          out << "\n";
        }
        out << one.row << "," << (one.name ? csv_field(*one.name) : std::to_string(one.label));
        for (const double logit : one.logits) {
          char text[32];
          std::snprintf(text, sizeof text, ",%.17g", logit);
          out << text;
        }
        out << "\n";
      },
      progress);
}

}  // namespace

Evaluating::Evaluating(EvaluateQuestion question, std::function<void()> wake)
    : question_(std::move(question)), wake_(std::move(wake)), thread_([this] { work(); }) {}

Evaluating::~Evaluating() { give_up(); }

std::optional<Evaluating::Answer> Evaluating::answer() const {
  const std::lock_guard lock(mutex_);
  return answer_;
}

void Evaluating::evaluate(Answer& answer) {
  const auto check = [this] {
    if (given_up_) throw GivenUp();
  };
  const auto at = [&](double share) {
    share_ = share;
    check();
  };
  Evaluation evaluation(model_of_run(load_stored_run(question_.store, question_.run), question_.step), question_.of,
                        [&](double) { check(); });
  check();
  answer.data = evaluation.info().name;
  answer.left_out = evaluation.info().left_out;
  answer.per_token = evaluation.per_token();
  const auto begin = std::chrono::steady_clock::now();
  if (question_.folder.empty()) {
    answer.score = evaluation.score(at);
  } else {
    const std::string path = free_path(paths::ensure_folder(question_.folder), question_.run + "-predictions", "csv");
    write_whole(path, given_up_, [&](std::ostream& out) { answer.rows = write_predictions(evaluation, out, at); });
    answer.written = path;
  }
  answer.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void Evaluating::work() {
  Answer answer;
  answer.question = question_;
  try {
    evaluate(answer);
  } catch (const GivenUp&) {
    answer.given_up = true;
  } catch (const Error& error) {
    answer.problem = error.what(), answer.why = error.why(), answer.hint = error.hint();
  } catch (const std::exception& error) {
    answer.problem = error.what();
  }
  {
    const std::lock_guard lock(mutex_);
    answer_ = std::move(answer);
  }
  if (wake_) wake_();
}

std::vector<std::pair<std::string, std::string>> score_texts(const Evaluating::Answer& answer) {
  std::vector<std::pair<std::string, double>> values = {{"loss", answer.score.loss}, {"accuracy", answer.score.accuracy}};
  values.insert(values.end(), answer.score.more.begin(), answer.score.more.end());
  std::vector<std::pair<std::string, std::string>> texts;
  const std::string of_runs = "Validation ";
  for (const auto& [name, value] : values) {
    const std::string metric = "val_" + name;
    const MetricInfo info = describe_metric(metric);
    std::string title = info.title, unit = info.unit;
    if (title.starts_with(of_runs)) title.erase(0, of_runs.size());
    title[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(title[0])));
    texts.emplace_back(title, significant(value * info.factor) + (unit.empty() ? "" : " " + unit));
  }
  texts.emplace_back(answer.per_token ? "Tokens" : "Rows", thousands(static_cast<double>(answer.score.examples)));
  if (answer.left_out > 0) texts.emplace_back("Rows left out, without a text or a label", thousands(static_cast<double>(answer.left_out)));
  texts.emplace_back("Time", answer.seconds < 10 ? significant(answer.seconds, 2) + " s" : duration(answer.seconds));
  return texts;
}

std::shared_ptr<const EvaluateChoices> EvaluateView::choices() const {
  const auto latest = looker ? looker->latest() : nullptr;
  if (!latest || latest->number != look_number) return nullptr;
  return {latest, &latest->answer};
}

void open_evaluate(UiState& ui, const std::string& store, const std::string& run, const std::string& name) {
  EvaluateView& view = ui.evaluate;
  if (view.work) view.work->give_up();
  view.store = store, view.run = run, view.name = name;
  view.step = -1;
  view.split.clear(), view.file.clear(), view.files.clear();
  view.answer.reset();
  if (!view.looker)
    view.looker = std::make_unique<Background<std::pair<std::string, std::string>, EvaluateChoices>>(look_for_choices, ui.wake);
  view.look_number = view.looker->ask({store, run});
  open_dialog(ui, Dialog::evaluate);
}

const char* no_evaluation(const UiState& ui) {
  const RunView& view = ui.shown();
  if (!ui.has_run()) return "No run is shown";
  if (view.store.empty() || view.snapshot->run.empty()) return "This run is not stored";
  if (view.snapshot->last_checkpoint_step < 0) return "This run has no checkpoint yet";
  return nullptr;
}

void evaluate_shown(UiState& ui) {
  if (no_evaluation(ui)) return;
  const RunView& view = ui.shown();
  open_evaluate(ui, view.store, view.snapshot->run, view.snapshot->name);
}

void evaluate_on(UiState& ui, const std::string& file) {
  EvaluateView& view = ui.evaluate;
  open_dialog(ui, Dialog::evaluate);
  if (file.empty()) return;
  view.file = file;
  if (std::find(view.files.begin(), view.files.end(), file) == view.files.end()) view.files.push_back(file);
}

void begin_evaluation(UiState& ui, bool predictions) {
  EvaluateView& view = ui.evaluate;
  if (view.work || !view.choices()) return;
  view.answer.reset();
  EvaluateQuestion question{.store = view.store, .run = view.run, .name = view.name, .step = view.step};
  question.of.data = view.file;
  if (view.file.empty()) question.of.split = view.split;
  question.of.labels = !predictions;
  if (predictions) question.folder = exports_folder(ui.exports);
  view.work = std::make_unique<Evaluating>(std::move(question), ui.wake);
}

void tick_evaluating(UiState& ui) {
  EvaluateView& view = ui.evaluate;
  if (!view.work) return;
  if (ui.dialogs.open != Dialog::evaluate) view.work->give_up();
  std::optional<Evaluating::Answer> answer = view.work->answer();
  if (!answer) return;
  view.work.reset();
  if (ui.wake) ui.wake();  // the dialog changes its size, which takes it some frames
  if (ui.dialogs.open == Dialog::evaluate && answer->question.run == view.run && answer->question.store == view.store)
    view.answer = std::move(answer);
}

}  // namespace comera::studio
