// Runs that are trained one after another in this window, as ordinary runs of the store: those of a duel (dueling.h). What of them the
// store has already is read before each, so that nothing is trained twice and a queue that was stopped goes on.
#pragma once
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "app/studio/background.h"
#include "core/config/config.h"

namespace comera::studio {

struct UiState;

struct QueuedRun {
  std::string title;  // "galore seed 1"
  RunConfig config;
  std::string stored = {};  // id in the store; "" = none yet
  bool over = false;        // nothing is left to train
};

// The runs of a queue as they are in the store.
struct QueueState {
  std::vector<QueuedRun> runs;       // in the order of training
  std::vector<std::string> compare;  // ids for the comparison
  std::string problem;               // why the store or the data cannot be read; "" = success
};

struct QueueOrder {
  std::string noun;                          // "duel": in texts, and the id of its toast
  std::string store;                         // database of its runs
  std::vector<std::string> tags;             // of its runs
  std::string folder = {};                   // of the transformers library, whose weights each run begins with; "": they are drawn
  std::vector<QueuedRun> runs;               // all of them; `look` says which are there already
  std::function<QueueState()> look = {};     // called on a thread; may throw
  void (*compare)(UiState& ui) = nullptr;    // after the comparison of its runs was opened; may be null
  void (*open_form)(UiState& ui) = nullptr;  // where it is started and stopped
};

struct RunQueue {
  struct Look {};  // "what is in the store now?"
  QueueOrder order;
  QueueState state;
  size_t at = 0;               // the run that is trained
  std::set<size_t> tried;      // runs that were started: none is started twice
  const void* live = nullptr;  // the LiveRun that is expected in front
  uint64_t load = 0;           // the request to the store that resumes a run; 0 = none
  bool training = false;       // a run of the queue is in front
  bool stopping = false;       // the user wants it to end
  uint64_t number = 0;         // of the question being answered; 0 = none
  Background<Look, QueueState> looker;

  RunQueue(QueueOrder wanted, std::function<void()> wake);
};

// Starts or continues the runs. There must be no other queue.
void start_queue(UiState& ui, QueueOrder order);
// Stops the run that trains with a checkpoint, and the queue.
void stop_queue(UiState& ui);
std::string queue_progress(const RunQueue& queue);  // "3 of 12: galore seed 1"
// Whether a queue with this noun is trained.
bool trains_queue(const UiState& ui, const std::string& noun);
// Starts the next run when one has ended, and compares at the end. Called once a frame; never waits.
void tick_queue(UiState& ui);

}  // namespace comera::studio
