#include "core/store/trace.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/json.h"

namespace comera {
namespace {

// Rows of the picture, "threads" in the words of the format.
enum Row { steps_row = 1, phases_row, ops_row, events_row };
constexpr const char* kRows[] = {"", "steps", "phases, mean of the steps that were timed", "ops, longest first, mean of the same steps",
                                 "events"};

class TraceFile {
 public:
  TraceFile(std::ostream& out, const RunRow& run) : out_(out) {
    out_ << "{\"displayTimeUnit\":\"ms\",\"otherData\":" << text_of({{"run", run.id}, {"name", run.name}, {"device", run.device}})
         << ",\"traceEvents\":[";
    write({{"ph", "M"}, {"pid", 1}, {"name", "process_name"}, {"args", {{"name", run.name}}}});
    for (const Row row : {steps_row, phases_row, ops_row, events_row})
      write({{"ph", "M"}, {"pid", 1}, {"tid", row}, {"name", "thread_name"}, {"args", {{"name", kRows[row]}}}});
  }
  void complete(Row row, const std::string& name, double at, double takes, Json args) {
    write({{"ph", "X"}, {"pid", 1}, {"tid", row}, {"name", name}, {"ts", rounded(at)}, {"dur", rounded(takes)}, {"args", std::move(args)}});
  }
  void instant(const std::string& name, double at, Json args) {
    write({{"ph", "i"}, {"s", "p"}, {"pid", 1}, {"tid", events_row}, {"name", name}, {"ts", rounded(at)}, {"args", std::move(args)}});
  }
  void end() {
    out_ << "\n]}\n";
    out_.flush();
    if (!out_)
      throw Error(ErrorCode::storage, "cannot write the trace", "the disk is full, or the reader has gone", "free some disk space");
  }

 private:
  static std::string text_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }
  static double rounded(double us) { return std::round(us * 1000) / 1000; }
  void write(const Json& event) {
    out_ << (first_ ? "\n" : ",\n") << text_of(event);
    first_ = false;
  }
  std::ostream& out_;
  bool first_ = true;
};

// Of the event's body, one after another from `at` on.
void profile(TraceFile& file, const Json& body, int64_t step, double at) {
  const int64_t count = body.value("steps", int64_t{0});
  double next = at;
  for (const Json& phase : body.value("phases", Json::array())) {
    const double takes = phase.value("mean", 0.0) * 1000;
    file.complete(
        phases_row, phase.value("name", ""), next, takes,
        {{"step", step}, {"mean_of_steps", count}, {"median_ms", phase.value("median", 0.0)}, {"p95_ms", phase.value("p95", 0.0)}});
    next += takes;
  }
  next = at;
  for (const Json& op : body.value("ops", Json::array())) {
    const double takes = op.value("ms", 0.0) * 1000;
    file.complete(ops_row, op.value("op", ""), next, takes,
                  {{"step", step},
                   {"mean_of_steps", count},
                   {"calls", op.value("calls", 0.0)},
                   {"gflop", op.value("gflop", 0.0)},
                   {"gbyte", op.value("gbyte", 0.0)}});
    next += takes;
  }
}

}  // namespace

void export_trace(const RunReader& reader, const std::string& id, std::ostream& out) {
  const RunRow run = reader.run(id);
  const std::vector<EventRow> events = reader.events(id);
  std::map<int64_t, Json> profiles;  // by their last step
  for (const EventRow& event : events)
    if (Json body = event.kind == "profile" ? try_parse_json(event.body) : Json(); body.is_object()) profiles[event.step] = std::move(body);
  TraceFile file(out, run);
  double end = 0;  // of the step before
  const auto add = [&](int64_t step, double wall_time, double ms, const Json& args) {
    if (!std::isfinite(wall_time) || !std::isfinite(ms) || ms < 0) return;
    // A step is stored with the time of its end, by a clock that may be set back.
    const double at = std::max(end, (wall_time - run.created) * 1e6 - ms * 1000);
    file.complete(steps_row, "step", at, ms * 1000, args);
    end = at + ms * 1000;
    if (const auto found = profiles.find(step); found != profiles.end()) try {
        profile(file, found->second, step, at);
      } catch (const nlohmann::json::exception&) {  // of another version: left out
      }
  };
  int64_t at = -1;
  double time = NAN, ms = NAN;
  Json args;
  reader.each_metric(id, [&](int64_t step, double wall_time, const std::string& name, double value) {
    if (step != at) {
      add(at, time, ms, args);
      at = step;
      ms = NAN;
      args = {{"step", step}};
    }
    time = wall_time;
    if (name == "step_ms") ms = value;
    if (name == "train_loss" && std::isfinite(value)) args["loss"] = value;
  });
  add(at, time, ms, args);
  for (const EventRow& event : events) file.instant(event.kind, std::max(0.0, (event.time - run.created) * 1e6), {{"step", event.step}});
  file.end();
}

}  // namespace comera
