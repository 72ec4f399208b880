// Opens a set by file, folder or name, and knows which sets there are to get.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/data/dataset.h"
#include "core/data/text_lines.h"

namespace comera {

// What a model learns of texts: their classes, tokens that are masked, or each token from those before it.
enum class TextTask { classification, masked, language };
TextTask text_task(const std::string& task);  // of a model.task; classification for those that read no texts

struct DataSpec {
  std::string path = {};        // a data file, a folder of one, or the name of a known set
  std::string split = "train";  // in a folder: train, dev, test; also dev_mismatched and test_mismatched (MNLI)
  std::string vocab = {};       // what open_tokenizer takes; empty = vocab/bert-uncased.txt of `assets`, of a run of tokens bytes
  ColumnNames columns = {};     // of a text set
  std::vector<std::string> label_names = {};  // of a text set without labels.txt, and of pictures: classes of the training set
  int64_t min_count = 1;                      // of a click log: values that the training file has fewer times share a row
  std::string training = {};  // of a click log: the file that its tables are for, of pictures: the folder whose classes count; empty = the
                              // training file or folder beside it
  std::vector<int64_t> tables = {};           // of a click log: rows of the table of each category; empty = one for each value
  std::function<void(double)> progress = {};  // while a file is read for the first time: the share that is read, 0..1
  bool labels = true;                         // of a text set: false = as of GlueDataset::Options
  int64_t classes = 0;                        // 0 = as the set says; for dev and test pass the training set's
  TextTask task = TextTask::classification;
  bool join = false;                     // of texts for a masked language model: as one run of tokens
  int64_t length = 128;                  // of a run of tokens: tokens a row
  int64_t height = 0, width = 0;         // of pictures: to which they are fitted; 0 = of the first one
  int64_t channels = 0;                  // of pictures: 1 gray, 3 colours; 0 = of the first one
  double pixel_mean = 0, pixel_std = 1;  // of images: what pixels, which are 0..1, are shifted and divided by
  std::string assets = {};               // the project's assets folder, for its own sets and vocabulary; may be empty

  // Texts are read one behind the other, and a folder of text files is a set.
  bool joins() const { return task == TextTask::language || (task == TextTask::masked && join); }
};

// The file of a split in a folder, or its folder of pictures; of Parquet files in parts the first part (parquet.h), which may be in a
// folder `data` of it; "" = none.
std::string find_split(const std::string& folder, const std::string& split);
// The data file that a spec means, or the folder of pictures by class or of text files. A name is looked for in the user's data folder
// ($XDG_DATA_HOME/comera/data/NAME, by default ~/.local/share), then in data/NAME of `assets`; a path that exists goes first. Throws
// Error(not_found) when there is nothing, Error(config) when a folder has no such split.
std::string find_data_file(const DataSpec& spec);
// It has no splits: a file, a folder of classes, or of text files. Throws as find_data_file().
bool is_whole(const DataSpec& spec);
// The folder of pictures by class that a spec means; "" = another kind of data, or nothing.
std::string picture_folder(const DataSpec& spec);

// Text (TSV, CSV, JSONL, Parquet), images (IDX), a run of tokens (.txt; where the spec joins texts all of them), a click log (Criteo's
// format, plain or gzip) or pictures (PNG, JPEG), told apart by name and content. Throws as find_data_file, GlueDataset, IdxDataset,
// Documents, TextStream and PictureFolder do. A broken file gives one error with what, why and a hint.
std::unique_ptr<Dataset> open_dataset(const DataSpec& spec);

struct KnownSet {  // one row of `comera data list`
  std::string name, about, format, licence, package;
  int64_t bytes = 0;  // on disk
  bool is_vocabulary() const { return name.starts_with("vocab-"); }  // a tokenizer's, without rows
};
// The sets that assets/data/get_data.py makes (data/sets.json of `assets`).
std::vector<KnownSet> known_sets(const std::string& assets);

}  // namespace comera
