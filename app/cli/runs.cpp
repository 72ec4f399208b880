// comera runs | get | ranks | query: reads and edits the store.
#include <algorithm>
#include <cmath>
#include <ctime>
#include <iostream>
#include <memory>

#include "app/cli/cli.h"
#include "core/config/renamed_settings.h"
#include "core/session/replay.h"
#include "core/session/stored_run.h"
#include "core/store/run_admin.h"
#include "core/store/run_reader.h"
#include "core/store/salvage.h"
#include "core/store/schema.h"
#include "core/train/rank_setting.h"

namespace comera::cli {
namespace {

std::string text(double value, int digits = 4) { return std::isnan(value) ? "-" : significant(value, digits); }

Json run_json(const RunRow& run) {
  const RunSummary& s = run.summary;
  return {{"run", run.id},
          {"name", run.name},
          {"status", run.status},
          {"message", run.message},
          {"created", run.created},
          {"stage", s.stage},
          {"step", s.step},
          {"total_steps", s.total_steps},
          {"train_loss", number_json(s.train_loss)},
          {"val_loss", number_json(s.val_loss)},
          {"val_accuracy", number_json(s.val_accuracy)},
          {"entries", number_json(s.entries)},
          {"bytes", number_json(s.bytes)},
          {"compression", number_json(s.compression)},
          {"peak_bytes", number_json(s.peak_bytes)},
          {"step_ms", number_json(s.step_ms)},
          {"device", run.device},
          {"seed", run.seed},
          {"parent", run.parent.empty() ? Json(nullptr) : Json(run.parent)},
          {"fork_step", run.fork_step},
          {"tags", all_tags(run)},
          {"archived", run.archived}};
}

std::string age(double created) {
  const double seconds = static_cast<double>(std::time(nullptr)) - created;
  if (seconds < 90) return "now";
  if (seconds < 5400) return std::to_string(std::lround(seconds / 60)) + " min ago";
  if (seconds < 129600) return std::to_string(std::lround(seconds / 3600)) + " h ago";
  return std::to_string(std::lround(seconds / 86400)) + " d ago";
}

int list(const Context& context, bool all) {
  const RunReader reader(store_to_read(context));
  const std::vector<RunRow> runs = reader.runs(all);
  if (context.json) {
    Json rows = Json::array();
    for (const RunRow& run : runs) rows.push_back(run_json(run));
    print_json({{"runs", rows}});
    return 0;
  }
  std::vector<std::vector<std::string>> rows;
  for (const RunRow& run : runs) {
    const RunSummary& s = run.summary;
    rows.push_back({run.id, run.name, run.status, s.stage,
                    thousands(static_cast<double>(s.step)) + "/" + thousands(static_cast<double>(s.total_steps)), text(s.train_loss),
                    text(s.val_accuracy), std::isnan(s.entries) ? "-" : thousands(s.entries), text(s.compression, 3),
                    std::isnan(s.peak_bytes) ? "-" : mebibytes(s.peak_bytes), age(run.created)});
  }
  print_table(context, {"run", "name", "status", "stage", "step", "loss", "accuracy", "entries", "x smaller", "peak", "when"}, rows);
  return 0;
}

int show(const Context& context, const std::string& id) {
  const RunReader reader(store_to_read(context));
  const RunRow run = reader.find(id);
  Json document = run_json(run);
  document["config"] = with_current_names(parse_json(reader.config(run.id), "the stored config"), "run " + run.id);
  Json events = Json::array();
  for (const EventRow& event : reader.events(run.id))
    events.push_back({{"step", event.step}, {"kind", event.kind}, {"time", event.time}, {"body", parse_json(event.body, "event")}});
  document["events"] = events;
  Json checkpoints = Json::array();
  for (const CheckpointRow& row : reader.checkpoints(run.id))
    checkpoints.push_back({{"step", row.step}, {"path", row.path}, {"bytes", row.bytes}, {"kind", row.kind}});
  document["checkpoints"] = checkpoints;
  // Memory by purpose at the end; for a run that failed because memory ran out, the memory it would have needed.
  Json memory = Json::object();
  for (const MemoryRow& row : reader.memory(run.id)) memory[row.purpose] = row.bytes;
  document["memory"] = memory;
  if (context.json) {
    print_json(document);
    return 0;
  }
  std::vector<std::vector<std::string>> rows;
  for (const auto& item : document.items())
    if (item.key() != "config" && item.key() != "events" && item.key() != "checkpoints")
      rows.push_back({item.key(), item.value().is_string() ? item.value().get<std::string>() : item.value().dump()});
  for (const auto& event : events)
    rows.push_back({"event", "step " + event["step"].dump() + "  " + event["kind"].get<std::string>() + "  " + event["body"].dump()});
  for (const auto& row : checkpoints) rows.push_back({"checkpoint", "step " + row["step"].dump() + "  " + row["path"].get<std::string>()});
  print_table(context, {"field", "value"}, rows);
  return 0;
}

int diff(const Context& context, const std::string& a, const std::string& b, bool only_different) {
  const RunReader reader(store_to_read(context));
  const auto config = [&](const std::string& run) {
    const std::string id = reader.find(run).id;
    return with_current_names(parse_json(reader.config(id), "the stored config"), "run " + id).dump();
  };
  const std::vector<ConfigDifference> rows = diff_configs(config(a), config(b), only_different);
  if (context.json) {
    Json out = Json::array();
    for (const ConfigDifference& row : rows) out.push_back({{"path", row.path}, {"a", row.a}, {"b", row.b}, {"same", row.same}});
    print_json({{"differences", out}});
    return 0;
  }
  std::vector<std::vector<std::string>> table;
  for (const ConfigDifference& row : rows) table.push_back({row.path, row.a, row.b});
  print_table(context, {"setting", a, b}, table);
  return 0;
}

int get(const Context& context, const std::string& id, const std::string& metric, int64_t step, int64_t around, int64_t window) {
  const RunReader reader(store_to_read(context));
  const RunRow run = reader.find(id);
  const std::vector<std::string> names = reader.metric_names(run.id);
  if (metric.empty()) {
    if (context.json)
      print_json({{"run", run.id}, {"metrics", names}});
    else
      for (const std::string& name : names) std::cout << name << "\n";
    return 0;
  }
  if (std::find(names.begin(), names.end(), metric) == names.end()) {
    const std::string near = nearest_name(metric, names);
    throw Error(ErrorCode::not_found, "run " + run.id + " has no metric '" + metric + "'", "",
                near.empty() ? "comera get " + run.id + " lists them" : "did you mean '" + near + "'?");
  }
  std::vector<MetricPoint> points;
  if (step >= 0)
    points = reader.metric_around(run.id, metric, step, 0);
  else if (around >= 0)
    points = reader.metric_around(run.id, metric, around, window);
  else
    points = reader.metric_around(run.id, metric, 0, INT64_MAX / 4);
  if (context.json) {
    Json steps = Json::array(), values = Json::array();
    for (const MetricPoint& point : points) {
      steps.push_back(point.step);
      values.push_back(std::isfinite(point.value) ? Json(point.value)
                                                  : Json(std::isnan(point.value) ? "nan"
                                                         : point.value > 0       ? "inf"
                                                                                 : "-inf"));
    }
    print_json({{"run", run.id}, {"metric", metric}, {"steps", steps}, {"values", values}});
    return 0;
  }
  std::vector<std::vector<std::string>> rows;
  for (const MetricPoint& point : points) {
    char value[32];  // no thousands separators: programs read it too
    std::snprintf(value, sizeof value, "%.9g", point.value);
    rows.push_back({std::to_string(point.step), value});
  }
  print_table(context, {"step", metric}, rows);
  return 0;
}

// Ranks of LoRA factors or gradient projections under the settings in force at a step; empty for methods that have neither.
std::vector<LayerRank> ranks_of_matrices(const std::string& store, const std::string& id, int64_t step) {
  const Replay replay(store, id);
  RunConfig config = replay.config();
  RankOverrides overrides;
  for (const EventRow& event : replay.events())
    if (const auto change = change_of(event.step, event.kind, event.body); change && change->step <= step && !change->of_stage()) try {
        apply_edit(config, overrides, change->path, change->value);
      } catch (const Error&) {  // an older version accepted a value that is refused now
      }
  const std::shared_ptr<const Snapshot> state = replay.latest();
  std::vector<LayerRank> rows;
  for (const RankedMatrix& matrix : state->ranked) rows.push_back({matrix.name, 1, rank_of_matrix(config, matrix.rows, matrix.columns)});
  return rows;
}

int ranks(const Context& context, const std::string& id, int64_t step) {
  const std::string store = store_to_read(context);
  const RunReader reader(store);
  const RunRow run = reader.find(id);
  const int64_t at = step >= 0 ? step : INT64_MAX / 4;
  std::vector<LayerRank> rows = reader.ranks_at(run.id, at);
  const bool of_bonds = !rows.empty();
  if (!of_bonds) rows = ranks_of_matrices(store, run.id, at);
  if (context.json) {
    Json layers = Json::object();
    for (const LayerRank& row : rows) layers[row.layer].push_back(row.rank);
    print_json({{"run", run.id}, {"step", step >= 0 ? step : run.summary.step}, {"ranks", layers}});
    return 0;
  }
  std::vector<std::vector<std::string>> table;
  for (const LayerRank& row : rows) {
    if (table.empty() || table.back()[0] != row.layer) table.push_back({row.layer, ""});
    table.back()[1] += (table.back()[1].empty() ? "" : " ") + std::to_string(row.rank);
  }
  print_table(context, {of_bonds ? "layer" : "matrix", of_bonds ? "live rank of each bond" : "rank"}, table);
  return 0;
}

int salvage(const Context& context, const std::string& damaged, const std::string& copy) {
  const Salvaged saved = salvage_store(damaged, copy);
  if (context.json) {
    print_json({{"store", damaged}, {"copy", saved.path}, {"runs", saved.runs}, {"rows", saved.rows}, {"gaps", saved.gaps}});
    return 0;
  }
  for (const std::string& gap : saved.gaps) note(context, gap);
  note(context, std::to_string(saved.runs) + (saved.runs == 1 ? " run" : " runs") + " with " + thousands(static_cast<double>(saved.rows)) +
                    " rows were recovered" + (saved.gaps.empty() ? "; there is no gap" : ""));
  std::cout << saved.path << "\n";
  return 0;
}

int query(const Context& context, const std::string& sql) {
  const std::string store = store_to_read(context);
  if (why_newer(store).empty()) RunReader{store};  // upgrades an older schema; a newer one is queried unchanged
  const QueryTable table = query_store(store, sql);
  if (context.json) {
    print_json({{"columns", table.columns}, {"rows", parse_json(query_to_json(table), "query")}});
    return 0;
  }
  std::vector<std::vector<std::string>> rows;
  for (const auto& row : table.rows) {
    rows.emplace_back();
    for (const QueryTable::Value& cell : row) rows.back().push_back(cell.text);
  }
  print_table(context, table.columns, rows);
  return 0;
}

}  // namespace

void add_runs(Verb& program, Context& context) {
  struct Options {
    std::string run, other, name, tag, metric, sql, confirm, copy;
    bool all = false, only_different = true, remove = false;
    int64_t step = -1, around = -1, window = 10;
  };
  const auto o = std::make_shared<Options>();
  Verb runs = program.verb("runs", "list, show, diff, rename, tag, archive, restore, purge or salvage stored runs");
  runs.needs_verb();

  Verb list_verb = runs.verb("list", "list all runs, newest first");
  list_verb.flag("--all", o->all, "include archived runs");
  list_verb.does([&context, o] { return list(context, o->all); });

  Verb show_verb = runs.verb("show", "show everything about one run");
  show_verb.option("run", o->run, "run id, its beginning, or name").required();
  show_verb.does([&context, o] { return show(context, o->run); });

  Verb diff_verb = runs.verb("diff", "compare the configs of two runs");
  diff_verb.option("a", o->run, "run id, its beginning, or name").required();
  diff_verb.option("b", o->other, "another run").required();
  diff_verb.flag("--only-different,!--all", o->only_different, "only settings that differ (the default)");
  diff_verb.does([&context, o] { return diff(context, o->run, o->other, o->only_different); });

  const auto changed = [&context, o](const std::function<void(RunAdmin&, const RunRow&)>& change, const char* what) {
    const RunRow run = RunReader(store_path(context)).find(o->run);
    RunAdmin admin(store_path(context));
    change(admin, run);
    if (context.json)
      print_json({{"run", run.id}, {"done", what}});
    else
      note(context, std::string(what) + " " + run.id + " (" + run.name + ")");
    return 0;
  };
  Verb rename_verb = runs.verb("rename", "rename a run");
  rename_verb.option("run", o->run, "run id, its beginning, or name").required();
  rename_verb.option("name", o->name, "new name").required();
  rename_verb.does([changed, o] { return changed([o](RunAdmin& admin, const RunRow& run) { admin.rename(run.id, o->name); }, "renamed"); });

  Verb tag_verb = runs.verb("tag", "add a tag, or remove it with --remove");
  tag_verb.option("run", o->run, "run id, its beginning, or name").required();
  tag_verb.option("tag", o->tag, "tag").required();
  tag_verb.flag("--remove", o->remove, "remove the tag");
  tag_verb.does([changed, o] {
    return changed(
        [o](RunAdmin& admin, const RunRow& run) {
          if (!o->remove) return admin.add_tag(run.id, o->tag);
          if (std::ranges::find(run.tags, o->tag) == run.tags.end())
            throw Error(ErrorCode::not_found, "run " + run.id + " has no tag '" + o->tag + "'",
                        "its tags are " + Json(run.tags).dump(-1, ' ', false, Json::error_handler_t::replace), "name one of these");
          admin.remove_tag(run.id, o->tag);
        },
        o->remove ? "untagged" : "tagged");
  });

  Verb archive_verb = runs.verb("archive", "hide a run from the list; nothing is deleted");
  archive_verb.option("run", o->run, "run id, its beginning, or name").required();
  archive_verb.does([changed] { return changed([](RunAdmin& admin, const RunRow& run) { admin.archive(run.id); }, "archived"); });
  Verb restore_verb = runs.verb("restore", "show an archived run again");
  restore_verb.option("run", o->run, "run id, its beginning, or name").required();
  restore_verb.does([changed] { return changed([](RunAdmin& admin, const RunRow& run) { admin.restore(run.id); }, "restored"); });

  Verb purge_verb = runs.verb("purge", "delete a run and its checkpoints permanently");
  purge_verb.option("run", o->run, "run id, its beginning, or name").required();
  purge_verb.option("--confirm", o->confirm, "the name of the run, as a safeguard").required();
  purge_verb.does([&context, changed, o] {
    std::vector<std::string> left;
    const int code = changed([&](RunAdmin& admin, const RunRow& run) { left = admin.purge(run.id, o->confirm).left; }, "purged");
    for (const std::string& file : left) note(context, "not removed: " + file);
    return code;
  });

  Verb salvage_verb = runs.verb("salvage", "copy the readable rows of a damaged database into a new one");
  salvage_verb.option("database", o->run, "damaged database; it is not changed").required();
  salvage_verb.option("-o,--output", o->copy, "new database (default: STORE.salvaged.db)");
  salvage_verb.does([&context, o] { return salvage(context, o->run, o->copy); });

  Verb get_verb = program.verb("get", "print the values of a metric; without --metric the names of all metrics");
  get_verb.option("run", o->run, "run id, its beginning, or name").required();
  get_verb.option("--metric", o->metric, "name of the metric");
  get_verb.option("--step", o->step, "only this step").not_negative();
  get_verb.option("--around", o->around, "only this step and its neighbours");
  get_verb.option("--window", o->window, "neighbours before and after --around, in steps").shows_default();
  get_verb.does([&context, o] { return get(context, o->run, o->metric, o->step, o->around, o->window); });

  Verb ranks_verb = program.verb("ranks", "print the ranks of every bond, LoRA factor or gradient projection, at the end or at a step");
  ranks_verb.option("run", o->run, "run id, its beginning, or name").required();
  ranks_verb.option("--step", o->step, "at this step (default: the last)").not_negative();
  ranks_verb.does([&context, o] { return ranks(context, o->run, o->step); });

  Verb query_verb = program.verb("query", "run a SELECT on the database; read-only");
  query_verb.option("sql", o->sql, "for example \"SELECT name, val_accuracy FROM runs\"").required();
  query_verb.does([&context, o] { return query(context, o->sql); });
}

}  // namespace comera::cli
