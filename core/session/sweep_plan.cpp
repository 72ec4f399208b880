#include "core/session/sweep_plan.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/draw.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/rng.h"
#include "core/config/renamed_settings.h"

namespace comera {
namespace {

constexpr const char* kHelp = "comera help sweep shows an example";

// Reads one file; every error names it and the place in it.
class SweepReader {
 public:
  SweepReader(const Json& json, std::string source) : json_(json), source_(std::move(source)) {}

  Sweep read(const std::string& name) {
    if (!json_.is_object()) fail("a sweep must be a JSON object, is " + std::string(json_.type_name()));
    check_keys(json_, "", {"base", "set", "grid", "random", "seeds", "halving", "name"});
    Sweep sweep;
    sweep.name = json_.contains("name") ? text(json_["name"], "name") : name;
    check_name(sweep.name);
    if (!json_.contains("base")) fail("base is missing", "every point is a variation of it", "for example \"base\": \"demo\"");
    sweep.base = text(json_["base"], "base");
    if (sweep.base.empty() || sweep.base == "-") fail("base must name a preset or a config file");
    if (json_.contains("set"))
      for (const auto& [path, value] : object(json_["set"], "set").items())
        sweep.set.emplace_back(setting(path, value, "set"), value.dump());
    if (json_.contains("grid") && json_.contains("random")) fail("grid and random are both given", "a sweep has either", "leave one out");
    if (json_.contains("grid")) read_grid(sweep);
    if (json_.contains("random")) read_random(sweep);
    if (json_.contains("seeds")) read_seeds(sweep);
    if (json_.contains("halving")) read_halving(sweep);
    if (sweep.varied().empty() && sweep.seeds.empty())
      fail("nothing varies", "there is neither grid, random nor seeds", "for example \"grid\": {\"train.lr\": [1e-3, 3e-3]}");
    check_together(sweep);
    return sweep;
  }

 private:
  [[noreturn]] void fail(const std::string& text, const std::string& why = "", const std::string& hint = kHelp) const {
    throw Error(ErrorCode::config, source_ + ": " + text, why, hint);
  }

  void check_keys(const Json& json, const std::string& place, const std::vector<std::string>& known) const {
    for (const auto& item : json.items()) {
      if (std::find(known.begin(), known.end(), item.key()) != known.end()) continue;
      const std::string near = nearest_name(item.key(), known);
      std::string all;
      for (const std::string& key : known) all += (all.empty() ? "" : ", ") + key;
      fail("'" + place + item.key() + "' is not a key of a sweep", near.empty() ? "known here: " + all : "",
           near.empty() ? kHelp : "did you mean '" + place + near + "'?");
    }
  }

  void check_name(const std::string& name) const {
    const bool plain =
        std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_' || c == '.'; });
    if (name.empty() || !plain)
      fail("name must be of letters, digits, '-', '_' and '.', is " + Json(name).dump(), "it becomes a tag and part of file names");
  }

  std::string text(const Json& json, const std::string& place) const {
    if (!json.is_string()) fail(place + " must be a text, is " + json.dump());
    return json.get<std::string>();
  }
  const Json& object(const Json& json, const std::string& place) const {
    if (!json.is_object()) fail(place + " must be an object, is " + json.dump());
    return json;
  }
  const Json& list(const Json& json, const std::string& place) const {
    if (!json.is_array() || json.empty()) fail(place + " must be a list with at least one value, is " + json.dump());
    return json;
  }
  int64_t whole(const Json& json, const std::string& place, int64_t low) const {
    const bool is_whole = json.is_number_integer() || (json.is_number_float() && std::floor(json.get<double>()) == json.get<double>());
    if (!is_whole || std::fabs(json.get<double>()) > 9e15 || json.get<int64_t>() < low)
      fail(place + " must be a whole number of at least " + std::to_string(low) + ", is " + json.dump());
    return json.get<int64_t>();
  }
  double number(const Json& json, const std::string& place) const {
    if (!json.is_number() || !std::isfinite(json.get<double>())) fail(place + " must be a number, is " + json.dump());
    return json.get<double>();
  }

  // Type of a setting; "" = the method by name.
  std::string type_of(const std::string& path, const std::string& place) const {
    if (path == "method") return "";
    if (const FieldEntry* found = find_setting(path); found && path != "name") return found->type;
    if (path == "name") fail(place + ": name cannot vary", "each run is named by its values", "leave it out");
    std::vector<std::string> known;
    for (const FieldEntry& entry : all_settings()) known.push_back(entry.path);
    const std::string near = nearest_name(path, known);
    fail(place + ": " + path + " is not a known setting", "",
         near.empty() ? "comera config show lists the settings" : "did you mean '" + near + "'?");
  }
  // The path of today, for a value of its type.
  std::string setting(const std::string& given, const Json& value, const std::string& place) const {
    const std::string path = current_path(given), type = type_of(path, place);
    const auto wants = [&](bool right, const char* what) {
      if (!right)
        fail(place + ": " + path + " must be " + what + ", is " + value.dump(), "", "comera config explain " + path + " shows its values");
    };
    if (type == "int") wants(value.is_number() && std::floor(value.get<double>()) == value.get<double>(), "a whole number");
    if (type == "number") wants(value.is_number(), "a number");
    if (type == "bool") wants(value.is_boolean(), "true or false");
    if (type == "text" || type.empty()) wants(value.is_string(), "a text");
    if (type == "int list")
      wants(value.is_array() && std::all_of(value.begin(), value.end(), [](const Json& item) { return item.is_number_integer(); }),
            "a list of whole numbers");
    return path;
  }

  std::vector<std::string> values(const std::string& path, const Json& given, const std::string& place) const {
    std::vector<std::string> out;
    for (const Json& value : list(given, place + ": " + path)) {
      setting(path, value, place);
      out.push_back(value.dump());
      if (std::count(out.begin(), out.end(), out.back()) > 1)
        fail(place + ": " + path + " has " + value.dump() + " twice", "its runs would be the same", "name each value once");
    }
    return out;
  }

  void read_grid(Sweep& sweep) const {
    const Json& grid = object(json_["grid"], "grid");
    if (grid.empty()) fail("grid is empty");
    for (const auto& [given, value] : grid.items()) {
      type_of(current_path(given), "grid");
      sweep.grid.emplace_back(current_path(given), values(current_path(given), value, "grid"));
    }
    double points = 1;
    for (const auto& [path, of_path] : sweep.grid) points *= static_cast<double>(of_path.size());
    if (points > kMost) fail("the grid has more than " + std::to_string(kMost) + " points", "", "use random, or fewer values");
  }

  void read_random(Sweep& sweep) const {
    const Json& random = object(json_["random"], "random");
    check_keys(random, "random.", {"runs", "seed", "ranges"});
    for (const char* key : {"runs", "ranges"})
      if (!random.contains(key)) fail(std::string("random.") + key + " is missing");
    sweep.random.emplace();
    sweep.random->runs = whole(random["runs"], "random.runs", 1);
    if (sweep.random->runs > kMost) fail("random.runs must be at most " + std::to_string(kMost) + ", is " + random["runs"].dump());
    if (random.contains("seed")) sweep.random->seed = whole(random["seed"], "random.seed", 0);
    const Json& ranges = object(random["ranges"], "random.ranges");
    if (ranges.empty()) fail("random.ranges is empty");
    for (const auto& [given, range] : ranges.items()) sweep.random->ranges.push_back(read_range(current_path(given), range));
  }

  SweepRange read_range(const std::string& path, const Json& json) const {
    const std::string place = "random.ranges", type = type_of(path, place);
    SweepRange range{.path = path};
    if (json.is_array()) {
      range.kind = SweepRange::Kind::choices;
      range.choices = values(path, json, place);
      return range;
    }
    if (!json.is_object() || json.size() != 1)
      fail(place + ": " + path + " must be {\"uniform\": [low, high]}, {\"log\": [low, high]} or a list of values, is " + json.dump());
    check_keys(json, place + "." + path + ".", {"uniform", "log"});
    const std::string kind = json.begin().key();
    const Json& ends = json.begin().value();
    range.kind = kind == "log" ? SweepRange::Kind::log : SweepRange::Kind::uniform;
    range.whole = type == "int";
    if (type != "int" && type != "number") fail(place + ": " + path + " cannot be " + kind, "it is not a number", "give a list of values");
    if (!ends.is_array() || ends.size() != 2) fail(place + ": " + path + " needs [low, high], has " + ends.dump());
    range.low = number(ends[0], place + ": " + path);
    range.high = number(ends[1], place + ": " + path);
    if (range.low >= range.high) fail(place + ": " + path + " must rise, is " + ends.dump());
    if (kind == "log" && range.low <= 0) fail(place + ": " + path + " must be above 0, is " + ends.dump(), "0 has no logarithm");
    if (range.whole && (std::floor(range.low) != range.low || std::floor(range.high) != range.high))
      fail(place + ": " + path + " needs whole numbers, has " + ends.dump());
    return range;
  }

  void read_seeds(Sweep& sweep) const {
    for (const Json& seed : list(json_["seeds"], "seeds")) {
      const int64_t value = whole(seed, "seeds", 0);
      if (std::find(sweep.seeds.begin(), sweep.seeds.end(), value) != sweep.seeds.end())
        fail("seeds has " + std::to_string(value) + " twice", "its runs would be the same", "name each seed once");
      sweep.seeds.push_back(value);
    }
  }

  void read_halving(Sweep& sweep) const {
    const Json& json = object(json_["halving"], "halving");
    check_keys(json, "halving.", {"metric", "rungs", "keep"});
    for (const char* key : {"metric", "rungs"})
      if (!json.contains(key)) fail(std::string("halving.") + key + " is missing");
    Halving halving{.metric = text(json["metric"], "halving.metric"), .rungs = {}};
    std::vector<std::string> known;
    for (const MetricInfo& metric : all_metrics())
      if (metric.better != Better::none) known.emplace_back(metric.name);
    if (std::find(known.begin(), known.end(), halving.metric) == known.end()) {
      const std::string near = nearest_name(halving.metric, known);
      fail("halving.metric cannot be '" + halving.metric + "'",
           find_metric(halving.metric) ? "neither high nor low values of it are better" : "there is no such metric",
           near.empty() ? "use val_accuracy or val_loss" : "did you mean '" + near + "'?");
    }
    for (const Json& rung : list(json["rungs"], "halving.rungs")) {
      halving.rungs.push_back(whole(rung, "halving.rungs", 1));
      if (halving.rungs.size() > 1 && halving.rungs.back() <= halving.rungs[halving.rungs.size() - 2])
        fail("halving.rungs must rise, is " + json["rungs"].dump());
    }
    if (halving.rungs.size() < 2) fail("halving.rungs needs at least two numbers of steps, has " + json["rungs"].dump());
    if (json.contains("keep")) halving.keep = number(json["keep"], "halving.keep");
    if (!(halving.keep > 0 && halving.keep < 1)) fail("halving.keep must be above 0 and below 1, is " + json["keep"].dump());
    sweep.halving = std::move(halving);
  }

  void check_together(const Sweep& sweep) const {
    std::set<std::string> seen;
    std::vector<std::string> paths = sweep.varied();
    for (const auto& [path, value] : sweep.set) paths.push_back(path);
    for (const std::string& path : paths) {
      if (!seen.insert(path).second) fail(path + " is given twice", "", "name each setting once");
      if (path == "train.seed" && !sweep.seeds.empty()) fail("train.seed is given twice", "seeds gives it", "leave one out");
      if ((path == "train.steps" || path == "train.epochs") && sweep.halving)
        fail(path + " cannot be given with halving", "halving.rungs gives the steps", "leave it out");
    }
  }

  static constexpr int64_t kMost = 100'000;  // points
  const Json& json_;
  std::string source_;
};

// In [0, 1), of 53 bits.
double uniform_of(const Philox& random, uint64_t index) {
  const uint64_t high = random.word(2 * index) >> 5, low = random.word(2 * index + 1) >> 6;
  return static_cast<double>((high << 26) | low) / 9007199254740992.0;
}

// Logarithms differ in their last bits from one C library to the next; six digits do not.
double rounded(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return std::strtod(text, nullptr);
}

std::string draw(const SweepRange& range, uint64_t seed, uint64_t index) {
  const double u = uniform_of({.seed = seed, .step = 0, .site = site_of(range.path)}, index);
  if (range.kind == SweepRange::Kind::choices)
    return range.choices[std::min(range.choices.size() - 1, static_cast<size_t>(u * static_cast<double>(range.choices.size())))];
  const bool log = range.kind == SweepRange::Kind::log;
  const auto between = [u, log](double low, double high) {
    return log ? std::exp(std::log(low) + u * (std::log(high) - std::log(low))) : low + u * (high - low);
  };
  if (!range.whole) return Json(std::clamp(rounded(between(range.low, range.high)), range.low, range.high)).dump();
  // Each whole number has the interval up to the next one.
  return Json(static_cast<int64_t>(std::clamp(std::floor(between(range.low, range.high + 1)), range.low, range.high))).dump();
}

std::string set_text(const std::string& path, const std::string& value) {
  const Json json = parse_valid_json(value);
  return path + "=" + (path == "method" ? json.get<std::string>() : value);
}

std::string unquoted(const std::string& value) {
  const Json json = parse_valid_json(value);
  return json.is_string() ? json.get<std::string>() : value;
}

}  // namespace

std::vector<std::string> Sweep::varied() const {
  std::vector<std::string> paths;
  for (const auto& [path, values] : grid) paths.push_back(path);
  if (random)
    for (const SweepRange& range : random->ranges) paths.push_back(range.path);
  return paths;
}

Sweep read_sweep(const Json& json, const std::string& source, const std::string& name) { return SweepReader(json, source).read(name); }

std::vector<SweepSettings> points_of(const Sweep& sweep) {
  std::vector<SweepSettings> points;
  if (sweep.random) {
    for (int64_t i = 0; i < sweep.random->runs; ++i) {
      points.emplace_back();
      for (const SweepRange& range : sweep.random->ranges)
        points.back().emplace_back(range.path, draw(range, static_cast<uint64_t>(sweep.random->seed), static_cast<uint64_t>(i)));
    }
    return points;
  }
  points.emplace_back();
  for (const auto& [path, values] : sweep.grid) {
    std::vector<SweepSettings> longer;
    for (const SweepSettings& point : points)
      for (const std::string& value : values) longer.emplace_back(point).emplace_back(path, value);
    points = std::move(longer);
  }
  return points;
}

std::vector<SweepPoint> plan_sweep(const Sweep& sweep, const LoadConfig& load) {
  const std::vector<std::string> varied = sweep.varied();
  std::vector<SweepPoint> points;
  std::map<SweepSettings, int64_t> seen;
  for (SweepSettings& settings : points_of(sweep)) {
    SweepPoint& point = points.emplace_back();
    point.number = static_cast<int64_t>(points.size());
    point.settings = std::move(settings);
    if (const auto [earlier, added] = seen.emplace(point.settings, point.number); !added) {
      point.refusal = "the same values as point " + std::to_string(earlier->second);
      continue;
    }
    std::vector<std::string> sets;
    // A method by name sets several settings, so it comes before them.
    for (const bool methods : {true, false})
      for (const SweepSettings& given : {sweep.set, point.settings})
        for (const auto& [path, value] : given)
          if ((path == "method") == methods) sets.push_back(set_text(path, value));
    if (sweep.halving) sets.push_back("train.steps=" + std::to_string(sweep.halving->rungs.front()));
    try {
      const RunConfig config = load(sets);
      for (const int64_t seed : sweep.seeds.empty() ? std::vector<int64_t>{config.train.seed} : sweep.seeds) {
        RunConfig& run = point.runs.emplace_back(config);
        run.train.seed = seed;
        const std::string values = text_of(point.settings, varied);
        run.name = sweep.name + (values.empty() ? "" : " ") + values + " seed " + std::to_string(seed);
      }
    } catch (const Error& error) {
      if (error.code() != ErrorCode::config) throw;
      point.runs.clear();
      point.refusal = error.what();
      if (point.refusal.starts_with("--set: ")) point.refusal = point.refusal.substr(7);
    }
  }
  if (std::all_of(points.begin(), points.end(), [](const SweepPoint& point) { return point.runs.empty(); }))
    throw Error(ErrorCode::config, "no point of the sweep can be trained", "point 1: " + points.front().refusal,
                "comera config show " + sweep.base + " lists every setting with its range");
  return points;
}

std::vector<const RunConfig*> tasks_of(const std::vector<SweepPoint>& points) {
  std::vector<const RunConfig*> tasks;
  for (const SweepPoint& point : points)
    for (const RunConfig& run : point.runs) tasks.push_back(&run);
  return tasks;
}

const MetricInfo& metric_of(const Sweep& sweep, const std::vector<SweepPoint>& points) {
  if (sweep.halving) return *find_metric(sweep.halving->metric);
  const bool by_loss = std::any_of(points.begin(), points.end(),
                                   [](const SweepPoint& point) { return !point.runs.empty() && point.runs[0].model.per_token(); });
  return *find_metric(by_loss ? "val_loss" : "val_accuracy");
}

int64_t kept_of(int64_t points, double keep) {
  // 0.1 * 30 is a little more than 3, 0.29 * 100 a little less than 29.
  return std::max<int64_t>(1, static_cast<int64_t>(std::floor(static_cast<double>(points) * keep + 1e-9)));
}

std::vector<int64_t> rung_sizes(const Halving& halving, int64_t points) {
  std::vector<int64_t> sizes{points};
  while (sizes.size() < halving.rungs.size()) sizes.push_back(kept_of(sizes.back(), halving.keep));
  return sizes;
}

std::vector<size_t> best_of(const std::vector<double>& scores, Better better, int64_t count) {
  std::vector<size_t> order;
  for (size_t i = 0; i < scores.size(); ++i)
    if (std::isfinite(scores[i])) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return better == Better::lower ? scores[a] < scores[b] : scores[a] > scores[b]; });
  order.resize(std::min(order.size(), static_cast<size_t>(std::max<int64_t>(0, count))));
  return order;
}

std::string short_name(const std::string& path, const std::vector<std::string>& varied) {
  const auto last = [](const std::string& text) { return text.substr(text.rfind('.') + 1); };
  const auto alike = std::count_if(varied.begin(), varied.end(), [&](const std::string& other) { return last(other) == last(path); });
  return alike > 1 ? path : last(path);
}

std::string text_of(const SweepSettings& settings, const std::vector<std::string>& varied) {
  std::string text;
  for (const auto& [path, value] : settings) text += (text.empty() ? "" : " ") + short_name(path, varied) + "=" + unquoted(value);
  return text;
}

}  // namespace comera
