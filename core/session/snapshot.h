// What panels and progress lines draw: plain immutable data, published whole. Whether it comes from the trainer or
// from the store they cannot tell (run_source.h).
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/config/config.h"
#include "core/session/command.h"
#include "core/store/run_types.h"
#include "core/tensor/memory.h"
#include "core/train/rank_setting.h"
#include "core/train/records.h"

namespace comera {

struct RankLayer;

enum class Phase : unsigned char { idle, preparing, running, pausing, paused, stopping, finished, stopped, interrupted, failed, diverged };
const char* name_of(Phase phase);
Phase phase_of(const std::string& status);  // of a stored run; idle when it is no name of a phase

struct LayerRanks {
  std::string name;
  std::vector<int64_t> live;  // a bond
  std::vector<int64_t> held;  // allocated
  std::vector<int64_t> initial;
  std::vector<int64_t> in_modes = {}, out_modes = {};  // as RankLayer
  std::vector<int64_t> caps = {};                      // a bond; 0 = none
  double weight = 1;                                   // factor on its rank penalty; 0 = locked

  // Whether each core has a row and a column mode (an embedding), or one mode: those of the inputs, then the outputs.
  bool is_table() const { return in_modes.size() == out_modes.size() && in_modes.size() == initial.size() + 1; }
};

// `live`, `held`, `initial`: ranks a bond.
LayerRanks layer_ranks(const RankLayer& layer, std::vector<int64_t> live, std::vector<int64_t> held, std::vector<int64_t> initial,
                       const RankOverrides& overrides);

// The entries of one bond's rank vector, which whoever looks at the run asked for.
struct InspectedBond {
  std::string layer;
  int64_t bond = 0;  // from 1; 0 = none was asked for
  int64_t step = 0;
  std::vector<double> values;  // those in memory
};

// The values of one core, which whoever looks at the run asked for.
struct InspectedCore {
  std::string layer;
  int64_t core = 0;  // from 1; 0 = none was asked for
  int64_t step = 0;
  std::vector<int64_t> shape;
  double largest = 0;               // the bins reach from minus this to this; 0 = every value is 0 or not finite
  std::vector<int64_t> bins = {};   // values in each, from the lowest
  double norm = 0;                  // square root of the sum of squares
  double gradient_norm = kUnknown;  // of the gradient of that step; not known before the first step and after a cut
};

// What happened, in order: every step's metrics, every change of a rank and of memory, every event.
struct Records {
  // Steps whose metrics and times were left out, since nobody had asked for too long (session.h): the store has them.
  // None while `last` is 0.
  struct LeftOut {
    int64_t first = 0, last = 0;
    bool any() const { return last > 0; }
    void add(int64_t from, int64_t to);
  };
  LeftOut left_out;
  std::map<std::string, Series> metrics;  // by name: a run of ten million steps is some columns, not ten million rows
  Series times;                           // when each step was done, seconds since 1970
  std::vector<RankRow> ranks;             // bonds from 1
  std::vector<MemoryRow> memory;
  std::vector<EventRow> events;
  // To the metrics; `time` of a step that is new.
  void add(int64_t step, const NamedValues& values, double time = kUnknown);
  void append(Records more);
  size_t points() const;  // of the metrics and the times: what grows with every step
  void leave_out_metrics();
};

// The checkpoint that is being written.
struct Saving {
  int64_t step = -1;            // of it; -1 = none is being written
  int64_t done = 0, total = 0;  // bytes that the system has taken, of all; total 0 = its values are still collected
};

// The memory of a run with another value of a setting: its plan, of parameters as they are now.
struct Foreseen {
  std::string path, value;  // "" = nothing was asked yet
  MemoryByPurpose planned;
  int64_t room = 0;     // bytes for it, held and free ones together
  int64_t largest = 0;  // value that fits; 0 = not asked
};

struct Snapshot {
  std::string run, name;  // id and display name in the store
  Phase phase = Phase::idle;
  std::string message;  // why it failed, or what it is doing
  int error_code = 0;   // ErrorCode when failed or diverged
  std::string error_why, error_hint;
  std::string store_problem;  // text for the red banner; empty = all is saved
  int64_t step = 0, total_steps = 0;
  double epoch = 0, total_epochs = 0;
  bool late = false;
  double target_entries = 0;
  StepRecord last;
  EvalRecord eval;
  double best_loss = 0, best_accuracy = 0;
  int64_t best_step = 0;
  ModelSize size;
  std::vector<LayerRanks> ranks;
  std::vector<RankedMatrix> ranked;  // of the model, where it has no tensor trains
  InspectedBond inspected;           // live only: entries are stored in checkpoints, not with every step
  InspectedCore inspected_core;
  MemoryByPurpose memory_now, memory_peak, memory_planned;
  std::shared_ptr<const StepMemory> step_memory;  // as planned with the ranks of the start; null = not known
  double gemm_share = 0;  // GEMM work a second of training, by the best rate measured on this device; 0 = not known (SessionStart::watched)
  double steps_per_s = 0, tokens_per_s = 0, step_ms_median = 0, step_ms_p95 = 0, elapsed_s = 0, eta_s = 0;
  Ticket last_ticket = 0;        // last command done
  int64_t last_ticket_step = 0;  // the first step it acts on
  std::string last_refusal;      // text of the last command that could not be done
  std::string replaced;          // live only: the run that keeps what this one did before it went on another way; "" = none
  int64_t last_checkpoint_step = -1;
  std::string last_checkpoint_path;
  // Live only: seconds since 1970 of that checkpoint and of the last time the store took what it was given; 0 = never.
  double last_checkpoint_at = 0, saved_at = 0;
  int64_t pause_at = -1;  // live only: it pauses after this step; -1 = it was not asked to
  bool pause_at_event = false;
  Foreseen foreseen;  // live only: the answer to the last ForeseeCommand
  Saving saving;      // live only
  std::string device;
};

}  // namespace comera
