// The database of runs. `PRAGMA user_version` is the schema's version; migrations are in schema.cpp.
//
//   runs         one row a run: identity, resolved config (JSON, as it was at the start), lineage, truthful status
//                (pid, boot and heartbeat tell whether "running" is still true), and a summary, so that lists never
//                read curves
//   metric_names id <-> name
//   metrics      (run, metric, step) -> value, every step. NaN is stored as the text 'nan', since SQLite turns a NaN
//                number into NULL; infinities are numbers
//   ranks        live rank of a bond (counted from 1), a row only when it changed
//   memory       bytes by purpose, a row only when they changed
//   events       what happened, in order: start, edit, stage, truncation, checkpoint, alert, resume; body is JSON
//   checkpoints  files that can be resumed from
#pragma once
#include "core/store/sqlite.h"

namespace comera {

inline constexpr int kSchemaVersion = 2;

// Brings a database to kSchemaVersion: makes the tables of a new file, migrates an older one after a copy of it was
// written beside it (FILE.v1-backup). Throws Error(storage) for a newer one, which is left as it is.
void prepare_schema(Database& database);
// The same check for a reader: throws for a newer schema, or a database that is not ours.
void check_schema(Database& database);

}  // namespace comera
