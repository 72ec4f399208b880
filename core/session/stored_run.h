// A stored run as something that can be computed again: its config at the start, its changes by step, its checkpoints.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/config/config.h"
#include "core/data/datasets.h"

namespace comera {

class Dataset;
class Trainer;

// One change by hand, made before the step `step` was computed. That of the stage is the only one that is no event `edit`.
struct ScheduledChange {
  int64_t step = 0;
  std::string path, value;
  bool of_stage() const { return path == "stage"; }
  bool operator==(const ScheduledChange&) const = default;
};

// The change that an event tells of, if it does.
std::optional<ScheduledChange> change_of(int64_t step, const std::string& kind, const std::string& body);
// Of "path=value": a live field, rank.cap.LAYER.BOND, rank.weight.LAYER, or stage=late|early. Throws Error(usage).
ScheduledChange parse_change(const std::string& text, int64_t step);
// Whether such a text names what only a run has, and no config: a bond, a layer, the stage.
bool only_of_runs(const std::string& text);

struct StoredRun {
  std::string id, status, parent, data_fingerprint;
  int64_t pid = 0, step = 0, fork_step = 0;
  RunConfig config;                            // as it was at the start; data.vocab as of checkpoint_config()
  std::vector<ScheduledChange> changes;        // by step
  std::map<int64_t, std::string> checkpoints;  // step -> file that is there
  std::string imported;                        // the file or folder that its first weights are from; "" = none
  bool is_fork() const { return !parent.empty(); }
  // Its first weights are those of its first checkpoint, not those of a fresh start.
  bool begins_with_checkpoint() const { return is_fork() || !imported.empty(); }
  Error lacks_first_checkpoint() const;  // of a run that begins with one
};

// By id, unique beginning, or name. Throws Error(not_found | storage | config).
StoredRun load_stored_run(const std::string& store, const std::string& id_or_name);

// The model folder that a run, or the first of its ancestors that says so, began with; "" = none that is there.
std::string base_folder(const std::string& store, StoredRun run);

// Makes the changes that belong before the trainer's next step, and takes them off the list.
void apply_changes(Trainer& trainer, std::vector<ScheduledChange>& changes);

struct RunData {
  std::shared_ptr<const Dataset> train, validation;  // validation may be null
};
// Where the data of a config are: its training file.
DataSpec data_spec(const RunConfig& config);
// Makes paths in a config absolute that are relative to the working directory, so that a run can be used from another one.
void make_paths_absolute(RunConfig& config);
// Throws Error(config) where the texts of a model of another program would be read without its tokenizer: none is named, and it has far
// more tokens than the vocabulary that is used then, or bytes.
void check_vocabulary(const RunConfig& config);
// The data of a config. `progress` as of DataSpec, for one file after another. Throws as open_dataset().
RunData open_run_data(const RunConfig& config, const std::function<void(double)>& progress = {});
// The same, where it is still what the run was trained on; else throws Error(config): its steps could not be made again.
RunData open_run_data(const RunConfig& config, const StoredRun& run, const std::function<void(double)>& progress = {});

}  // namespace comera
