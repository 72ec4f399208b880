#include "app/studio/form/new_run.h"

#include <imgui.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>

#include "app/format.h"
#include "app/studio/actions.h"
#include "core/base/error.h"
#include "core/base/paths.h"
#include "core/comm/planned_processes.h"
#include "core/config/suggest.h"
#include "core/data/datasets.h"
#include "core/ops/device.h"
#include "core/session/folder_run.h"
#include "core/session/stored_run.h"
#include "core/session/with_others.h"
#include "core/train/batch_fit.h"

namespace comera::studio {
namespace {

std::string one_line(const Error& error) { return std::string(error.what()) + (error.why().empty() ? "" : ": " + error.why()); }

ConfigAnswer read_config(const ConfigQuestion& question) {
  ConfigAnswer answer;
  answer.source = question.source;
  answer.machine = machine_name();
  try {
    answer.presets = preset_names();
    const std::string assets = assets_folder();
    for (const KnownSet& set : known_sets(assets)) {
      if (set.is_vocabulary()) continue;
      std::error_code ignored;
      const bool here = std::filesystem::exists(paths::sets_folder() + "/" + set.name, ignored) ||
                        std::filesystem::exists(assets + "/data/" + set.name, ignored);
      answer.data.push_back({set.name, set.about, set.bytes, here});
    }
    answer.devices = {"auto", "cpu"};
    for (size_t i = 0; i < cuda_status().devices.size(); ++i) answer.devices.push_back("cuda:" + std::to_string(i));
    const std::optional<std::string> folder = folder_named(question.source);
    const auto load = [&](const std::vector<std::string>& sets) {
      return folder ? folder_config(*folder, sets) : load_config(question.source, sets);
    };
    answer.base = question.fork ? question.fork->config : load({});
    answer.config = question.fork ? answer.base : load(question.sets);
    if (int64_t& steps = answer.config.train.steps; question.fork && steps > 0 && steps <= question.fork->step)
      steps = question.fork->step + half_of_steps(question.fork->step);  // else it would have none to train
  } catch (const Error& error) {
    answer.problem = one_line(error);
    answer.hint = error.hint();
  } catch (const std::exception& error) {
    answer.problem = error.what();
  }
  return answer;
}

bool is_blank(const std::string& text) { return text.find_first_not_of(' ') == std::string::npos; }

std::string text_of(const FieldValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return std::visit([](const auto& of) { return Json(of).dump(); }, value);
}

void take_config(UiState& ui, const ConfigAnswer& answer) {
  NewRun& form = ui.form;
  form.presets = answer.presets;
  form.devices = answer.devices;
  form.machine = answer.machine;
  form.data = answer.data;
  form.problem = answer.problem;
  form.hint = answer.hint;
  form.ready = answer.problem.empty();
  if (!form.ready) return;
  form.base = answer.base;
  form.base_values = field_values(form.base);
  const auto draft = form.drafts.find(form.source);
  form.config = draft != form.drafts.end() ? draft->second : answer.config;
  form_changed(ui, "");
}

// Estimates the step time from measured steps.
void guess_pace(UiState& ui) {
  NewRun& form = ui.form;
  form.guess = form.forecast ? guess_step(ui.settings.measured, form.machine, form.config, form.forecast->work.gemm_flops / 1e9) : Guess{};
}

}  // namespace

FieldValues field_values(const RunConfig& config) {
  RunConfig copy = config;
  return field_values(fields_of(copy));
}

Outlook look_ahead(const OutlookQuestion& question) {
  RunConfig config = question.config;
  Outlook outlook;
  const auto try_at = [&](const char* path, const auto& work) {
    try {
      work();
    } catch (const Error& error) {
      outlook.problems.push_back({path, one_line(error), error.hint()});
    } catch (const std::exception& error) {
      outlook.problems.push_back({path, error.what(), ""});
    }
  };
  try_at("data.set", [&] { find_data_file(data_spec(config)); });
  // The CPU is always available, and opening it would start its threads.
  if (config.train.device != "auto" && config.train.device != "cpu") try_at("train.device", [&] { open_device(config.train.device); });
  if (!config_problems(config).empty()) return outlook;  // these problems are shown at their fields
  if (!question.folder.empty())
    try_at("model", [&] {
      for (const std::string& name : check_folder(question.folder, config))
        outlook.new_head += (outlook.new_head.empty() ? "" : ", ") + name;
    });
  std::optional<PlannedProcesses> others;
  if (question.processes > 1) {
    others.emplace(question.processes);
    const size_t before = outlook.problems.size();
    try_at("train.batch", [&] { share_batches(config, *others); });
    if (outlook.problems.size() > before) return outlook;
  }
  try_at("model",
         [&] { outlook.forecast = std::make_shared<const Forecast>(make_forecast(config, question.ranks, others ? &*others : nullptr)); });
  if (!outlook.forecast) return outlook;
  const int64_t available = outlook.forecast->available / question.processes;
  try_at("train.batch", [&] { check_fits(outlook.forecast->memory, available); });
  outlook.misfit = find_misfit(config, outlook.forecast->memory, available);
  return outlook;
}

namespace {

void open_source(UiState& ui, const std::string& source, std::shared_ptr<const ForkOf> fork) {
  NewRun& form = ui.form;
  if (!form.reader) {
    form.reader = std::make_unique<Background<ConfigQuestion, ConfigAnswer>>(read_config, ui.wake);
    form.planner = std::make_unique<Background<OutlookQuestion, Outlook>>(look_ahead, ui.wake);
    form.data_reader = std::make_unique<Background<DataQuestion, DataFacts>>(read_data_facts, ui.wake);
    form.data_watch = std::make_unique<Background<DataQuestion, std::string>>(data_stamp, ui.wake);
    form.pacer = std::make_unique<Background<PaceQuestion, Pace>>(find_pace, ui.wake);
    form.meter = std::make_unique<Background<RunConfig, MeasuredStep>>(measure_step, ui.wake);
  }
  if (source != form.source || form.config_number == 0 || !form.problem.empty()) {
    form.source = source;
    form.fork = std::move(fork);
    form.ready = false;
    form.problem.clear();
    form.listing = form.start_wanted = false;
    form.caps.clear();
    form.config_number = form.reader->ask({source, ui.sets, form.fork});
  }
  show_layout(ui, "new");
}

// Settings that determine tensor shapes: a fork cannot change them.
bool is_shape(const std::string& path) {
  for (const char* shape : {"method.weights", "method.optimizer", "method.galore.rule", "method.galore.side", "method.coap.rule"})
    if (path == shape) return true;
  if (!path.starts_with("model.")) return false;
  const std::string last = path.substr(path.rfind('.') + 1);
  return last.find("dropout") == std::string::npos && last != "activation" && last != "norm_eps" && last != "keep_probabilities";
}

// Starts the fork with the edited settings.
void start_fork(UiState& ui) {
  NewRun& form = ui.form;
  ResumeWith with{.at_step = form.fork->step, .store = form.fork->store};
  for (const FieldEntry& entry : fields_list(fields_of(form.config)))
    if (form.is_changed(entry.path) || entry.path == "name") with.sets.push_back(entry.path + "=" + entry.value);
  for (const std::string& cap : caps_of(form)) with.sets.push_back(cap);
  fork_run(ui, form.fork->run, with);
}

void start_new(UiState& ui) {
  NewRun& form = ui.form;
  FolderStart folder = folder_start(form);
  form.fit.answer.reset();
  form.fit.worker.reset();  // it has the weights, too: their memory is for the run
  start_config(ui, form.config, std::move(folder), caps_of(form), form.processes);
}

// Asks for the outlook of the current config.
void look_at(NewRun& form) {
  form.looking = true;
  const LiveRanks ranks = is_fitted(form) ? form.fit.answer->weights->ranks : LiveRanks();
  form.outlook_number = form.planner->ask({form.config, form.fork ? 1 : form.processes, folder_of(form).value_or(""), ranks});
}

void read_data(NewRun& form) {
  form.data_look = 0;
  form.data_number = form.data_reader->ask(form.data_wanted);
}

constexpr double kLookAtData = 1;  // seconds between questions whether the data changed

void look_at_data(NewRun& form) {
  form.next_data_look = ImGui::GetTime() + kLookAtData;
  form.data_look = form.data_watch->ask(form.data_wanted);
}

// Reads the data again when its files were changed.
void tick_data(UiState& ui) {
  NewRun& form = ui.form;
  if (const auto data = form.data_reader->latest(); data && !form.facts() && data->number == form.data_number)
    form.known_data.push_back(data->answer);
  if (const auto now = form.data_watch->latest(); now && now->number == form.data_look) {
    form.data_look = 0;
    if (const DataFacts* facts = form.facts(); facts && facts->stamp != now->answer) {
      std::erase_if(form.known_data, [&](const DataFacts& one) { return one.of == form.data_wanted; });
      read_data(form);
      look_at(form);  // what is planned depends on the data, too
    }
  }
  const bool may = ui.layout == "new" && form.data_look == 0 && form.facts();
  if (may && ImGui::GetTime() >= form.next_data_look) look_at_data(form);
}

}  // namespace

void open_form(UiState& ui, const std::string& source) {
  const bool as_left = source.empty() || source == ui.form.source;
  open_source(ui, as_left ? ui.form.source : source, as_left ? ui.form.fork : nullptr);
}

void open_form_from_folder(UiState& ui, const std::string& folder) {
  open_form(ui, kFolderSource + std::filesystem::absolute(std::filesystem::path(folder) / "").lexically_normal().parent_path().string());
}

void open_form_fork(UiState& ui, const RunView& of, int64_t step) {
  auto fork = std::make_shared<ForkOf>(ForkOf{of.snapshot->run, of.snapshot->name, of.store, step, of.config_at(step)});
  fork->config.name = fork->name + "-fork";
  const std::string source = fork->run + " @ " + std::to_string(step);
  open_source(ui, source, std::move(fork));
}

void open_form_with(UiState& ui, const RunConfig& config) {
  NewRun& form = ui.form;
  const auto& names = presets();
  const std::string source = std::find(names.begin(), names.end(), config.name) != names.end() ? config.name : form.source;
  form.drafts[source] = config;
  if (source == form.source && form.ready) {
    form.config = config;
    form_changed(ui, "");
  }
  open_form(ui, source);
}

void tick_form(UiState& ui) {
  NewRun& form = ui.form;
  if (ui.layout == "new" && form.config_number == 0) open_form(ui);
  if (!form.reader) return;
  if (form.reading()) {
    const auto answer = form.reader->latest();
    if (answer && answer->number == form.config_number) take_config(ui, answer->answer);
  }
  if (const auto outlook = form.planner->latest(); outlook && form.looking) {
    const bool newest = outlook->number == form.outlook_number;
    if (newest || outlook->answer.forecast) form.forecast = outlook->answer.forecast;
    if (newest) form.outlook_problems = outlook->answer.problems;
    if (newest) form.misfit = outlook->answer.misfit;
    if (newest) form.new_head = outlook->answer.new_head;
    form.looking = !newest;
    if (newest) guess_pace(ui);
  }
  tick_methods(ui);
  tick_duel_plan(ui);
  tick_form_sweep(ui);
  tick_folder_fit(ui);
  if (const auto measured = form.meter->latest(); measured && form.measuring && measured->number == form.meter_number) {
    form.measuring = false;
    form.measure_problem = measured->answer.problem;
    if (measured->answer.step_ms > 0) remember_step(ui.settings.measured, measured->answer);
    if (!form.looking) guess_pace(ui);
  }
  tick_data(ui);
  if (const auto pace = form.pacer->latest(); pace && pace->number == form.pace_number) form.pace = pace->answer;
  const bool data_known = form.data_look == 0 || !form.problems.empty();  // else it is refused whatever the data are
  if (form.start_wanted && form.ready && !form.looking && data_known && form.fit.number == 0) {
    form.start_wanted = false;
    if (is_blank(form.config.name)) {
      form.config.name = is_blank(form.base.name) ? "run" : form.base.name;
      form_changed(ui, "name");
      form.start_wanted = true;  // when this config is checked
      return;
    }
    const std::vector<Problem> problems = blocking_problems(form);
    const bool only_device = problems.size() == 1 && problems.front().path == "train.device";
    form.listing = !problems.empty() && !only_device;
    if (only_device)
      ask_for_cpu(ui, form.config.train.device, problems.front().text, [](UiState& state) {
        set_field(state, "train.device", "\"cpu\"");
        start_form(state);
      });
    else if (form.listing)
      jump_to(form, problems.front().path);
    else if (form.fork)
      start_fork(ui);
    else
      start_new(ui);
  }
}

void form_changed(UiState& ui, const std::string& path) {
  NewRun& form = ui.form;
  constexpr const char* kTargets = "method.comera.";
  if (path.rfind(kTargets, 0) == 0) form.config.method.comera.only_target(path.substr(std::strlen(kTargets)));
  // Like load_config if eps is not set.
  if (path == "method.optimizer" || path == "method.galore.rule") form.config.method.adam.eps = form.config.method.chosen().eps;
  form.changed.clear();
  for (const auto& [at, value] : field_values(form.config))
    if (const auto base = form.base_values.find(at); base == form.base_values.end() || base->second != value) form.changed.insert(at);
  if (form.changed.empty())
    form.drafts.erase(form.source);
  else
    form.drafts[form.source] = form.config;
  form.problems = config_problems(form.config);
  form.unused = unused_settings(fields_of(form.config));
  form.modes = chosen_modes(form.config);
  form.start_wanted = false;
  look_at(form);
  form.pace_number = form.pacer->ask({form.config, ui.store ? ui.store->path() : ui.store_path});
  const DataQuestion data{form.config.data.set,
                          form.config.data.vocab,
                          {form.config.data.text_column, form.config.data.second_column, form.config.data.label_column},
                          text_task(form.config.model.task),
                          form.config.data.join};
  if (data == form.data_wanted) return;
  form.data_wanted = data;
  if (data.set.empty()) return;
  if (form.facts())
    look_at_data(form);
  else
    read_data(form);
}

const DataFacts* NewRun::facts() const {
  for (const DataFacts& facts : known_data)
    if (facts.of == data_wanted) return &facts;
  return nullptr;
}

const DataFacts* NewRun::columns() const {
  const DataFacts* found = facts();
  for (const DataFacts& one : known_data)
    if (!found && one.of.set == data_wanted.set) found = &one;
  return found && !found->columns.empty() ? found : nullptr;
}

bool NewRun::all_looked() const {
  const auto pace_there = pacer ? pacer->latest() : nullptr;
  return ready && !looking && fit.number == 0 && (!methods.shown || (methods.done() && duel.done())) &&
         (!shows_sweep(*this) || is_known(*this)) && (data_wanted.set.empty() || facts()) && pace_there &&
         pace_there->number == pace_number;
}

void measure_form(UiState& ui) {
  NewRun& form = ui.form;
  if (!form.ready || form.measuring) return;
  form.measuring = true;
  form.measure_problem.clear();
  form.meter_number = form.meter->ask(form.config);
}

void set_field(UiState& ui, const std::string& path, const std::string& json) {
  std::vector<Problem> problems;
  RunConfig config = ui.form.config;
  fields_set(fields_of(config), path, json, problems);
  if (!problems.empty()) return;
  ui.form.config = config;
  form_changed(ui, path);
}

void jump_to(NewRun& form, const std::string& path) {
  form.jump = path;
  form.jump_frames = 3;
}

void reset_field(UiState& ui, const std::string& path) {
  const auto base = ui.form.base_values.find(path);
  if (base == ui.form.base_values.end()) return;
  set_field_values(fields_of(ui.form.config), {*base});
  form_changed(ui, path);
}

void reset_form(UiState& ui) {
  const int64_t seed = ui.form.config.train.seed;
  ui.form.config = ui.form.base;
  ui.form.config.train.seed = seed;
  ui.form.caps.clear();
  form_changed(ui, "");
}

void new_seed(UiState& ui) {
  std::random_device random;
  ui.form.config.train.seed = static_cast<int64_t>(random() % 1'000'000);  // up to six digits, easy to read aloud
  form_changed(ui, "train.seed");
}

std::optional<Problem> data_problem(const NewRun& form) {
  const DataFacts* facts = form.facts();
  if (!facts) return {};
  if (!facts->problem.empty()) return Problem{"data.set", facts->problem, ""};
  try {
    check_fit(form.config, facts->info, nullptr);
  } catch (const Error& error) {
    return Problem{"data.set", one_line(error), error.hint()};
  }
  return {};
}

bool in_misfit_card(const NewRun& form, const std::string& path) { return form.misfit && path == "train.batch"; }

std::vector<Problem> blocking_problems(const NewRun& form) {
  std::vector<Problem> all = form.problems;
  for (const std::string& path : form.changed)
    if (form.fork && is_shape(path))
      all.push_back({path, "A fork keeps the tensor shapes of its parent", "restore the value, or start a new run from a preset"});
  if (!form.looking) all.insert(all.end(), form.outlook_problems.begin(), form.outlook_problems.end());
  if (all.empty())
    if (const std::optional<Problem> misfit = data_problem(form)) all.push_back(*misfit);
  return all;
}

void start_form(UiState& ui) {
  NewRun& form = ui.form;
  if (!form.ready) return;
  form.start_wanted = true;
  if (!form.data_wanted.set.empty()) look_at_data(form);
}

std::vector<std::string> caps_of(const NewRun& form) {
  std::vector<std::string> sets;
  if (!form.forecast) return sets;
  for (const ForecastLayer& layer : form.forecast->layers)
    for (size_t bond = 1; bond + 1 < layer.ranks.size(); ++bond) {
      const std::string name = layer.name + "." + std::to_string(bond);
      if (const auto cap = form.caps.find(name); cap != form.caps.end() && cap->second < layer.ranks[bond])
        sets.push_back("rank.cap." + name + "=" + std::to_string(cap->second));
    }
  return sets;
}

std::string form_json(const NewRun& form) { return config_to_json(form.config).dump(2) + "\n"; }

std::string form_command(const NewRun& form, const std::string& store) {
  std::string command =
      form.processes > 1 && !form.fork ? "mpirun -n " + std::to_string(form.processes) + " --bind-to none comera" : "comera";
  if (!store.empty() && store != paths::runs_database()) command += " --store " + shell_word(store);
  command += form.fork ? " fork " + form.fork->run + " --at-step " + std::to_string(form.fork->step) : " train " + shell_word(form.source);
  const FolderStart folder = folder_start(form);
  if (folder.most_error >= 0) command += " --tt-error " + csv_number(folder.most_error);
  if (folder.compression > 0) command += " --tt-compression " + csv_number(folder.compression);
  if (folder.gradient_batches > 0) command += " --tt-gradients " + std::to_string(folder.gradient_batches);
  // If the optimizer is changed, eps is passed even if it equals the preset's: without it the optimizer's own default would apply.
  const bool names_eps = form.is_changed("method.optimizer") || form.is_changed("method.galore.rule");
  for (const auto& [path, value] : field_values(form.config))
    if (form.is_changed(path) || (names_eps && path == "method.adam.eps")) command += " --set " + shell_word(path + "=" + text_of(value));
  for (const std::string& cap : caps_of(form)) command += " --set " + shell_word(cap);
  return command;
}

}  // namespace comera::studio
