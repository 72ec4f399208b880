// The plan of a sweep: one network trained with many combinations of settings, each under each seed. Pure: the same file gives the same
// points on every machine. Its runs in a store are found by sweep_runs.h.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/config/config.h"
#include "core/config/metrics.h"

namespace comera {

inline constexpr const char* kSweepTag = "sweep";  // of its runs, next to tag_of()

// Settings of a point: paths and values as JSON texts, in the order of the file.
using SweepSettings = std::vector<std::pair<std::string, std::string>>;

struct SweepRange {
  enum class Kind { uniform, log, choices };  // log: the logarithm is uniform
  std::string path;
  Kind kind = Kind::uniform;
  double low = 0, high = 0;  // both inclusive
  bool whole = false;        // whole numbers
  std::vector<std::string> choices = {};
};

// Successive halving (Jamieson and Talwalkar 2016): all points run to the first rung, the best share of them to the next one.
struct Halving {
  std::string metric;
  std::vector<int64_t> rungs;  // steps, rising
  double keep = 0.5;           // share of the points of a rung that go on
};

// Random search: each run draws a value from each range.
struct RandomDraws {
  int64_t runs = 0, seed = 0;
  std::vector<SweepRange> ranges;
};

struct Sweep {
  std::string name;  // of letters, digits, '-', '_' and '.'
  std::string base;  // preset or config file
  SweepSettings set;
  std::vector<std::pair<std::string, std::vector<std::string>>> grid = {};
  std::optional<RandomDraws> random = {};
  std::vector<int64_t> seeds = {};  // empty = train.seed of each point
  std::optional<Halving> halving = {};

  std::string tag() const { return std::string(kSweepTag) + ":" + name; }
  std::vector<std::string> varied() const;  // paths of the grid or the ranges
};

// `source` names the file in messages; `name` is that of a file without one. Throws Error(config) at the first thing that is wrong.
Sweep read_sweep(const Json& json, const std::string& source, const std::string& name);

// What each point sets besides Sweep::set. A grid is the Cartesian product of its lists, the last one fastest. Draw `i` of a range is a
// function of (seed, path, i) alone, rounded to six significant digits.
std::vector<SweepSettings> points_of(const Sweep& sweep);

struct SweepPoint {
  int64_t number = 0;  // from 1
  SweepSettings settings;
  std::vector<RunConfig> runs;  // one a seed; empty = left out
  std::string refusal;          // why it is left out: a config that is refused, or that of an earlier point
};

// A config of the base with these path=value texts in addition, as load_config() gives it.
using LoadConfig = std::function<RunConfig(const std::vector<std::string>& sets)>;
// Throws Error(config) when every point is refused.
std::vector<SweepPoint> plan_sweep(const Sweep& sweep, const LoadConfig& load);

// Runs of all points in their order: the tasks of a sweep, counted from 0.
std::vector<const RunConfig*> tasks_of(const std::vector<SweepPoint>& points);

// By which runs of the sweep are compared: that of halving, else the validation accuracy, of language models the validation loss.
const MetricInfo& metric_of(const Sweep& sweep, const std::vector<SweepPoint>& points);
// How many of `points` go on to the next rung: at least one.
int64_t kept_of(int64_t points, double keep);
// Points at each rung, where all have a score.
std::vector<int64_t> rung_sizes(const Halving& halving, int64_t points);
// Indices of the best `count` scores, the best first, of equal ones the earlier. Scores that are not finite are not taken.
std::vector<size_t> best_of(const std::vector<double>& scores, Better better, int64_t count);

// "lr_core" of "train.lr_core"; the whole path where two varied settings end alike.
std::string short_name(const std::string& path, const std::vector<std::string>& varied);
// "lr_core=0.001 rank=8"
std::string text_of(const SweepSettings& settings, const std::vector<std::string>& varied);

}  // namespace comera
