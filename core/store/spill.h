// Spill files: rows of a run that the store did not take, one JSON text a line, beside the store
// (STORE.spill-RUN-xxxxxxxx.jsonl), or, where there is no room either, in a rescue folder. The first line names the store, the
// run, the time and a token; the store remembers merged tokens, so a file whose removal failed is never merged twice. A writer
// holds flock() on its files; a file that is held is left alone.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/store/run_ops.h"
#include "core/store/sqlite.h"

namespace comera {

// The spilled rows of one writer: files in the order in which they were begun, a further one where the last one cannot grow.
// Thread: one at a time.
class Spill {
 public:
  // A file is created with the first append(). `start` lets a merge make the run again when the store was replaced.
  Spill(const std::string& store, const std::string& run_id, const RunStart& start, double created);
  ~Spill();  // closes; the files stay unless they were removed
  Spill(const Spill&) = delete;
  Spill& operator=(const Spill&) = delete;

  bool exists() const { return !files_.empty(); }
  std::string paths() const;  // "A", or "A and B"
  // All of `ops` or none: false when they cannot be written anywhere, problem() says why.
  bool append(const std::vector<RunOp>& ops, const MetricNames& names);
  const std::string& problem() const { return problem_; }  // of the last append(): a line for each place that failed
  // Does all their ops in the caller's transaction. After the commit call remove().
  void merge_into(Database& db);
  void remove();

 private:
  struct File {
    std::string path;
    int handle = -1;
    int64_t bytes = 0;
  };
  bool create_in(const std::string& folder);
  bool write(File& file, const std::string& text);
  std::string store_, run_id_, header_, problem_;
  std::vector<File> files_;
};

// Of this store, in the order in which they were begun: beside it, and in rescue folders.
std::vector<std::string> spill_files(const std::string& store);
// Merges every spill file that no living writer holds, each in a transaction of its own, then takes in rescued checkpoints.
// Damaged lines are left out and the file is kept as *.damaged then. Returns a line of text for each file that was merged or
// could not be.
std::vector<std::string> merge_spills(Database& db);
// Whether merge_spills() may find something to do.
bool has_spills(const std::string& store);

}  // namespace comera
