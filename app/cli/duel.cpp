// comera duel CONFIG: trains the same network under several methods, at equal memory if asked, and compares them. Its runs are ordinary
// runs of the store, so the same command continues where it was stopped.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>

#include "app/cli/cli.h"
#include "app/cli/folder.h"
#include "app/cli/follow.h"
#include "app/figure/duel_rows.h"
#include "app/figure/raster.h"
#include "core/data/dataset.h"
#include "core/session/duel.h"
#include "core/session/stored_run.h"
#include "core/store/run_reader.h"

namespace comera::cli {
namespace {
namespace fs = std::filesystem;

constexpr size_t kMostCompared = 8;  // runs that the window compares at once

struct DuelOptions {
  FolderOptions folder;
  std::string config, memory, methods, device, output;
  std::vector<std::string> sets;
  int64_t steps = 0, seed = -1, seeds = 1;
  double grace = 30;
};

// The model folder that all runs begin with; "": their weights are drawn.
std::string folder_of(const DuelOptions& options) {
  const std::optional<std::string> folder = folder_named(options.config);
  return folder ? fs::absolute(*folder).lexically_normal().string() : "";
}

Duel duel_of(const DuelOptions& options) {
  std::vector<std::string> sets = options.sets;
  if (options.steps > 0) sets.push_back("train.steps=" + std::to_string(options.steps));
  if (options.seed >= 0) sets.push_back("train.seed=" + std::to_string(options.seed));
  if (!options.device.empty()) sets.push_back("train.device=" + options.device);
  options.folder.add_to(sets);
  const std::optional<FolderRun> folder = folder_run(options.config, sets, options.folder);
  Duel duel{.config = folder ? folder->config : load_config(options.config, sets), .methods = {}, .seeds = options.seeds};
  if (!options.memory.empty()) duel.bytes = parse_bytes(options.memory);
  std::istringstream ids(options.methods);
  for (std::string id; std::getline(ids, id, ',');)
    if (!id.empty()) duel.methods.push_back(id);
  return duel;
}

// Before hours of training: a figure that could not be written at their end.
void check_output(const std::string& path) {
  if (path.empty()) return;
  const std::string kind = fs::path(path).extension().string();
  if (kind != ".svg" && kind != ".png")
    throw Error(ErrorCode::usage, "-o " + path + " is not a picture", "its name does not end in .svg or .png", "for example -o pareto.svg");
  const OutputFile probe(path);
}

// A plan is of the first step. Where ranks were cut, another order of contraction may take more.
bool exceeds(const Duel& duel, const DuelResult& result) { return duel.bytes > 0 && result.peak_bytes > static_cast<double>(duel.bytes); }

// Why a method is not trained, or what its runs failed of; "" = it was trained.
std::string reason_of(const DuelMethod& method, const DuelResult& result) {
  if (!method.refusal.empty()) return method.refusal;
  if (!method.fits) return "needs at least " + mebibytes(static_cast<double>(method.planned));
  for (const RunRow& run : result.runs)
    if (!run.message.empty()) return run.message;
  return "";
}

const char* status_of(const DuelMethod& method, const DuelResult& result) {
  if (!method.refusal.empty()) return "refused";
  if (!method.fits) return "does_not_fit";
  if (result.finished == static_cast<int64_t>(method.runs.size())) return "finished";
  for (const char* status : {"failed", "diverged"})
    for (const RunRow& run : result.runs)
      if (run.status == status) return status;
  return "unfinished";
}

std::vector<DuelMethod> plan(const Duel& duel) {
  std::vector<DuelMethod> methods = plan_duel(duel);
  if (std::any_of(methods.begin(), methods.end(), [](const DuelMethod& method) { return method.trains(); })) return methods;
  const DuelMethod* smallest = nullptr;
  for (const DuelMethod& method : methods)
    if (method.refusal.empty() && (!smallest || method.planned < smallest->planned)) smallest = &method;
  if (!smallest) throw Error(ErrorCode::config, "no method can be trained", methods.front().id + ": " + methods.front().refusal, "");
  const std::string least = mebibytes(static_cast<double>(smallest->planned));
  throw Error(ErrorCode::memory, "no method fits into " + mebibytes(static_cast<double>(duel.bytes)),
              "the smallest, " + smallest->id + ", needs at least " + least, "give more with --memory, or use a smaller model");
}

// Trains or continues a run that is not over. A run that diverges or finds no memory is a result; every other failure ends the duel.
void train_run(const Context& context, const DuelOptions& options, const RunConfig& config, const RunRow* stored) {
  SessionStart start;
  start.store = store_path(context);
  if (stored) {
    start.resume_run = stored->id;
  } else {
    start.config = config;
    start.tags = {kDuelTag};
    start.folder.path = folder_of(options);
  }
  Progress progress(context);
  const auto last =
      follow_session(context, std::move(start), progress, {.grace = options.grace, .poll_s = stderr_is_terminal() ? 0.1 : 0.25});
  const auto code = static_cast<ErrorCode>(last->error_code);
  if (code != ErrorCode::memory && code != ErrorCode::diverged) check_result(context, *last);
  if (!last->store_problem.empty()) throw not_saved(*last);
}

// Seed by seed, so that the first comparison of all methods comes early. Returns early after a signal.
void train_all(const Context& context, const DuelOptions& options, const std::vector<DuelMethod>& methods, const std::string& data) {
  const std::string store = store_path(context);
  const DuelRuns stored = fs::exists(store) ? DuelRuns(RunReader(store), data, folder_of(options)) : DuelRuns();
  catch_signals();
  const auto count =
      std::count_if(methods.begin(), methods.end(), [](const DuelMethod& method) { return method.trains(); }) * options.seeds;
  int64_t number = 0;
  for (size_t seed = 0; seed < static_cast<size_t>(options.seeds); ++seed)
    for (const DuelMethod& method : methods) {
      if (!method.trains()) continue;
      const RunConfig& config = method.runs[seed];
      const RunRow* run = stored.find(config);
      const std::string place = "[" + std::to_string(++number) + "/" + std::to_string(count) + "] " + config.name;
      if (run && is_over(*run)) {
        note(context, place + ": " + run->status + " already, run " + run->id);
        continue;
      }
      note(context, place + (run ? ": continues run " + run->id : ""));
      train_run(context, options, config, run);
      if (signal_code() != 0) return;
    }
}

// Runs fail here for want of memory alone; one that diverged is a result.
int exit_code(const std::vector<DuelRow>& rows) {
  if (signal_code() != 0) return signal_code();
  const bool failed = std::any_of(rows.begin(), rows.end(), [](const DuelRow& row) { return row.result.failed > 0; });
  return failed ? static_cast<int>(ErrorCode::memory) : 0;
}

std::string compare_command(const Context& context, const std::vector<DuelRow>& rows) {
  const std::vector<std::string> runs = runs_to_compare(rows, kMostCompared);
  if (runs.empty()) return "";
  std::string command = "comera-studio --compare ";
  for (const std::string& run : runs) command += (&run == runs.data() ? "" : ",") + run;
  return command + (context.store.empty() ? "" : " --store " + context.store);
}

// Whether there is anything to draw.
bool write_figure(const Context& context, const DuelOptions& options, const Duel& duel, const std::vector<DuelRow>& rows) {
  const bool by_loss = std::all_of(rows.begin(), rows.end(), [](const DuelRow& row) { return row.by_loss(); });
  std::vector<NamedParetoPoint> points;
  for (const DuelRow& row : rows)
    if (row.placed() && row.by_loss() == by_loss) points.push_back({row.method->title, row.point(), row.score().deviation});
  if (points.empty()) {
    note(context, "no figure: no run has finished with a validation score");
    return false;
  }
  choose_theme(ThemeKind::light);
  std::string about = duel.config.name + ", batch size " + thousands(static_cast<double>(duel.config.train.batch));
  if (duel.bytes > 0) about += ", at most " + mebibytes(static_cast<double>(duel.bytes)) + " each";
  if (duel.seeds > 1) about += ", " + std::to_string(duel.seeds) + " seeds: mean and standard deviation";
  const Drawing drawing = draw_figure(
      pareto_figure(points, by_loss, std::string("Validation ") + (by_loss ? "loss" : "accuracy") + " against peak training memory", about,
                    "peak training memory in MiB"));
  OutputFile file(options.output);
  file.stream() << (fs::path(options.output).extension() == ".svg" ? to_svg(drawing) : png_file(raster(drawing, 2 * drawing.unit)));
  file.finish();
  return true;
}

Json bytes_json(double value) { return std::isfinite(value) ? Json(static_cast<int64_t>(value)) : Json(nullptr); }
Json spread_json(const Spread& spread) {
  return {{"mean", number_json(spread.mean)}, {"deviation", number_json(spread.deviation)}, {"runs", spread.count}};
}

Json method_json(const Duel& duel, const DuelRow& row) {
  const DuelMethod& method = *row.method;
  Json runs = Json::array();
  for (const RunRow& run : row.result.runs)
    runs.push_back({{"run", run.id},
                    {"name", run.name},
                    {"seed", run.seed},
                    {"status", run.status},
                    {"step", run.summary.step},
                    {"val_accuracy", number_json(run.summary.val_accuracy)},
                    {"val_loss", number_json(run.summary.val_loss)},
                    {"time_s", run.active_s}});
  return {{"method", method.id},
          {"title", method.title},
          {"status", status_of(method, row.result)},
          {"reason", reason_of(method, row.result)},
          {"rank", method.rank ? Json(*method.rank) : Json(nullptr)},
          {"rank_setting", method.rank_path.empty() ? Json(nullptr) : Json(method.rank_path)},
          {"micro_batches", method.config.train.micro_batches},
          {"parameters", {{"all", method.parameters}, {"trainable", method.trainable}}},
          {"memory",
           {{"planned_peak_bytes", method.planned},
            {"measured_peak_bytes", bytes_json(row.result.peak_bytes)},
            {"exceeds_limit", exceeds(duel, row.result)}}},
          {"val_accuracy", spread_json(row.result.val_accuracy)},
          {"val_loss", spread_json(row.result.val_loss)},
          {"step_ms", {{"median", number_json(row.result.step_ms)}}},
          {"time_s", row.result.seconds},
          {"pareto", row.on_front},
          {"runs", runs}};
}

void print_rows(const Context& context, const Duel& duel, const std::vector<DuelRow>& rows) {
  const auto known = [](double value, const std::string& text) { return std::isfinite(value) ? text : "-"; };
  const auto value = [&](double number, int digits) { return known(number, significant(number, digits)); };
  const auto bytes = [&](double number) { return known(number > 0 ? number : NAN, mebibytes(number)); };
  std::vector<std::vector<std::string>> table;
  for (const DuelRow& row : rows) {
    const DuelMethod& method = *row.method;
    const DuelResult& result = row.result;
    const bool trains = method.trains();
    std::string status = status_of(method, result);
    if (status == "finished") status = row.on_front ? "Pareto front" : "";
    if (exceeds(duel, result)) status += std::string(status.empty() ? "" : ", ") + "more than planned after a cut of ranks";
    if (const std::string reason = reason_of(method, result); !reason.empty()) status = reason;
    table.push_back(
        {method.id, trains && method.rank ? thousands(static_cast<double>(*method.rank)) : "-",
         trains ? std::to_string(method.config.train.micro_batches) : "-", trains ? thousands(static_cast<double>(method.parameters)) : "-",
         trains ? bytes(static_cast<double>(method.planned)) : "-", bytes(result.peak_bytes), value(result.val_accuracy.mean, 4),
         value(result.val_accuracy.deviation, 2), value(result.val_loss.mean, 4),
         known(result.step_ms, significant(result.step_ms, 3) + " ms"), result.seconds > 0 ? duration(result.seconds) : "-", status});
  }
  print_table(context,
              {"method", "rank", "micro-batches", "parameters", "planned", "taken", "accuracy", "deviation", "loss", "step", "time", ""},
              table);
}

int run_duel(const Context& context, const DuelOptions& options) {
  check_output(options.output);
  const Duel duel = duel_of(options);
  const std::vector<DuelMethod> methods = plan(duel);
  const std::string data = open_run_data(duel.config).train->info().fingerprint;
  train_all(context, options, methods, data);
  const std::vector<DuelRow> rows = duel_rows(store_path(context), methods, data, folder_of(options));
  const bool drawn = !options.output.empty() && write_figure(context, options, duel, rows);
  const std::string compare = compare_command(context, rows);
  if (context.json) {
    Json all = Json::array();
    for (const DuelRow& row : rows) all.push_back(method_json(duel, row));
    print_json({{"config", options.config},
                {"memory_limit_bytes", duel.bytes > 0 ? Json(duel.bytes) : Json(nullptr)},
                {"batch", duel.config.train.batch},
                {"seed", duel.config.train.seed},
                {"seeds", duel.seeds},
                {"methods", all},
                {"figure", drawn ? Json(options.output) : Json(nullptr)},
                {"compare", compare}});
  } else {
    print_rows(context, duel, rows);
    if (drawn) note(context, "wrote " + options.output);
    if (!compare.empty()) note(context, "compare the runs in the window: " + compare);
  }
  if (signal_code() != 0) note(context, "stopped: the same command continues");
  return exit_code(rows);
}

}  // namespace

void add_duel(Verb& program, Context& context) {
  Verb verb = program.verb("duel", "train the same network under several methods, at equal memory if asked, and compare them");
  const auto options = std::make_shared<DuelOptions>();
  verb.option("config", options->config, "preset or file; - for stdin; hf:FOLDER for a folder of the transformers library").required();
  options->folder.add_to(verb, false);
  verb.option("--methods", options->methods, "methods to train, separated by commas, for example adamw,galore,comera (default: all)");
  verb.option(
      "--memory", options->memory,
      "planned peak that no method may exceed, for example 64MiB. The batch stays: the fewest micro-batches that fit are used, then the "
      "largest rank that fits with as many, up to the narrower side of the matrices; a rank below the configured one only where it "
      "fits with no number of micro-batches. Without this all methods have the same settings");
  verb.option("--seeds", options->seeds, "runs of each method, with seeds train.seed, train.seed + 1, ...").positive().shows_default();
  verb.option("--steps", options->steps, "steps to train").positive();
  verb.option("--seed", options->seed, "first seed").not_negative();
  verb.option("--device", options->device, "auto, cpu or cuda:N");
  verb.option("--set", options->sets, "path=value of a setting, for all methods").take_all();
  verb.option("--grace", options->grace, "seconds to write the last checkpoint after Ctrl-C or SIGTERM").not_negative().shows_default();
  verb.option("-o,--output", options->output, "draw validation accuracy, or loss, against peak memory into this .svg or .png file");
  verb.does([&context, options] { return run_duel(context, *options); });
}

}  // namespace comera::cli
