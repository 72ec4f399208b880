// Parquet files. Arrow, which reads them, is in a library of its own (core/data/parquet) next to the program, opened when the first such
// file is met: others do not pay for it, nor need it.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/data/parquet_rows.h"

namespace comera {

struct ParquetStatus {
  bool here = false;    // this program can read Parquet files
  std::string library;  // "Arrow 26.0.1"
  std::string reason;   // why it cannot
};
// COMERA_ARROW=off in the environment leaves it out.
ParquetStatus parquet_status();

bool is_parquet(const std::string& path);  // by its name: .parquet
// Files are often written in parts, NAME-00000-of-00003.parquet: any of them stands for all, in order. Another file: itself. Throws
// Error(not_found) where a part is missing.
std::vector<std::string> parquet_parts(const std::string& path);
// Of the parts of STEM that are in a folder the first one; "" = none.
std::string find_parquet_part(const std::string& folder, const std::string& stem);

// One file. Throws Error(config) where it is not one, is cut off or damaged, or this program cannot read any; as MappedFile where it cannot
// be read at all.
std::unique_ptr<ParquetRows> open_parquet(const std::string& path);
// The error of a file whose rows cannot be read; `why` is what the library said.
[[noreturn]] void damaged_parquet(const std::string& path, const std::string& why);

}  // namespace comera
