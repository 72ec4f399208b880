#include "app/studio/compare/compare.h"

#include <algorithm>
#include <cmath>

#include "app/studio/ui_state.h"

namespace comera::studio {
namespace {

constexpr double kRefreshSeconds = 1;
constexpr size_t kLongBeginning = 6;  // shortest common prefix that is removed, in letters

// The previous slot of the run, else the default slot of its id; if another compared run has it, the next free one.
int free_slot(const Compare& compare, const ComparedRun& run) {
  const auto had = compare.slots.find(run.id());
  const int wanted = had != compare.slots.end() ? had->second : slot_of(run.id());
  for (int i = 0;; ++i) {
    const int slot = (wanted + i) % static_cast<int>(kMostCompared);
    if (std::none_of(compare.runs.begin(), compare.runs.end(),
                     [&](const auto& other) { return other.get() != &run && other->slot == slot; }))
      return slot;
  }
}

// Step of a run at the cursor; -1 = its newest step.
int64_t step_at_cursor(const Compare& compare, const ComparedRun& run) {
  if (compare.cursor < 0 || !run.read() || no_axis(run, compare.axis)) return -1;
  const auto step = static_cast<int64_t>(std::floor(axis_of(run, compare.axis).step(compare.cursor) + 1e-6));
  return step >= run.last_step() ? -1 : std::max<int64_t>(0, step);
}

// State of a run in the list of runs. If it changes after the run has ended, the run was resumed.
std::string listed(const RunList& list, const ComparedRun& run) {
  const RunRow* row = find_row(list, run.id());
  return row ? row->status + " " + std::to_string(row->summary.step) : "";
}

void forget(Compare& compare) {
  compare.plots.forget_curves();
  compare.group_curves.clear();
  compare.brushes.clear();  // the scale of each axis depends on all runs
}

ComparedRun* find_asked(Compare& compare, const std::string& wanted) {
  for (const auto& run : compare.runs)
    if (run->wanted == wanted) return run.get();
  return nullptr;
}

}  // namespace

const ComparedRun* Compare::find(const std::string& wanted) const {
  for (const auto& run : runs)
    if (run->wanted == wanted || run->id() == wanted) return run.get();
  return nullptr;
}

const ComparedRun* Compare::baseline_run() const {
  if (const ComparedRun* run = find(baseline)) return run;
  return runs.empty() ? nullptr : runs.front().get();
}

void pick_run(Compare& compare, const std::string& run) {
  if (run.empty() || compare.full() || compare.find(run)) return;
  auto picked = std::make_shared<ComparedRun>();
  picked->wanted = run;
  picked->slot = free_slot(compare, *picked);
  compare.runs.push_back(std::move(picked));
  compare.brushes.clear();
}

void unpick_run(Compare& compare, const std::string& run) {
  const ComparedRun* gone = compare.find(run);
  if (gone) compare.slots[gone->id()] = gone->slot;
  std::erase_if(compare.runs, [&](const auto& other) { return other.get() == gone; });
  forget(compare);
}

void choose_slot(Compare& compare, const std::string& run, int slot) {
  const ComparedRun* chosen = compare.find(run);
  for (const auto& one : compare.runs) {
    if (one.get() == chosen || one->slot != slot || !chosen) continue;
    one->slot = chosen->slot;
    compare.slots[one->id()] = one->slot;
  }
  for (const auto& one : compare.runs)
    if (one.get() == chosen) one->slot = one->chosen_slot = compare.slots[one->id()] = slot;
}

void set_baseline(Compare& compare, const std::string& run) { compare.baseline = run; }

void next_baseline(Compare& compare) {
  const ComparedRun* now = compare.baseline_run();
  for (size_t i = 0; i < compare.runs.size(); ++i)
    if (compare.runs[i].get() == now) {
      compare.baseline = compare.runs[(i + 1) % compare.runs.size()]->wanted;
      return;
    }
}

void move_cursor(Compare& compare, double to) {
  compare.cursor = to < 0 || to >= last_position(compare) ? -1 : to;
  if (compare.cursor < 0)
    for (const auto& run : compare.runs) run->past = nullptr;
}

void set_axis(Compare& compare, XAxis axis) {
  const ComparedRun* run = compare.baseline_run();
  double to = -1;
  if (compare.cursor >= 0 && run && run->read() && !no_axis(*run, compare.axis) && !no_axis(*run, axis))
    to = axis_of(*run, axis).at(axis_of(*run, compare.axis).step(compare.cursor));
  compare.axis = axis;
  PlotView& plots = compare.plots;
  plots.grain = is_whole(axis) ? 1 : 1e-3;
  plots.unit = plots.axis_unit = unit_of(axis);
  plots.follow = true;
  move_cursor(compare, to);
}

void highlight_hovered(Compare& compare) {
  compare.highlighted = std::exchange(compare.hovered, "");
  const ComparedRun* one = compare.highlighted.empty() ? nullptr : compare.find(compare.highlighted);
  for (const auto& run : compare.runs) run->dimmed = one && run.get() != one;
}

double last_position(const Compare& compare) {
  double last = 0;
  for (const auto& run : compare.runs)
    if (run->read() && !no_axis(*run, compare.axis))
      last = std::max(last, axis_of(*run, compare.axis).at(static_cast<double>(run->last_step())));
  return last;
}

void take_watched(Compare& compare, WatchedRun answer) {
  ComparedRun* run = find_asked(compare, answer.run);
  if (!run) return;
  run->problem = answer.problem;
  if (!answer.problem.empty()) return;
  if (answer.view) {
    const std::string& id = answer.view->snapshot->run;
    const bool twice =
        std::any_of(compare.runs.begin(), compare.runs.end(), [&](const auto& other) { return other.get() != run && other->id() == id; });
    if (twice) return unpick_run(compare, answer.run);  // requested both by id and by name
    const bool by_name = run->wanted != id;
    run->view = std::move(answer.view);
    if (by_name) run->slot = free_slot(compare, *run);
    run->config = std::move(answer.config);
    run->checkpoints = std::move(answer.checkpoints);
    forget(compare);
  } else if (answer.latest && run->view) {
    run->view->take(std::move(answer.latest), answer.records);
    run->checkpoints = std::move(answer.checkpoints);
  }
  if (!run->view) return;
  run->past = compare.cursor >= 0 ? std::move(answer.past) : nullptr;
}

bool all_read(const Compare& compare) {
  return std::all_of(compare.runs.begin(), compare.runs.end(), [&](const auto& run) {
    return !run->problem.empty() || (run->read() && (step_at_cursor(compare, *run) < 0 || run->past));
  });
}

void tick_compare(UiState& ui) {
  ui.compare.wants_filter = std::exchange(ui.find, false);
  Compare& compare = ui.compare;
  if (!ui.store) return;
  for (WatchedRun& answer : ui.store->watched()) take_watched(compare, std::move(answer));
  const bool refresh = ImGui::GetTime() >= compare.next_refresh;
  if (refresh) compare.next_refresh = ImGui::GetTime() + kRefreshSeconds;
  std::vector<WatchRequest> requests, asked;
  bool news = false;
  for (const auto& run : compare.runs) {
    WatchRequest request{run->wanted, step_at_cursor(compare, *run)};
    asked.push_back(request);
    run->tags.reset();
    for (const std::vector<RunRow>* rows : {&ui.runs->rows, &ui.runs->archived})
      for (const RunRow& row : *rows) {
        if (row.id != run->id()) continue;
        run->tags = all_tags(row);
        if (const int chosen = slot_of_tags(row.tags); chosen >= 0 && chosen != run->chosen_slot) choose_slot(compare, run->wanted, chosen);
      }
    const bool training = run->read() && !run->view->ended();
    std::string now = listed(*ui.runs, *run);
    const bool goes_on = run->read() && !training && !now.empty() && !run->listed.empty() && now != run->listed;
    request.whole = !run->asked || goes_on || (refresh && !run->problem.empty());
    request.refresh = refresh && training;
    news = news || request.whole || request.refresh;
    run->asked = true;
    run->listed = std::move(now);
    requests.push_back(std::move(request));
  }
  if (!news && asked == compare.asked) return;
  compare.asked = std::move(asked);
  ui.store->watch(std::move(requests));
}

std::string label_of(const Compare& compare, const ComparedRun& run) {
  const std::string& name = run.name();
  size_t common = compare.runs.size() > 1 ? name.size() : 0;
  bool twice = false;
  for (const auto& other : compare.runs) {
    if (other.get() == &run || !other->read()) continue;
    const std::string& with = other->name();
    twice = twice || with == name;
    if (with == name) continue;
    const auto parts = std::mismatch(name.begin(), name.end(), with.begin(), with.end());
    common = std::min(common, static_cast<size_t>(parts.first - name.begin()));
  }
  // Cut at the start of a word; a short common prefix is kept.
  const size_t cut = common == name.size() || common == 0 ? std::string::npos : name.find_last_of(" |/_-", common - 1);
  return (cut == std::string::npos || cut < kLongBeginning ? name : name.substr(cut + 1)) + (twice ? " (" + run.id() + ")" : "");
}

}  // namespace comera::studio
