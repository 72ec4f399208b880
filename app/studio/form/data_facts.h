// Facts about a data set from its loader, for the form of a new run. Read on a background thread.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/data/datasets.h"

namespace comera::studio {

struct DataQuestion {
  std::string set, vocab;  // as in the config, as are
  ColumnNames columns = {};
  TextTask task = TextTask::classification;
  bool join = false;
  bool operator==(const DataQuestion&) const = default;
};

struct DataFacts {
  DataQuestion of;
  std::string stamp;    // of the files that were read
  std::string problem;  // why it cannot be read; other members are then empty
  DatasetInfo info;
  bool text = false;
  bool whole = false;              // has no splits (core/data/datasets.h)
  std::vector<std::string> first;  // rows as the model gets them
  // Of a table of texts, also of one that cannot be read with the question's columns: all of them, those that the question reads, and those
  // that the first rows suggest. "" = none.
  std::vector<std::string> columns;
  ColumnNames read, likely;
  int64_t rows = 0, classes = 0;
  int64_t height = 0, width = 0;  // of an image
  int64_t joined_tokens = 0;      // of joined texts, all of them; 0: texts are rows
  // Text: tokens of a sample of evenly spaced rows, ascending.
  std::vector<int64_t> lengths;
  int64_t longest() const { return lengths.empty() ? 0 : lengths.back(); }
  int64_t median() const { return lengths.empty() ? 0 : lengths[lengths.size() / 2]; }
  double share_beyond(int64_t length) const;  // share of longer rows
};

// Sizes and times of the files of the set and of its vocabulary, without reading them: changes when one is written, added or removed. Of
// folders with many files, only the first ones count. Never throws.
std::string data_stamp(const DataQuestion& question);
// Never throws.
DataFacts read_data_facts(const DataQuestion& question);

}  // namespace comera::studio
