// A duel: the same network trained under several methods, with the same settings or at equal memory, and compared. A duel is its runs in
// the store: the same duel planned again finds those that were trained and continues the others.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/config/config.h"
#include "core/store/run_types.h"

namespace comera {

class RunReader;

inline constexpr const char* kDuelTag = "duel";  // of its runs

struct Duel {
  RunConfig config;                  // of every run but for the axes of the method, its rank and micro-batches, the name and the seed
  std::vector<std::string> methods;  // names (core/config/named_methods.h); empty = all
  int64_t bytes = 0;  // that each method may take, see fit_to_memory() (core/train/memory_fit.h); 0 = the same settings for all
  int64_t seeds = 1;  // runs of each method: with train.seed, train.seed + 1, ...
};

// A method of a duel and the runs that it asks for.
struct DuelMethod {
  std::string id, title;
  RunConfig config;                  // of the first seed; of a refused method as it was configured
  std::optional<int64_t> rank = {};  // nullopt = the method has none
  std::string rank_path = {};        // its setting (core/train/rank_setting.h)
  int64_t parameters = 0;            // values of the model at the start, and those that are trained
  int64_t trainable = 0;
  int64_t planned = 0;               // planned peak in bytes; of a method that does not fit the smallest that was found
  bool fits = true;                  // into Duel::bytes
  std::string refusal = {};          // why these settings cannot be combined; "" = they can
  std::vector<RunConfig> runs = {};  // one a seed; empty = the method is not trained
  bool trains() const { return !runs.empty(); }
};

// Dry runs only: allocates nothing. A method that sets the rank itself
// (apollo-mini) keeps it. Throws Error(not_found) for an unknown id, Error(usage) for an id that is given twice.
std::vector<DuelMethod> plan_duel(const Duel& duel);

// The runs of duels in a store that were trained on this data (open_run_data()), by their config at the start. Edited runs and forks are
// not among them. Where several have the same config, one that is over comes first, then the newest. `imported`: the folder that their
// first weights are from, an absolute path (StoredRun::imported); "": they were drawn.
class DuelRuns {
 public:
  DuelRuns() = default;  // there is no store yet
  DuelRuns(const RunReader& reader, const std::string& data_fingerprint, const std::string& imported = "");
  const RunRow* find(const RunConfig& config) const;  // null = there is none

 private:
  std::map<std::string, RunRow> runs_;
};

// Whether there is nothing left to train: finished, or diverged, as it would again.
bool is_over(const RunRow& run);

struct Spread {
  int64_t count = 0;
  double mean = kUnknown;       // of `count` values
  double deviation = kUnknown;  // standard deviation, divisor count - 1; from two values on
};
Spread spread_of(const std::vector<double>& values);

// What the runs of a method came to.
struct DuelResult {
  std::vector<RunRow> runs;  // those that are stored, by seed
  int64_t finished = 0, failed = 0;
  Spread val_accuracy, val_loss;  // at the last step of the finished runs
  double peak_bytes = kUnknown;   // most that training held, of all runs
  double step_ms = kUnknown;      // median over the steps of all runs
  double seconds = 0;             // all runs together, over all resumes
};
DuelResult duel_result(const RunReader& reader, const DuelRuns& stored, const DuelMethod& method);

}  // namespace comera
