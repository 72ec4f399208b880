// Files that hold a model: what Trainer::save writes, and how much of it others need.
#pragma once
#include <string>

#include "core/methods/rank_resize.h"
#include "core/tensor/safetensors.h"
#include "core/train/engine.h"
#include "core/train/trained_on.h"

namespace comera {

// The "comera" metadata: format, config (with all edits), state. Throws Error(storage) for a file without it.
Json checkpoint_metadata(const SafetensorsFile& file);
// The config a checkpoint was written under; its data.vocab is the run's own copy where the file is gone or was changed (kept_tokenizer.h).
RunConfig checkpoint_config(const SafetensorsFile& file, const Json& metadata);
RunConfig checkpoint_config(const std::string& path);
// Whether a tensor of a checkpoint is optimizer or stash state, not a parameter.
bool is_training_state(const std::string& name);
// Gives the bonds of a described model the ranks of a checkpoint, before memory is planned; nothing where it is of another model, which
// load_parameters() refuses. Throws Error(storage) where the file is damaged.
void take_ranks(ParamSet& params, const std::string& path);
// Parameters only, into an allocated engine of the same config; gives it the file's ranks. Throws Error(storage) where a
// parameter is missing, of another shape, or one that the model lacks.
void load_parameters(Engine& engine, const SafetensorsFile& file);
// Gives the bonds of the engine's model these entries (rank_resize.h).
void resize_bonds(Engine& engine, const BondEntries& bonds);
// The whole file: parameters, optimizer state and stash ranges of the engine; `config`, `state` and `data` as metadata.
void save_checkpoint(Engine& engine, const RunConfig& config, const Json& state, const TrainedOn& data, const std::string& path);

}  // namespace comera
