// Spill files: rows of a run that the store did not take, one JSON text a line, beside the store
// (STORE.spill-RUN-xxxxxxxx.jsonl). The first line names the run and a token; the store remembers merged tokens, so a
// file whose removal failed is never merged twice. A writer holds flock() on its file; a file that is held is left alone.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/store/run_ops.h"
#include "core/store/sqlite.h"

namespace comera {

// Thread: one at a time.
class SpillFile {
 public:
  // The file is created with the first append(). `start` lets a merge make the run anew when the store was replaced.
  SpillFile(const std::string& store, const std::string& run_id, const RunStart& start, double created);
  ~SpillFile();  // closes; the file stays unless it was removed
  SpillFile(const SpillFile&) = delete;
  SpillFile& operator=(const SpillFile&) = delete;

  bool exists() const { return file_ >= 0; }
  const std::string& path() const { return path_; }
  // All of `ops` or none (the file is cut back then): false when it cannot be written, problem() says why.
  bool append(const std::vector<RunOp>& ops, const MetricNames& names);
  const std::string& problem() const { return problem_; }
  // Does all its ops in the caller's transaction. After the commit call remove().
  void merge_into(Database& db);
  void remove();

 private:
  bool create();
  std::string store_, run_id_, path_, token_, header_, problem_;
  int file_ = -1;
  int64_t bytes_ = 0;
};

std::vector<std::string> spill_files(const std::string& store);
// Merges every spill file that no living writer holds, each in a transaction of its own. Damaged lines are left out and
// the file is kept as *.damaged then. Returns a line of text for each file that was merged or could not be.
std::vector<std::string> merge_spills(Database& db);

}  // namespace comera
