// Runs as files of other programs. Window and command line call these same functions, so they give the same bytes.
#pragma once
#include <ostream>
#include <string>
#include <vector>

#include "core/store/run_reader.h"

namespace comera {

// A number as all exports spell it: shortest text that reads back the same, dot decimals, nan, inf, -inf.
std::string number_text(double value);
// A field of RFC 4180: quoted when it holds a comma, a quote or a line break.
std::string csv_field(const std::string& text);

// RFC 4180 (CRLF line ends). Tidy: run,step,wall_time,metric,value. Wide: run,step,wall_time, then a column a metric;
// a value that was not recorded is empty, one that is not a number is `nan`. Throws Error(storage) when `out` fails.
void export_csv(const RunReader& reader, const std::vector<std::string>& ids, std::ostream& out, bool wide = false);

// JSON Lines: of each run a line {"type":"run",...}, then its metrics (one line a step), ranks, memory, events and
// checkpoints. NaN and infinities are the texts "nan", "inf", "-inf".
void export_jsonl(const RunReader& reader, const std::vector<std::string>& ids, std::ostream& out);

// A TensorBoard event file FOLDER/RUN_NAME-RUN_ID/events.out.tfevents.SECONDS.comera. Returns its path. A file that is
// already there is replaced. Names such as "loss" become tags as they are.
std::string export_tfevents(const RunReader& reader, const std::string& id, const std::string& folder);

}  // namespace comera
