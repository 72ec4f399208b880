// Files of trained models (safetensors) and stored runs: whose checkpoint a file is, and a run that is made of one.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/config/config.h"
#include "core/train/model_import.h"

namespace comera {

struct ModelFile {
  bool folder = false;      // of the transformers library
  bool checkpoint = false;  // the whole state of a run at a step; else parameters alone, as they are exported
  std::string name;         // of the run that wrote it
  int64_t step = 0;         // of a checkpoint
  std::string run;          // id of the stored run that has it as a checkpoint, this file or a copy of it; "" = none has
  bool newest = false;      // that run has none of a later step
};

// Reads the header alone, and the whole file where a stored one may be the same. A store that is missing or cannot be read
// has no run. Throws Error(not_found | storage) for a file that is missing, damaged or of another program.
ModelFile look_at_model(const std::string& path, const std::string& store);

// Makes a finished run of a file or of a folder of the transformers library, with that as its one checkpoint, so that it can be forked,
// scored and exported. The file is copied. `config`: of a file that carries none, as those of other programs; null = the one it carries.
// `name`: of the run; "" = that of the config. Returns its id. Throws Error(config) when there is no config, or the file does not fit it;
// Error(not_found | storage).
// `compressed`: matrices that became tensor trains.
std::string store_model(const std::string& store, const std::string& path, const RunConfig* config = nullptr, const std::string& name = "",
                        std::vector<Compressed>* compressed = nullptr);

}  // namespace comera
