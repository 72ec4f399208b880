// A preset for data that somebody brings, with the settings that follow from them.
#pragma once
#include <string>
#include <vector>

namespace comera {

struct DataSuit {
  std::string preset;              // whose model takes such data
  std::vector<std::string> kinds;  // of models (model.kind) that take them, too; that of the preset first
  std::vector<std::string> sets;   // path=value that the data ask for: data.set, columns, classes
  std::vector<std::string> more;   // that suit them with the preset: length, epochs, batch, an evaluation an epoch
  std::string about;               // what was found, for people: "8,000 texts (description), 8 classes (section)"
};
// `path`: a file, a folder or the name of a set. Reads the file once. Throws as open_dataset(), and Error(config) where there is no text or
// no label.
DataSuit suit_data(const std::string& path);
// Those of `sets` that a model of this kind has a use for.
std::vector<std::string> sets_for(const DataSuit& suit, const std::string& kind);

}  // namespace comera
