// What happens in a run besides its numbers: one struct an event, written and read here alone. Stored as JSON (store/run_types.h,
// EventRow), which older programs wrote as well: a missing value, or one of another type, keeps its default.
#pragma once
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/records/sizes.h"

namespace comera {

struct StartEvent {  // of a run or a fork
  static constexpr const char* kind = "start";
  std::string program = {}, device = {}, blas = {};  // its version ("" = one that did not tell); what it computes with
  // Of a fork, what its config does not say of how it begins.
  std::optional<std::string> parent = {};
  std::optional<int64_t> fork_step = {};
  std::optional<bool> late = {};
  std::optional<LiveRanks> held = {};
  std::optional<std::map<std::string, int64_t>> caps = {};
  std::optional<std::map<std::string, double>> weights = {};
  std::optional<std::string> imported = {};  // the file or folder that its first weights are from
  // How matrices of a folder became tensor trains; null: at the config's ranks.
  std::optional<double> most_error = {};         // of each matrix, relative
  std::optional<double> compression = {};        // of all matrices together
  std::optional<int64_t> gradient_batches = {};  // whose gradients weighted the errors
  std::optional<int64_t> processes = {};         // that trained it together; null: one
  std::optional<std::string> link = {};          // "NCCL 2.28.9" between their devices; null: messages went through the hosts
  static void fields(auto& e, auto& see) {
    see("program", e.program), see("device", e.device), see("blas", e.blas), see("parent", e.parent), see("fork_step", e.fork_step),
        see("late", e.late);
    see("held", e.held), see("caps", e.caps), see("weights", e.weights), see("imported", e.imported);
    see("tt_error", e.most_error), see("tt_compression", e.compression), see("tt_gradients", e.gradient_batches);
    see("processes", e.processes), see("link", e.link);
  }
};

struct ResumeEvent {
  static constexpr const char* kind = "resume";
  std::string program = {}, device = {}, blas = {};  // as at the start
  int64_t from_step = 0;
  std::optional<std::string> replaced = {};  // the run that keeps the later steps
  std::optional<int64_t> processes = {};     // that train it together from here on; null: one
  std::optional<std::string> link = {};      // between their devices, as at the start
  static void fields(auto& e, auto& see) {
    see("program", e.program), see("device", e.device), see("blas", e.blas), see("from_step", e.from_step), see("replaced", e.replaced);
    see("processes", e.processes), see("link", e.link);
  }
};

struct EditEvent {  // a live change
  static constexpr const char* kind = "edit";
  std::string path = {}, value = {};  // as they were given
  std::optional<Json> before = {};    // the value before, where there was one
  std::optional<Json> after = {};     // the value as JSON
  static void fields(auto& e, auto& see) { see("path", e.path), see("old", e.before), see("new", e.after), see("value", e.value); }
};

struct StageEvent {
  static constexpr const char* kind = "stage";
  std::string stage = {};   // late, or early again
  std::string reason = {};  // command, steps or plateau
  std::optional<double> entries = {}, target_entries = {};
  std::optional<bool> canonical = {};
  std::optional<bool> stays = {};  // a request was taken back before it was in force
  bool late() const { return stage == "late"; }
  bool by_command() const { return reason == "command"; }
  static void fields(auto& e, auto& see) {
    see("stage", e.stage), see("reason", e.reason), see("entries", e.entries), see("target_entries", e.target_entries);
    see("canonical", e.canonical), see("stays", e.stays);
  }
};

struct TruncationEvent {  // dead slices were cut
  static constexpr const char* kind = "truncation";
  int64_t entries_before = 0, entries_after = 0;  // in memory
  std::optional<LiveRanks> held = {};
  static void fields(auto& e, auto& see) {
    see("entries_before", e.entries_before), see("entries_after", e.entries_after), see("held", e.held);
  }
};

struct RegrowthEvent {  // bonds got entries back
  static constexpr const char* kind = "regrowth";
  std::string reason = {};
  double live_before = 0, live_after = 0;
  int64_t entries_before = 0, entries_after = 0;  // in memory
  Json bonds = {};                                // [{layer, bond, from, to}]
  std::optional<LiveRanks> held = {};
  static void fields(auto& e, auto& see) {
    see("reason", e.reason), see("live_before", e.live_before), see("live_after", e.live_after);
    see("entries_before", e.entries_before), see("entries_after", e.entries_after), see("bonds", e.bonds), see("held", e.held);
  }
};

struct CheckpointEvent {
  static constexpr const char* kind = "checkpoint";
  std::string path = {}, reason = {};
  static void fields(auto& e, auto& see) { see("path", e.path), see("kind", e.reason); }
};

struct AlertEvent {
  static constexpr const char* kind = "alert";
  std::string what = {};                                       // diverged, memory, checkpoint, early stop, or a rule of the window
  std::optional<std::string> text = {};                        // a sentence
  std::optional<std::string> loss = {};                        // diverged: nan or inf
  std::optional<std::string> tensor = {};                      // diverged: the first with bad values, "" = not known
  std::optional<int64_t> need = {}, free = {}, in_use = {};    // memory: bytes
  std::optional<std::map<std::string, int64_t>> planned = {};  // memory: bytes by purpose
  static void fields(auto& e, auto& see) {
    see("kind", e.what), see("text", e.text), see("loss", e.loss), see("tensor", e.tensor);
    see("need", e.need), see("free", e.free), see("in_use", e.in_use), see("planned", e.planned);
  }
};

template <class Event>
Json json_of(const Event& event);
// Never throws: a body that is damaged gives an event of defaults.
template <class Event>
Event read_event(const Json& body);
template <class Event>
Event read_event(const std::string& body);

#define COMERA_EVENTS(E) \
  E(StartEvent) E(ResumeEvent) E(EditEvent) E(StageEvent) E(TruncationEvent) E(RegrowthEvent) E(CheckpointEvent) E(AlertEvent)

}  // namespace comera
