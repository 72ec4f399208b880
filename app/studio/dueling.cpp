#include "app/studio/dueling.h"

#include <algorithm>
#include <filesystem>
#include <memory>

#include "app/figure/duel_rows.h"
#include "app/format.h"
#include "app/studio/actions.h"
#include "app/studio/run_queue.h"
#include "core/data/dataset.h"
#include "core/session/stored_run.h"
#include "core/store/run_reader.h"

namespace comera::studio {
namespace {

// Seed by seed, so that the first comparison of all methods comes early.
std::vector<QueuedRun> runs_of(const std::vector<DuelMethod>& methods) {
  std::vector<QueuedRun> runs;
  size_t seeds = 0;
  for (const DuelMethod& method : methods) seeds = std::max(seeds, method.runs.size());
  for (size_t seed = 0; seed < seeds; ++seed)
    for (const DuelMethod& method : methods)
      if (method.trains()) {
        const RunConfig& config = method.runs[seed];
        runs.push_back({.title = method.id + " seed " + std::to_string(config.train.seed), .config = config});
      }
  return runs;
}

// Reads the data and the store. `data`: fingerprint of the training data; "" = not known yet.
QueueState look_at_duel(const std::string& store, const std::vector<DuelMethod>& methods, const std::string& folder, std::string& data) {
  QueueState state{.runs = runs_of(methods), .compare = {}, .problem = {}};
  if (data.empty() && !state.runs.empty()) data = open_run_data(state.runs.front().config).train->info().fingerprint;
  if (!std::filesystem::exists(store)) return state;
  const DuelRuns stored(RunReader(store), data, folder);
  for (QueuedRun& run : state.runs)
    if (const RunRow* row = stored.find(run.config)) {
      run.stored = row->id;
      run.over = is_over(*row);
    }
  state.compare = runs_to_compare(duel_rows(store, methods, data, folder), kMostCompared);
  return state;
}

}  // namespace

std::string no_duel(const UiState& ui) {
  const NewRun& form = ui.form;
  const DuelPlan& plan = form.duel;
  if (ui.queue) return "A " + ui.queue->order.noun + " is training already";
  if (ui.layout != "new" || !form.methods.shown) return "Only in the form of a new run, in Memory of all methods";
  if (form.fork) return "A fork continues one method";
  if (ui.store_path.empty() || !ui.store) return "Runs are not stored in this window: open a database";
  if (const std::string no = no_writing(ui); !no.empty()) return no;
  if (plan.chosen.empty()) return "Tick methods first";
  if (folder_of(form) && has_trains(form) && (form.fit.ranks_from != RanksFrom::settings || form.fit.by_gradients))
    return "A duel takes the ranks of the settings: choose By rank for the folder's weights, without gradients";
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
  const std::vector<DuelMethod> methods = ui.form.duel.methods();
  const std::string folder = folder_of(ui.form).value_or("");
  QueueOrder order{.noun = kDuelNoun, .store = ui.store_path, .tags = {kDuelTag}, .folder = folder, .runs = runs_of(methods)};
  order.look = [store = ui.store_path, methods, folder, data = std::make_shared<std::string>()] {
    return look_at_duel(store, methods, folder, *data);
  };
  order.compare = [](UiState& state) {
    state.compare.tab = "pareto";
    state.compare.pareto_cost = ParetoCost::peak;  // what a duel is about
  };
  order.open_form = [](UiState& state) {
    state.form.methods.shown = true;
    open_form(state);
  };
  start_queue(ui, std::move(order));
}

}  // namespace comera::studio
