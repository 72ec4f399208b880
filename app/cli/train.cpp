// comera train | resume | fork: a session with a progress view. The first Ctrl-C stops after the step with a
// checkpoint, the second quits at once (follow.h).
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>

#include "app/cli/folder.h"
#include "app/cli/follow.h"
#include "app/cli/processes.h"
#include "core/base/paths.h"
#include "core/config/metrics.h"
#include "core/session/version.h"
#include "core/session/with_others.h"

namespace comera::cli {
namespace {

struct TrainOptions {
  std::string config, run, name, device, events, max_time;
  double grace = 30;
  std::vector<std::string> sets, edits, tags;
  int64_t steps = 0, seed = -1, extend = 0, at_step = -1;
  FolderOptions folder;
};

Json metrics_json(const Snapshot& s) {
  if (s.last.step == 0)
    return {{"train_loss", nullptr},
            {"train_objective", nullptr},
            {"train_accuracy", nullptr},
            {"val_loss", nullptr},
            {"val_accuracy", nullptr}};
  Json out = {{"train_loss", s.last.results.ce}, {"train_objective", s.last.results.loss}, {"train_accuracy", s.last.accuracy}};
  if (s.eval.examples > 0) {
    out["val_loss"] = s.eval.loss;
    out["val_accuracy"] = s.eval.accuracy;
    for (const auto& [name, value] : s.eval.more) out["val_" + name] = value;
  } else {
    out["val_loss"] = nullptr;
    out["val_accuracy"] = nullptr;
  }
  return out;
}

Json memory_json(const MemoryByPurpose& memory) {
  Json out = Json::object();
  for (int i = 0; i < kPurposes; ++i) out[name_of(static_cast<Purpose>(i))] = memory.bytes[static_cast<size_t>(i)];
  return out;
}

}  // namespace

Json result_json(const Snapshot& s) {
  Json document = {{"run", s.run},
                   {"name", s.name},
                   {"status", name_of(s.phase)},
                   {"step", s.step},
                   {"steps", s.total_steps},
                   {"stage", s.late ? "late" : "early"},
                   {"metrics", metrics_json(s)},
                   {"best", {{"step", s.best_step}, {"val_loss", s.best_loss}, {"val_accuracy", s.best_accuracy}}},
                   {"size",
                    {{"entries", static_cast<int64_t>(s.size.entries)},
                     {"bytes", static_cast<int64_t>(s.size.bytes)},
                     {"compression", s.size.compression},
                     {"held_entries", s.size.held_entries},
                     {"model_entries", static_cast<int64_t>(s.size.model_entries)},
                     {"model_compression", s.size.model_compression}}},
                   {"memory",
                    {{"planned_peak_bytes", s.memory_planned.total()},
                     {"measured_peak_bytes", s.memory_peak.total()},
                     {"now_bytes", s.memory_now.total()},
                     {"planned_by_purpose", memory_json(s.memory_planned)},
                     {"measured_by_purpose", memory_json(s.memory_peak)},
                     {"now_by_purpose", memory_json(s.memory_now)}}},
                   {"step_ms", {{"median", s.step_ms_median}, {"p95", s.step_ms_p95}}},
                   {"tokens_per_s", s.tokens_per_s},
                   {"elapsed_s", s.elapsed_s},
                   {"device", s.device}};
  if (!s.store_problem.empty()) document["store_problem"] = s.store_problem;
  return document;
}

namespace {

// JSON lines, sorted by step: `step` with all values of a training step, `metric` for one value of an evaluation or a
// measurement, `rank_change`, and the run's events by kind: start, edit, stage, truncation, regrowth, checkpoint, alert ...
void write_events(std::ostream& out, const Records& records) {
  const auto of_steps = [](const std::string& name) {
    const MetricInfo* metric = find_metric(name);
    return metric && metric->recorded == Recorded::step;
  };
  std::vector<std::pair<int64_t, std::string>> lines;
  const auto line = [&](const char* event, int64_t step, const Json& more) {
    Json json = {{"event", event}, {"step", step}};
    json.update(more);
    lines.emplace_back(step, json.dump());
  };
  const Records::LeftOut& left_out = records.left_out;  // the events were read too slowly; `comera get` has these steps
  if (left_out.any()) line("left_out", left_out.first, {{"to_step", left_out.last}});
  for (const EventRow& event : records.events) line(event.kind.c_str(), event.step, parse_json(event.body, "an event"));
  std::map<int64_t, Json> steps;
  for (const auto& [name, series] : records.metrics)
    if (of_steps(name))
      for (size_t i = 0; i < series.steps.size(); ++i) steps[series.steps[i]][name] = series.values[i];
  for (const auto& [step, values] : steps) line("step", step, {{"values", values}});
  for (const auto& [name, series] : records.metrics)
    if (!of_steps(name))
      for (size_t i = 0; i < series.steps.size(); ++i) line("metric", series.steps[i], {{"metric", name}, {"value", series.values[i]}});
  for (const RankRow& row : records.ranks) line("rank_change", row.step, {{"layer", row.layer}, {"bond", row.bond}, {"rank", row.rank}});
  std::stable_sort(lines.begin(), lines.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [step, text] : lines) out << text << "\n";
}

// Runs a session to its end and prints the result. `more`: keys of the document.
int follow(const Context& context, SessionStart start, const TrainOptions& options, const Json& more = Json::object()) {
  const std::string& events_path = options.events;
  check_stdout(context, events_path, "--events FILE");
  std::ofstream events_file;
  std::ostream* events = nullptr;
  if (events_path == "-") {
    events = &std::cout;
  } else if (!events_path.empty()) {
    events_file.open(events_path);
    if (!events_file)
      throw Error(ErrorCode::storage, "cannot write " + events_path, "the folder may be missing or read-only", "choose another path");
    events = &events_file;
  }
  Progress progress(context);
  Following following{.grace = options.grace, .poll_s = events ? 0.05 : stderr_is_terminal() ? 0.1 : 0.25};
  if (events) {
    following.on_records = [events](const Records& records) { write_events(*events, records); };
    following.before_exit = [events] { events->flush(); };
  }
  catch_signals();
  const auto last = follow_session(context, std::move(start), progress, following);
  if (events) *events << Json{{"event", "done"}, {"status", name_of(last->phase)}, {"step", last->step}}.dump() << "\n" << std::flush;
  check_result(context, *last);
  // Training continues if the store fails, but the result must not suggest that the run was saved.
  const bool saved = last->store_problem.empty();
  const Error unsaved = not_saved(*last);
  Json document = result_json(*last);
  document.update(more);
  if (!saved)
    document["error"] = {
        {"code", static_cast<int>(unsaved.code())}, {"message", unsaved.what()}, {"why", unsaved.why()}, {"hint", unsaved.hint()}};
  if (context.json)
    print_json(document);
  else if (events_path != "-")  // otherwise the last event has the result
    progress.summary(*last);
  if (!saved && !context.json) throw unsaved;
  if (!saved) return static_cast<int>(ErrorCode::storage);
  errno = 0;
  if (events_file.is_open() && !events_file.flush()) fail_to_write(events_path);
  return signal_code();
}

// "500:train.lr_core=1e-3": applied before step 500 is computed.
ScheduledChange parse_edit(const std::string& text) {
  size_t used = 0;
  long long step = 0;
  try {
    step = std::stoll(text, &used);
  } catch (const std::exception&) {
  }
  if (step < 1 || used >= text.size() || text[used] != ':')
    throw Error(ErrorCode::usage, "--edit " + text + " is not of the form STEP:path=value", "",
                "for example --edit 500:method.comera.target=0.3");
  return parse_change(text.substr(used + 1), step);
}

// What must be the same on all processes, of how the run begins.
std::string text_of(SessionStart& start) {
  Json text = {{"config", config_to_json(start.config)},
               {"folder", start.folder.path},
               {"resume", start.resume_run},
               {"fork", start.fork_run},
               {"step", start.at_step},
               {"sets", start.sets},
               {"extend", start.extend}};
  for (const ScheduledChange& change : start.changes) text["changes"].push_back({change.step, change.path, change.value});
  return text.dump();
}

// Process 1, 2, ...: trains, and is done then. False: process 0, or the only one.
bool trains_with_process_0(SessionStart& start) {
  if (!start.others) return false;
  check_alike(*start.others, version_text("comera"), "another version of comera", "use the same build on all machines");
  check_alike(*start.others, text_of(start), "another config or other options", "start all processes with the same command");
  if (start.others->process() == 0) return false;
  catch_signals();  // process 0 decides what follows
  train_with_process_0(*start.others);
  return true;
}

SessionStart common(const Context& context, const TrainOptions& options, Processes others) {
  SessionStart start;
  start.others = std::move(others);
  start.store = store_path(context);
  start.watched = !context.quiet;
  start.tags = options.tags;
  start.extend = options.extend;
  for (const std::string& edit : options.edits) start.changes.push_back(parse_edit(edit));
  if (!options.max_time.empty()) start.max_seconds = parse_duration(options.max_time);
  if (!options.max_time.empty() && start.max_seconds <= 0)
    throw Error(ErrorCode::usage, "--max-time " + options.max_time + " leaves no time to train", "it is not above 0",
                "leave it out to train without a limit");
  return start;
}

int train(const Context& context, const TrainOptions& options, Processes others) {
  SessionStart start = common(context, options, std::move(others));
  std::vector<std::string> sets;
  for (const std::string& set : options.sets) (only_of_runs(set) ? start.sets : sets).push_back(set);
  if (options.steps > 0) sets.push_back("train.steps=" + std::to_string(options.steps));
  if (options.seed >= 0) sets.push_back("train.seed=" + std::to_string(options.seed));
  if (!options.device.empty()) sets.push_back("train.device=" + options.device);
  if (!options.name.empty()) sets.push_back("name=" + options.name);
  options.folder.add_to(sets);
  std::optional<FolderRun> folder = folder_run(options.config, sets, options.folder);
  if (!folder) {
    start.config = load_config(options.config, sets);
    if (trains_with_process_0(start)) return 0;
    return follow(context, std::move(start), options);
  }
  note_weights(context, *folder->start.weights);
  start.config = folder->config;
  start.folder = std::move(folder->start);  // the session frees the weights once the model has them
  if (trains_with_process_0(start)) return 0;
  const Json weights = weights_json(*start.folder.weights);
  return follow(context, std::move(start), options, {{"weights", weights}});
}

int resume(const Context& context, const TrainOptions& options, Processes others) {
  SessionStart start = common(context, options, std::move(others));
  start.resume_run = options.run;
  start.at_step = options.at_step;
  start.sets = options.sets;
  if (trains_with_process_0(start)) return 0;
  return follow(context, std::move(start), options);
}

int fork(const Context& context, const TrainOptions& options, Processes others) {
  SessionStart start = common(context, options, std::move(others));
  start.fork_run = options.run;
  start.at_step = options.at_step;
  start.sets = options.sets;
  if (options.steps > 0) start.sets.push_back("train.steps=" + std::to_string(options.steps));
  if (!options.name.empty()) start.sets.push_back("name=" + options.name);
  if (trains_with_process_0(start)) return 0;
  return follow(context, std::move(start), options);
}

}  // namespace

void add_train(Verb& program, Context& context) {
  const auto options = std::make_shared<TrainOptions>();
  const auto shared = [options](Verb verb) {
    verb.option("--set", options->sets,
                "path=value of a setting (comera config show lists them); also rank.cap.LAYER.BOND=N, rank.weight.LAYER=F (0 = locked), "
                "stage=late|early")
        .take_all();
    verb.option("--edit", options->edits, "STEP:path=value: a live edit, applied before that step").take_all();
    verb.option("--max-time", options->max_time, "write a checkpoint and stop after this duration, for example 30m");
    verb.option("--grace", options->grace, "seconds to write the last checkpoint after Ctrl-C or SIGTERM").not_negative().shows_default();
    verb.option("--events", options->events, "write every step and event as a JSON line to this file; - for stdout");
  };
  const auto does = [&context, options](Verb& verb, int (*run)(const Context&, const TrainOptions&, Processes)) {
    verb.does([&context, options, run] {
      return in_processes(context, [&](const Context& own, Processes others) { return run(own, *options, std::move(others)); });
    });
  };
  const auto named = [options](Verb verb) {
    verb.option("--name", options->name, "name of the new run");
    verb.option("--tag", options->tags, "tag of the new run; may be given several times").take_all();
  };
  Verb train_verb = program.verb("train", "train a preset, a config file or a model folder");
  train_verb.option("config", options->config, "preset or file; - for stdin; hf:FOLDER for a folder of the transformers library")
      .required();
  options->folder.add_to(train_verb);
  train_verb.option("--steps", options->steps, "steps to train").positive();
  train_verb.option("--seed", options->seed, "seed of all random numbers").not_negative();
  train_verb.option("--device", options->device, "auto, cpu or cuda:N");
  named(train_verb);
  shared(train_verb);
  train_verb.method(options->sets);
  does(train_verb, train);

  Verb resume_verb = program.verb("resume", "continue a stopped run, bit for bit as if it had not stopped");
  resume_verb.option("run", options->run, "run id, its beginning, or name").required();
  resume_verb.option("--from-step", options->at_step, "from the checkpoint at or before this step; later steps are kept as a separate run")
      .not_negative();
  resume_verb.option("--extend", options->extend, "additional steps").positive();
  shared(resume_verb);
  does(resume_verb, resume);

  Verb fork_verb = program.verb("fork", "start a new run from any step of a stored one");
  fork_verb.option("run", options->run, "run id, its beginning, or name").required();
  fork_verb.option("--at-step", options->at_step, "step to fork at (default: the last)").not_negative();
  fork_verb.option("--steps", options->steps, "total steps of the new run, counted from step 0 of its parent").positive();
  named(fork_verb);
  shared(fork_verb);
  does(fork_verb, fork);
}

}  // namespace comera::cli
