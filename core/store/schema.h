// The documented schema of the store, and the ways to a sound connection.
//
// A store is a SQLite database (WAL) with application_id 0x434F4D45 and user_version = kSchemaVersion.
// Times are seconds since 1970. Not a number: SQLite knows no NaN, so in `metrics.value` NULL *is* NaN (a row that
// exists was recorded); infinities are stored as such; -0.0 comes back as 0.0. In the summary columns of `runs` NULL
// means not known.
//
//   runs          run (internal key), id, name, created, status, message, pid, boot_id, owner, heartbeat, active_s,
//                 seed, device, data_fingerprint, parent (id), fork_step, step, total_steps, stage, train_loss,
//                 val_loss, val_accuracy, entries, bytes, dense_bytes, compression, peak_bytes, step_ms,
//                 tags (JSON list), notes, archived, config (JSON)
//   metric_names  metric, name
//   metrics       run, metric, step, value          every step
//   steps         run, step, wall_time              when its metrics were given
//   ranks         run, layer, bond, step, rank      only changes: in force from this step on
//   memory        run, purpose, step, bytes         only changes
//   events        run, seq, step, kind, time, body (JSON)
//   checkpoints   run, step, path, bytes, kind, time
//   spills        token                             spill files already merged
//
// View run_metrics(id, run_name, metric, step, wall_time, value) joins them for free queries.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/store/sqlite.h"

namespace comera {

// Version 1 did not count active_s (development builds). A change of the schema adds one to it and one step to
// migrate() in schema.cpp; tests/store/schema_test.cpp keeps a store of each old version.
inline constexpr int64_t kApplicationId = 0x434F4D45;  // "COME", so that file(1) and we know it
inline constexpr int64_t kSchemaVersion = 2;

// What the list of runs tells of each besides when it was created. The index runs_list holds all of it: a list of thousands
// reads that alone, not the table, whose rows carry their configs and lie a page apart.
inline constexpr const char* kListColumns =
    "id, name, status, message, pid, boot_id, heartbeat, active_s, seed, device, data_fingerprint, parent, fork_step, step, total_steps, "
    "stage, train_loss, val_loss, val_accuracy, entries, bytes, dense_bytes, compression, peak_bytes, step_ms, tags, notes, archived";

enum class StoreAccess {
  read,    // an older store is migrated if it may be written; a newer one is read as it is
  write,   // must exist
  create,  // made when missing, its folder too
};
// A connection to a sound store of this version, for reading also of a newer one that still has every table and column
// that this program reads. Throws Error(not_found) (missing), Error(storage): newer version, not a store, damaged, locked,
// no permission. An older store is migrated after a copy STORE.v1-backup beside it; a newer one is never written.
std::unique_ptr<Database> open_store(const std::string& path, StoreAccess access, double busy_s = 5);

// What is wrong with a store that cannot be opened or read.
enum class StoreFault {
  none,
  newer,    // written by a newer version of this program, and something that this one reads is not there
  foreign,  // of another program, or no database
  damaged,  // of ours, and SQLite says that pages of it are broken, or tables are missing
  locked,   // another program holds it and lets nobody read
  other,    // no permission, a disk that fails
};
// Looks at the file; a missing one is `other`. Damage in pages that it does not touch is not found: see check_store().
StoreFault fault_of(const std::string& path);
// Why a store that is there cannot be written; "" = it can, as far as the rights of its file and folder tell.
std::string why_read_only(const std::string& path);
// Why one of a newer version, which may be read, is not written; "" = it is of this version or an older one. Of a path: ""
// also when it cannot be looked at.
std::string why_newer(Database& db);
std::string why_newer(const std::string& path);
// Whether another connection keeps the lock for writing all the time while this one waits `wait_s` for it. Only for a store
// that can be written: the lock is taken, and let go at once.
bool is_being_written(const std::string& path, double wait_s);

// Creates all tables in an empty database.
void create_schema(Database& db);

// Reads every page and looks for damage; one line a finding, empty = sound. Takes time on large stores.
std::vector<std::string> check_store(const std::string& path);

}  // namespace comera
