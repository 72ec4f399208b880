#include "app/studio/dueling.h"

#include <algorithm>
#include <filesystem>

#include "app/figure/duel_rows.h"
#include "app/format.h"
#include "app/studio/actions.h"
#include "core/base/error.h"
#include "core/data/dataset.h"
#include "core/session/stored_run.h"
#include "core/store/run_reader.h"

namespace comera::studio {
namespace {

// Seed by seed, so that the first comparison of all methods comes early.
std::vector<DuelState::Run> runs_of(const std::vector<DuelMethod>& methods) {
  std::vector<DuelState::Run> runs;
  size_t seeds = 0;
  for (const DuelMethod& method : methods) seeds = std::max(seeds, method.runs.size());
  for (size_t seed = 0; seed < seeds; ++seed)
    for (const DuelMethod& method : methods)
      if (method.trains()) runs.push_back({.method = method.id, .config = method.runs[seed], .stored = {}});
  return runs;
}

void end_duel(UiState& ui, Level level, const std::string& text) {
  toast(ui, level, text);
  ui.dueling.reset();
}

void stopped(UiState& ui, Level level = Level::info) {
  end_duel(ui, level, "The duel has stopped at " + duel_progress(*ui.dueling) + ". The same duel continues it");
}

void ask(Dueling& duel) {
  duel.training = false;
  duel.load = 0;
  duel.number = duel.looker.ask(duel.question);
}

void finish(UiState& ui) {
  const std::vector<std::string> runs = ui.dueling->state.compare;
  const bool here = ui.store && ui.store->path() == ui.dueling->question.store;
  const bool watched = !ui.dueling->tried.empty() && ui.layout == "train" && !ui.show_stored;
  const bool asked = ui.dueling->tried.empty();  // nothing was left to train
  ui.dueling.reset();
  if (!here || runs.size() < 2) return toast(ui, Level::good, "The duel has finished");
  const auto compare = [runs](UiState& state) {
    compare_runs(state, runs);
    state.compare.tab = "pareto";
    state.compare.pareto_cost = ParetoCost::peak;  // what a duel is about
  };
  if (watched || asked) return compare(ui);
  Toast done{Level::good, "The duel has finished", kUntilDismissed, "duel"};
  done.offers = {{"Compare", compare}, {"Dismiss", {}}};
  add_toast(ui, std::move(done));
}

// Trains the first run that is neither over nor was started here. The page stays but for the first one.
void train_next(UiState& ui) {
  Dueling& duel = *ui.dueling;
  const std::vector<DuelState::Run>& runs = duel.state.runs;
  for (duel.at = 0; duel.at < runs.size() && (runs[duel.at].over || duel.tried.contains(duel.at));) ++duel.at;
  if (duel.at == runs.size()) return finish(ui);
  const bool behind = !duel.tried.empty();
  const DuelState::Run& run = runs[duel.at];
  duel.tried.insert(duel.at);
  if (!run.stored.empty()) {
    const uint64_t before = ui.load_request;
    resume_run(ui, run.stored, {.store = duel.question.store, .behind = behind});
    if (ui.load_request == before) return stopped(ui, Level::warning);
    duel.load = ui.load_request;
    return;
  }
  SessionStart session;
  session.store = duel.question.store;
  session.config = run.config;
  session.tags = {kDuelTag};
  if (!start_run(ui, std::move(session), behind)) return stopped(ui, Level::warning);
  duel.live = ui.live.get();
  duel.training = true;
}

// A run that diverges or finds no memory is a result; every other failure ends the duel, as does a stop.
void take_end(UiState& ui) {
  const Snapshot& s = *ui.live->view().snapshot;
  const bool result = s.phase == Phase::finished || s.phase == Phase::diverged ||
                      (s.phase == Phase::failed && s.error_code == static_cast<int>(ErrorCode::memory));
  if (ui.dueling->stopping || !result || !s.store_problem.empty())
    return stopped(ui, s.phase == Phase::stopped ? Level::info : Level::warning);
  ask(*ui.dueling);
}

}  // namespace

DuelState look_at_duel(const DuelQuestion& question) {
  DuelState state{.runs = runs_of(question.methods), .compare = {}, .data = question.data, .problem = {}};
  try {
    if (state.data.empty() && !state.runs.empty()) state.data = open_run_data(state.runs.front().config).train->info().fingerprint;
    if (!std::filesystem::exists(question.store)) return state;
    const DuelRuns stored(RunReader(question.store), state.data);
    for (DuelState::Run& run : state.runs)
      if (const RunRow* row = stored.find(run.config)) {
        run.stored = row->id;
        run.over = is_over(*row);
      }
    state.compare = runs_to_compare(duel_rows(question.store, question.methods, state.data), kMostCompared);
  } catch (const Error& error) {
    state.problem = std::string(error.what()) + (error.why().empty() ? "" : ": " + error.why()) +
                    (error.hint().empty() ? "" : ". Try: " + error.hint());
  } catch (const std::exception& error) {
    state.problem = error.what();
  }
  return state;
}

std::string no_duel(const UiState& ui) {
  const NewRun& form = ui.form;
  const DuelPlan& plan = form.duel;
  if (ui.dueling) return "A duel is training already";
  if (ui.layout != "new" || !form.methods.shown) return "Only in the form of a new run, in Memory of all methods";
  if (form.fork) return "A fork continues one method";
  if (ui.store_path.empty() || !ui.store) return "Runs are not stored in this window: open a database";
  if (const std::string no = no_writing(ui); !no.empty()) return no;
  if (plan.chosen.empty()) return "Tick methods first";
  if (!plan.problem.empty()) return plan.problem;
  if (!form.ready || form.looking || !plan.done()) return "The plans are still being made";
  for (const Problem& problem : form.outlook_problems)
    if (problem.path == "data.set" || problem.path == "train.device") return problem.text;
  for (const std::string& id : plan.chosen)
    if (plan.find(id)->trains()) return "";
  return plan.bytes > 0 ? "No chosen method fits into " + mebibytes(static_cast<double>(plan.bytes))
                        : "These settings refuse every chosen method";
}

void start_duel(UiState& ui) {
  if (!no_duel(ui).empty()) return;
  ui.dueling = std::make_unique<Dueling>(DuelQuestion{ui.store_path, ui.form.duel.methods(), ""}, ui.wake);
  ui.dueling->state.runs = runs_of(ui.dueling->question.methods);
  ui.dueling->live = ui.live.get();
  ask(*ui.dueling);
}

void stop_duel(UiState& ui) {
  if (!ui.dueling) return;
  ui.dueling->stopping = true;
  if (ui.dueling->training && ui.live.get() == ui.dueling->live && !ui.live->view().ended() && !ui.live->stopping()) ui.live->stop(true);
}

std::string duel_progress(const Dueling& duel) {
  const std::vector<DuelState::Run>& runs = duel.state.runs;
  const std::string count = std::to_string(runs.size());
  if (duel.at >= runs.size()) return count + " of " + count;
  const DuelState::Run& run = runs[duel.at];
  return std::to_string(duel.at + 1) + " of " + count + ": " + run.method + " seed " + std::to_string(run.config.train.seed);
}

void tick_duel(UiState& ui) {
  if (!ui.dueling) return;
  Dueling& duel = *ui.dueling;
  if (duel.load != 0) {
    if (ui.load_request == duel.load) return;
    if (!ui.live || ui.live.get() == duel.live || ui.live->run() != duel.state.runs[duel.at].stored) return stopped(ui, Level::warning);
    duel.load = 0;
    duel.live = ui.live.get();
    duel.training = true;
  }
  if (ui.live.get() != duel.live) return stopped(ui);  // the user has started another run
  if (duel.training) {
    if (ui.live->view().ended() && ui.live->ended()) take_end(ui);
    return;
  }
  const auto answer = duel.looker.latest();
  if (!answer || answer->number != duel.number) return;
  if (duel.stopping) return stopped(ui);
  if (!answer->answer.problem.empty()) return end_duel(ui, Level::error, "The duel cannot be trained: " + answer->answer.problem);
  if (ui.close_requested || !ui.ending.empty()) return;  // an earlier run still writes its checkpoint
  duel.state = answer->answer;
  duel.question.data = duel.state.data;
  train_next(ui);
}

}  // namespace comera::studio
