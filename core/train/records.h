// What training reports: plain data, which the session, the store and the window read without seeing a layer.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/ops/step_block.h"
#include "core/records/sizes.h"
#include "core/tasks/score.h"

namespace comera {

struct StepTimes {  // ms of the last step, by phase
  double grad = 0, refresh = 0, update = 0;
  double forward = 0;  // of grad: until backward begins; 0 in a replayed step
  double others = 0;   // waiting for other processes and for their gradients, and adding these
};

// What a step took of the processes that share its batch; empty where one process trains.
struct SharedStep {
  // Of each process, for its parts of the batch. Where linked devices sum in backward: with its waiting for messages, unless one is
  // profiled.
  std::vector<double> compute_ms;
  int64_t sent_bytes = 0;  // gradients, by this process to all others
};

// What the temporaries of a step take in its course, by the plan: bytes that are alive, the most in each of equal parts of
// a phase's requests and drops. They share one piece of memory, as large as the most of all (and what is lost between them).
struct StepMemory {
  struct Phase {
    std::string name;  // forward, backward, update, scores
    std::vector<int64_t> bytes;
  };
  std::vector<Phase> phases;
};

struct StepRecord {
  int64_t step = 0;
  StepResults results;
  double accuracy = 0;
  double learning_rate[kRates] = {};
  double step_ms = 0;
  StepTimes times;
  SharedStep shared;
  double data_ms = 0;  // of step_ms: waited for the batch
  int64_t tokens = 0, examples = 0;
  double epoch = 0;
  double target_entries = 0;  // S0 in force; 0 in the early stage
};

struct EvalRecord : Score {
  int64_t step = 0;
  double ms = 0;  // that it took
};

}  // namespace comera
