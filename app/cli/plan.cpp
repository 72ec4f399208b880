// comera plan CONFIG: sizes, compression, memory by purpose and work of a step, from a dry run; nothing is allocated. With --all-methods
// the memory of every method.
#include <algorithm>
#include <memory>

#include "app/cli/folder.h"
#include "app/plan_rows.h"
#include "core/comm/planned_processes.h"
#include "core/session/with_others.h"
#include "core/train/method_plans.h"

namespace comera::cli {
namespace {

Json peak_json(const MemoryByPurpose& memory) {
  Json json = {{"peak_bytes", memory.total()}};
  for (int i = 0; i < kPurposes; ++i) json["by_purpose"][name_of(static_cast<Purpose>(i))] = memory.bytes[static_cast<size_t>(i)];
  return json;
}

// Of data parallel training.
struct Network {
  std::unique_ptr<PlannedProcesses> processes;  // null: one process
  double link_gbs = 0;                          // 10^9 bytes that a process sends in a second; 0 = not given

  double ms(int64_t bytes) const { return static_cast<double>(bytes) / (link_gbs * 1e6); }
};

Json network_json(const Network& network, const Forecast& forecast) {
  Json json = {{"processes", network.processes->processes()}, {"sent_bytes", forecast.sent_bytes}};
  if (network.link_gbs > 0) json.update({{"link_gbs", network.link_gbs}, {"ms", network.ms(forecast.sent_bytes)}});
  return json;
}

void print_plan_json(const std::string& name, const Forecast& forecast, const std::optional<FolderRun>& folder, const Network& network) {
  Json layers = Json::array();
  for (const ForecastLayer& layer : forecast.layers)
    layers.push_back({{"name", layer.name},
                      {"in_modes", layer.in_modes},
                      {"out_modes", layer.out_modes},
                      {"ranks", layer.ranks},
                      {"entries", layer.entries},
                      {"dense_entries", layer.dense_entries}});
  Json document = {{"config", name},
                   {"parameters",
                    {{"all", forecast.parameters},
                     {"trainable", forecast.trainable},
                     {"tensorised", forecast.tensorised},
                     {"rank_values", forecast.rank_values},
                     {"dense_equivalent", forecast.dense_equivalent},
                     {"tensorised_dense_equivalent", forecast.tensorised_dense}}},
                   {"compression", {{"model", forecast.model_compression()}, {"tensorised", forecast.tensorised_compression()}}},
                   {"memory", peak_json(forecast.memory)},
                   {"flops", {{"step", forecast.work.gemm_flops}}},
                   {"traffic", {{"step_bytes", forecast.work.other_bytes}}},
                   {"layers", layers}};
  if (network.processes) document["network"] = network_json(network, forecast);
  if (folder) document["weights"] = weights_json(*folder->start.weights);
  print_json(document);
}

int plan(const Context& context, const std::string& name, RunConfig config, const std::optional<FolderRun>& folder,
         const Network& network) {
  if (network.processes) share_batches(config, *network.processes);
  const Forecast forecast = make_forecast(config, folder ? folder->start.weights->ranks : LiveRanks(), network.processes.get());
  if (context.json) {
    print_plan_json(name, forecast, folder, network);
    return 0;
  }
  if (folder) note_weights(context, *folder->start.weights);
  std::vector<std::vector<std::string>> rows;
  for (const PlanRow& row : plan_rows(forecast))
    rows.push_back({std::string(2 * static_cast<size_t>(row.level), ' ') + row.what, row.count, row.note});
  if (network.processes && network.link_gbs > 0)
    rows.push_back(
        {"  time to send them", significant(network.ms(forecast.sent_bytes)) + " ms", "at " + significant(network.link_gbs) + " GB/s"});
  print_table(context, {"quantity", "value", ""}, rows);
  return 0;
}

// A header and a row a method; the columns by purpose add up to the peak. `own`: the config's method, which is marked.
std::vector<std::vector<std::string>> method_rows(const std::vector<MethodPlan>& plans, const std::string& own) {
  using enum Purpose;
  const std::vector<std::pair<const char*, std::vector<Purpose>>> columns = {{"weights", {tt_core, dense_weight, rank_vector}},
                                                                             {"gradients", {gradient}},
                                                                             {"optimizer", {optimizer}},
                                                                             {"activations", {activation}},
                                                                             {"workspace", {workspace}},
                                                                             {"data", {data}}};
  std::vector<std::vector<std::string>> rows{{"method"}};
  for (const auto& [title, purposes] : columns) rows[0].emplace_back(title);
  for (const char* title : {"peak", "parameters", "trained", ""}) rows[0].emplace_back(title);
  for (const MethodPlan& plan : plans) {
    std::vector<std::string>& row = rows.emplace_back(1, plan.id);
    if (!plan.forecast) {
      row.resize(rows[0].size() - 1, "-");
      row.push_back("refused: " + plan.refused);
      continue;
    }
    for (const auto& [title, purposes] : columns) {
      int64_t bytes = 0;
      for (const Purpose purpose : purposes) bytes += plan.forecast->memory[purpose];
      row.push_back(mebibytes(static_cast<double>(bytes)));
    }
    row.push_back(mebibytes(static_cast<double>(plan.forecast->memory.total())));
    row.push_back(thousands(static_cast<double>(plan.forecast->parameters)));
    row.push_back(thousands(static_cast<double>(plan.forecast->trainable)));
    row.push_back(plan.id == own ? "this config" : "");
  }
  return rows;
}

Json methods_json(const std::vector<MethodPlan>& plans) {
  Json methods = Json::array();
  for (const MethodPlan& plan : plans) {
    Json method = {{"method", plan.id}, {"title", plan.title}};
    if (plan.forecast)
      method.update({{"memory", peak_json(plan.forecast->memory)},
                     {"parameters", plan.forecast->parameters},
                     {"trainable", plan.forecast->trainable},
                     {"flops", plan.forecast->work.gemm_flops}});
    else
      method["refused"] = plan.refused;
    methods.push_back(method);
  }
  return methods;
}

// The same run under every method, smallest peak first.
int plan_methods(const Context& context, const std::string& name, const RunConfig& config) {
  std::vector<MethodPlan> plans = method_plans(config);
  std::stable_sort(plans.begin(), plans.end(), takes_less);
  const std::string own = name_of_method(config.method);
  if (context.json) {
    print_json({{"config", name}, {"method", own}, {"methods", methods_json(plans)}});
    return 0;
  }
  std::vector<std::vector<std::string>> rows = method_rows(plans, own);
  const std::vector<std::string> header = rows.front();
  rows.erase(rows.begin());
  print_table(context, header, rows);
  return 0;
}

}  // namespace

void add_plan(Verb& program, Context& context) {
  Verb verb = program.verb("plan", "print sizes, compression and exact memory of a config; allocates nothing");
  struct Options {
    std::string name;
    std::vector<std::string> sets;
    bool all_methods = false;
    int processes = 1;
    double link_gbs = 0;
    FolderOptions folder;
  };
  auto options = std::make_shared<Options>();
  verb.option("config", options->name, "preset or file; - for stdin; hf:FOLDER for a folder of the transformers library").required();
  options->folder.add_to(verb);
  verb.settings(options->sets);
  verb.flag("--all-methods", options->all_methods, "memory under every method side by side, smallest peak first");
  verb.option("--processes", options->processes,
              "of one of so many processes that share each batch (mpirun): memory, gradients sent per step")
      .positive();
  verb.option("--link", options->link_gbs, "with --processes: GB/s that a process sends, for the time that gradients take").positive();
  verb.does([&context, options] {
    if (options->processes > 1 && options->all_methods)
      throw Error(ErrorCode::usage, "--processes goes with one method", "", "name it: --method NAME");
    if (options->processes == 1 && options->link_gbs > 0)
      throw Error(ErrorCode::usage, "--link needs --processes", "one process sends nothing", "add --processes N");
    Network network{nullptr, options->link_gbs};
    if (options->processes > 1) network.processes = std::make_unique<PlannedProcesses>(options->processes);
    std::vector<std::string> sets = options->sets;
    options->folder.add_to(sets);
    const std::optional<FolderRun> folder = folder_run(options->name, sets, options->folder);
    const RunConfig config = folder ? folder->config : load_config(options->name, sets);
    return options->all_methods ? plan_methods(context, options->name, config) : plan(context, options->name, config, folder, network);
  });
}

}  // namespace comera::cli
