// A preset for data that somebody brings, with the settings that follow from them.
#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "core/config/config.h"
#include "core/data/dataset.h"

namespace comera {

struct DataSuit {
  std::string preset;  // whose model takes such data
  DatasetInfo info;
  int64_t trained_on = 0;         // rows that a run trains on, without those that it holds out
  std::vector<std::string> sets;  // path=value that the data ask for: data.set, columns, classes, sizes of images
  std::vector<std::string> more;  // that suit them with the preset: length, epochs, batch, an evaluation an epoch
  std::string about;              // what was found, for people: "8000 texts (description), 8 classes (section)"
};
// `path`: a file, a folder or the name of a set. Reads the file once. Throws as open_dataset().
DataSuit suit_data(const std::string& path);
// Whether the model of a config reads such data, if with other sizes.
bool takes(const RunConfig& config, const DataSuit& suit);
// The settings of `sets` that the config uses.
std::vector<std::string> sets_for(const DataSuit& suit, const RunConfig& config);
// What a preset sets for data of another size, as path=value for `rows` rows: modes that do not give their sizes are chosen automatically,
// and a batch that a small set would fill only a few times an epoch becomes smaller. Settings of the paths in `kept` stay.
std::vector<std::string> sizes_for(const RunConfig& config, int64_t rows, const std::set<std::string>& kept = {});

}  // namespace comera
