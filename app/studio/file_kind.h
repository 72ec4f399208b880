// Kind of a file, detected by its content.
#pragma once
#include <string>

namespace comera::studio {

enum class FileKind {
  missing,  // or not readable
  store,    // a database, of runs or not
  config,   // JSON
  weights,  // safetensors
  events,   // of TensorBoard: a file, or a folder with such files in it or one below
  table,    // CSV with a column `step`
  data,     // a set to train on: TSV, JSONL or IDX (plain or gzip); or a folder of one
  folder,   // unknown
  other
};
FileKind kind_of_file(const std::string& path);

}  // namespace comera::studio
