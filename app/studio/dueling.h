// A duel that is trained in this window: its runs one after another, as ordinary runs of the store. It is the duel of `comera duel`
// (core/session/duel.h): either continues what the other began.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "app/studio/background.h"
#include "core/session/duel.h"

namespace comera::studio {

struct UiState;

struct DuelQuestion {
  std::string store;
  std::vector<DuelMethod> methods;
  std::string data;  // fingerprint of the training data; "" = not known yet
};

// The runs of a duel as they are in the store.
struct DuelState {
  struct Run {
    std::string method;  // its id
    RunConfig config;
    std::string stored;  // id in the store; "" = none yet
    bool over = false;   // nothing is left to train
  };
  std::vector<Run> runs;             // in the order of training: seed by seed
  std::vector<std::string> compare;  // ids for the comparison, those of the Pareto front first
  std::string data;
  std::string problem;  // why the store or the data cannot be read; "" = success
};
// Never throws. Reads the data and the store, so not for a frame.
DuelState look_at_duel(const DuelQuestion& question);

struct Dueling {
  DuelQuestion question;
  DuelState state;
  size_t at = 0;               // the run that is trained
  std::set<size_t> tried;      // runs that were started: none is started twice
  const void* live = nullptr;  // the LiveRun that is expected in front
  uint64_t load = 0;           // the request to the store that resumes a run; 0 = none
  bool training = false;       // a run of the duel is in front
  bool stopping = false;       // the user wants it to end
  uint64_t number = 0;         // of the question being answered; 0 = none
  Background<DuelQuestion, DuelState> looker;

  explicit Dueling(DuelQuestion asked, std::function<void()> wake) : question(std::move(asked)), looker(look_at_duel, std::move(wake)) {}
};

// Why the duel of the form cannot start; "" = it can.
std::string no_duel(const UiState& ui);
// Starts or continues the duel of the form (form/duel_plan.h).
void start_duel(UiState& ui);
// Stops the run that trains with a checkpoint, and the duel.
void stop_duel(UiState& ui);
std::string duel_progress(const Dueling& duel);  // "3 of 12: galore seed 1"
// Starts the next run when one has ended, and compares at the end. Called once a frame; never waits.
void tick_duel(UiState& ui);

}  // namespace comera::studio
