// The duel of the form of a new run: the same network under the chosen methods, at equal memory if a size is given. A thread plans the
// methods one after another (core/session/duel.h); only those that a change of the form affects are planned again.
#pragma once
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "app/studio/background.h"
#include "core/session/duel.h"

namespace comera::studio {

struct UiState;

inline constexpr int kMostSeeds = 10;

struct DuelPlan {
  std::set<std::string> chosen;  // ids of methods
  std::string memory;            // that each may take, as typed, for example 64MiB; "" = the same settings for all
  int seeds = 1;                 // runs of each method, 1..kMostSeeds
  int64_t bytes = 0;             // of `memory`; 0 = no limit
  std::string problem;           // why `memory` is not a size; "" = it is, or is empty

  struct Made {
    DuelMethod method;     // as last planned, with kMostSeeds runs where it trains
    bool current = false;  // with the settings and the memory of now
  };
  std::map<std::string, Made> made;                     // by id
  const DuelMethod* find(const std::string& id) const;  // null = not planned for the settings of now
  bool done() const;                                    // all chosen methods are
  std::vector<DuelMethod> methods() const;  // the chosen and planned ones in the order of named_methods(), each with `seeds` runs

  uint64_t of = 0;                                        // NewRun::outlook_number that `made` belongs to
  int64_t of_bytes = 0;                                   // and its limit
  uint64_t number = 0;                                    // of the question being answered; 0 = none
  std::string asked;                                      // id of its method
  std::unique_ptr<Background<Duel, DuelMethod>> planner;  // null until a method is chosen
};

// Reads a size as `comera duel --memory` does, but for a bare number, which is of MiB; `memory` then says so.
void set_duel_memory(DuelPlan& plan, const std::string& typed);
void choose_all_for_duel(DuelPlan& plan, bool all);
// Takes answers and asks the next question. Called once a frame; never waits.
void tick_duel_plan(UiState& ui);

}  // namespace comera::studio
