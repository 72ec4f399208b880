// A sweep that is trained in this window (run_queue.h). It is the sweep of `comera sweep` (core/session/sweep_runs.h): either continues
// what the other began.
#pragma once
#include <string>
#include <vector>

#include "app/studio/run_queue.h"
#include "core/session/sweep_runs.h"

namespace comera::studio {

struct PlannedSweep;
struct UiState;

inline constexpr const char* kSweepNoun = "sweep";

// Its runs as they are in the store, and which of them to compare, the best point first. Reads the store and the data; may throw.
QueueState look_at_sweep(const std::string& store, const PlannedSweep& plan, const DataOf& data_of);

// Why the sweep of the form cannot start; "" = it can.
std::string no_sweep(const UiState& ui);
// Starts or continues the sweep of the form (form/form_sweep.h).
void start_sweep(UiState& ui);

// Why there is no file to save; "" = there is.
std::string no_sweep_file(const UiState& ui);
// Writes the file of the sweep to the folder of exports.
void save_sweep(UiState& ui);

// Why its runs cannot be compared; "" = they can.
std::string no_sweep_comparison(const UiState& ui);
void compare_sweep(UiState& ui);
// Shows its runs in the list of runs.
void list_sweep(UiState& ui);

}  // namespace comera::studio
