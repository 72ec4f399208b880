#include "app/studio/form/folder_fit.h"

#include <exception>
#include <nlohmann/json.hpp>

#include "app/studio/form/new_run.h"
#include "app/studio/ui_state.h"
#include "core/base/error.h"
#include "core/session/folder_run.h"

namespace comera::studio {
namespace {

FitAnswer compute(const FitQuestion& question) {
  FitAnswer answer{.weights = {}, .config = question.config, .problem = {}, .hint = {}};
  try {
    answer.weights = weights_of_folder(question.from, answer.config, [&] { return question.stopped->load(); });
  } catch (const Error& error) {
    answer.problem = std::string(error.what()) + (error.why().empty() ? "" : ": " + error.why());
    answer.hint = error.hint();
  } catch (const std::exception& error) {
    answer.problem = error.what();
  }
  return answer;
}

// All that sizes and errors depend on. With gradients nearly every setting: they are those of a run.
std::string depends_on(const NewRun& form) {
  const FolderFit& fit = form.fit;
  Json all = config_to_json(form.config);
  Json json = {{"source", form.source}, {"model", all["model"]}, {"weights", form.config.method.weights}};
  if (fit.ranks_from == RanksFrom::error) json["error"] = fit.most_error;
  if (fit.ranks_from == RanksFrom::compression) json["compression"] = fit.compression;
  if (weighs_by_gradients(fit)) {
    json["batches"] = fit.batches;
    json["data"] = all["data"];
    json["train"] = {{"batch", form.config.train.batch}, {"seed", form.config.train.seed}};
  }
  return json.dump();
}

FolderStart wanted(const NewRun& form) {
  const FolderFit& fit = form.fit;
  FolderStart start{.path = folder_of(form).value_or("")};
  if (start.path.empty() || !has_trains(form)) return start;
  if (fit.ranks_from == RanksFrom::error) start.most_error = fit.most_error;
  if (fit.ranks_from == RanksFrom::compression) start.compression = fit.compression;
  if (weighs_by_gradients(fit)) start.gradient_batches = fit.batches;
  return start;
}

}  // namespace

std::optional<std::string> folder_of(const NewRun& form) { return form.fork ? std::optional<std::string>() : folder_named(form.source); }

FolderStart folder_start(const NewRun& form) {
  FolderStart start = wanted(form);
  if (is_fitted(form)) start.weights = form.fit.answer->weights;
  return start;
}

bool has_trains(const NewRun& form) { return !form.config.trains().empty(); }

bool weighs_by_gradients(const FolderFit& fit) { return fit.by_gradients && fit.ranks_from != RanksFrom::error; }

bool is_fitted(const NewRun& form) {
  return form.fit.answer && form.fit.answer->weights && has_trains(form) && form.fit.of == depends_on(form);
}

const char* no_fit(const NewRun& form) {
  if (form.fit.number != 0) return "They are being computed";
  if (!form.ready || form.looking) return "The settings are being checked";
  const bool by_gradients = weighs_by_gradients(form.fit);
  if (by_gradients && form.config.data.set.empty()) return "Choose a data set: the gradients come from its batches";
  if (!form.problems.empty()) return "A setting is invalid";
  for (const Problem& problem : form.outlook_problems)
    if (by_gradients || problem.path == "model") return "A setting is invalid";  // else it needs neither data nor a device
  return nullptr;
}

void fit_folder(UiState& ui) {
  NewRun& form = ui.form;
  if (!folder_of(form) || no_fit(form)) return;
  FolderFit& fit = form.fit;
  if (!fit.worker) fit.worker = std::make_unique<Background<FitQuestion, FitAnswer>>(compute, ui.wake);
  fit.asked = depends_on(form);
  fit.answer.reset();
  fit.stopped = std::make_shared<std::atomic<bool>>(false);
  fit.number = fit.worker->ask({wanted(form), form.config, fit.stopped});
}

void stop_fit(FolderFit& fit) {
  *fit.stopped = true;
  fit.number = 0;
}

void tick_folder_fit(UiState& ui) {
  NewRun& form = ui.form;
  FolderFit& fit = form.fit;
  if (fit.number == 0) return;
  if (!form.ready || fit.asked != depends_on(form)) return stop_fit(fit);  // the form has changed since
  const auto answer = fit.worker->latest();
  if (!answer || answer->number != fit.number) return;
  fit.number = 0;
  fit.answer = {answer, &answer->answer};
  if (fit.ranks_from != RanksFrom::settings && fit.answer->weights) form.config.model.tt = fit.answer->config.model.tt;
  fit.of = depends_on(form);
  form_changed(ui, "");  // the forecast is that of these ranks
}

}  // namespace comera::studio
