// Runs from files of other programs, each into the store as new runs; all of a file or nothing. A file that does not
// hold what it should throws Error(config) with the place (line or byte), a missing one Error(not_found).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace comera {

struct SameCurves {  // a run that was here before, and the new one that has every point of it and no other
  std::string id, name, imported;
};
struct Imported {
  std::vector<std::string> ids;    // the new runs, in the order of the file
  int64_t points = 0;              // metric values
  std::vector<std::string> notes;  // what was left out and why, and what was here already; one line each
  std::vector<SameCurves> same;    // of CSV and event files
};

enum class Twice {
  allowed,
  refused
};  // refused: a CSV or event file of which every run is here already changes nothing, and `ids` is empty

// `name` of the new run; "" = from the file. Runs from CSV and event files are `finished` and tagged "imported".
// Tidy (run,step,wall_time,metric,value; run and wall_time may be missing) or wide (a step column, then metrics).
Imported import_csv(const std::string& store, const std::string& path, const std::string& name = "", Twice twice = Twice::allowed);
// An event file, or a folder: each folder with event files in it becomes a run.
Imported import_tfevents(const std::string& store, const std::string& path, const std::string& name = "", Twice twice = Twice::allowed);
// Every run of another store (of this version or an older one; it is not changed). They keep id, status and tags; an id
// that is taken by another run gets a new one, a run that is already here is left as it is, also under such an id. Checkpoints stay with
// the other store: two stores must not own one file.
Imported import_store(const std::string& store, const std::string& path);
// By content, not by name.
Imported import_any(const std::string& store, const std::string& path, const std::string& name = "", Twice twice = Twice::allowed);

}  // namespace comera
