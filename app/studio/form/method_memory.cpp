#include "app/studio/form/method_memory.h"

#include <algorithm>

#include "app/studio/form/new_run.h"
#include "app/studio/ui_state.h"

namespace comera::studio {
namespace {

// Settings that a plan may depend on: names are not among them.
FieldValues planned_values(const RunConfig& config) {
  FieldValues values = field_values(config);
  values.erase("name");
  values.erase("method.name");
  return values;
}

// Marks the rows that a change of the form affects.
void take_settings(MethodMemory& methods, const RunConfig& config) {
  if (methods.rows.empty())
    for (const NamedMethod& name : named_methods()) methods.rows.push_back({.plan = {name.id, name.title, {}, ""}, .values = {}});
  for (MethodMemory::Row& row : methods.rows) {
    FieldValues values = planned_values(with_method(config, row.plan.id));
    if (values != row.values) row.current = false;
    row.values = std::move(values);
  }
  methods.own = name_of_method(config.method);
}

}  // namespace

bool MethodMemory::done() const {
  return !rows.empty() && std::all_of(rows.begin(), rows.end(), [](const Row& row) { return row.current; });
}

std::vector<const MethodMemory::Row*> MethodMemory::by_peak() const {
  std::vector<const Row*> order;
  for (const Row& row : rows) order.push_back(&row);
  std::stable_sort(order.begin(), order.end(),
                   [](const Row* a, const Row* b) { return a->known != b->known ? a->known : takes_less(a->plan, b->plan); });
  return order;
}

std::vector<MethodPlan> MethodMemory::known_plans() const {
  std::vector<MethodPlan> plans;
  for (const Row* row : by_peak())
    if (row->known) plans.push_back(row->plan);
  return plans;
}

void tick_methods(UiState& ui) {
  NewRun& form = ui.form;
  MethodMemory& methods = form.methods;
  if (!methods.shown || !form.ready) return;
  if (!methods.planner)
    methods.planner = std::make_unique<Background<MethodQuestion, MethodPlan>>(
        [](const MethodQuestion& question) { return plan_method(question.config, question.id); }, ui.wake);
  if (methods.of != form.outlook_number) {
    methods.of = form.outlook_number;
    methods.number = 0;  // the answer would be about other settings
    take_settings(methods, form.config);
  }
  if (const auto answer = methods.planner->latest(); answer && methods.number > 0 && answer->number == methods.number) {
    MethodMemory::Row& row = methods.rows[methods.at];
    row.plan = answer->answer;
    row.known = row.current = true;
    methods.number = 0;
  }
  if (methods.number > 0) return;
  const auto next = std::find_if(methods.rows.begin(), methods.rows.end(), [](const MethodMemory::Row& row) { return !row.current; });
  if (next == methods.rows.end()) return;
  methods.at = static_cast<size_t>(next - methods.rows.begin());
  methods.number = methods.planner->ask({form.config, next->plan.id});
}

void choose_method(UiState& ui, const std::string& id) {
  ui.form.config = with_method(ui.form.config, id);
  form_changed(ui, "");
}

}  // namespace comera::studio
