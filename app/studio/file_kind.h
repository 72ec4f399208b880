// Kind of a file, detected by its content.
#pragma once
#include <string>

namespace comera::studio {

enum class FileKind {
  missing,  // or unreadable
  store,    // an SQLite database, with runs or not
  config,   // JSON
  weights,  // safetensors, or a folder of the transformers library
  events,   // TensorBoard event files: a file, or a folder that has such files in it or one level below
  table,    // CSV with a column `step`
  data,     // data set: text (.txt), CSV, TSV, JSONL, Parquet or IDX (plain or gzip), or a folder with one, or of text files
  folder,   // other folder
  other
};
FileKind kind_of_file(const std::string& path);

}  // namespace comera::studio
