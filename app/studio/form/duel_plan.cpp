#include "app/studio/form/duel_plan.h"

#include <algorithm>

#include "app/studio/ui_state.h"
#include "core/base/numbers.h"
#include "core/config/named_methods.h"

namespace comera::studio {
namespace {

DuelMethod plan_one(const Duel& duel) {
  DuelMethod failed{.id = duel.methods.front(), .title = {}, .config = duel.config};
  try {
    return plan_duel(duel).front();
  } catch (const Error& error) {
    failed.refusal = std::string(error.what()) + (error.why().empty() ? "" : ": " + error.why());
  } catch (const std::exception& error) {
    failed.refusal = error.what();
  }
  return failed;
}

void forget_plans(DuelPlan& plan) {
  plan.number = 0;  // the answer would be about other settings
  for (auto& [id, made] : plan.made) made.current = false;
}

}  // namespace

const DuelMethod* DuelPlan::find(const std::string& id) const {
  const auto known = made.find(id);
  return known == made.end() || !known->second.current ? nullptr : &known->second.method;
}

bool DuelPlan::done() const {
  return std::all_of(chosen.begin(), chosen.end(), [this](const std::string& id) { return find(id) != nullptr; });
}

std::vector<DuelMethod> DuelPlan::methods() const {
  std::vector<DuelMethod> all;
  for (const NamedMethod& name : named_methods())
    if (const DuelMethod* method = chosen.contains(name.id) ? find(name.id) : nullptr) {
      all.push_back(*method);
      if (method->trains()) all.back().runs.resize(static_cast<size_t>(seeds));
    }
  return all;
}

void set_duel_memory(DuelPlan& plan, const std::string& typed) {
  const bool bare = typed.find_first_of("0123456789") != std::string::npos && typed.find_first_not_of("0123456789. ") == std::string::npos;
  const std::string text = bare ? typed + "MiB" : typed;
  plan.memory = text;
  plan.bytes = 0;
  plan.problem.clear();
  if (const auto bytes = read_bytes(text))
    plan.bytes = *bytes;
  else if (text.find_first_not_of(' ') != std::string::npos)
    plan.problem = "'" + text + "' is not a size of memory. Try: 64MiB";
  if (plan.bytes != plan.of_bytes) forget_plans(plan);
}

void choose_all_for_duel(DuelPlan& plan, bool all) {
  plan.chosen.clear();
  if (!all) return;
  for (const NamedMethod& method : named_methods()) plan.chosen.insert(method.id);
}

void tick_duel_plan(UiState& ui) {
  NewRun& form = ui.form;
  DuelPlan& plan = form.duel;
  if (!form.methods.shown || !form.ready || form.fork || plan.chosen.empty()) return;
  if (!plan.planner) plan.planner = std::make_unique<Background<Duel, DuelMethod>>(plan_one, ui.wake);
  if (plan.of != form.outlook_number || plan.of_bytes != plan.bytes) {
    plan.of = form.outlook_number;
    plan.of_bytes = plan.bytes;
    forget_plans(plan);
  }
  if (const auto answer = plan.planner->latest(); answer && plan.number > 0 && answer->number == plan.number) {
    plan.made[plan.asked] = {answer->answer, true};
    plan.number = 0;
  }
  if (plan.number > 0 || !plan.problem.empty()) return;
  const auto next = std::find_if(plan.chosen.begin(), plan.chosen.end(), [&](const std::string& id) { return !plan.find(id); });
  if (next == plan.chosen.end()) return;
  plan.asked = *next;
  plan.number = plan.planner->ask({.config = form.config, .methods = {*next}, .bytes = plan.bytes, .seeds = kMostSeeds});
}

}  // namespace comera::studio
