// The command line: one file a verb. A verb adds its options and a function to run; results go to stdout,
// messages and progress to stderr. Exit codes are ErrorCode, 0, 2 for usage, 130/143 after a signal.
#pragma once
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "app/cli/verb.h"
#include "app/format.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/config/config.h"
#include "core/session/evaluation.h"

namespace comera::cli {

inline constexpr int kSchemaVersion = 1;  // in every JSON document

struct Context {  // options of all verbs, and the action that the chosen verb sets for main
  bool json = false, plain = false, quiet = false, no_color = false, no_input = false, yes = false;
  std::string store;            // --store, else $COMERA_STORE, else the user's data folder
  std::function<int()> action;  // the chosen verb; returns the exit code
};

// Prints one JSON document that begins with schema_version.
void print_json(Json document);
Json number_json(double value);  // null where it is not finite
// A table: human (aligned) or plain (tab-separated, no header).
void print_table(const Context& context, const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows);
// A line on stderr unless --quiet.
void note(const Context& context, const std::string& line);
bool stderr_is_terminal();
// True on a terminal or with FORCE_COLOR; never with --no-color or NO_COLOR. `file`: 1 stdout, 2 stderr.
bool use_color(const Context& context, int file = 2);

double parse_duration(const std::string& text);  // "30m", "90s", "1.5h", "45" (seconds); throws Error(usage)
int64_t parse_bytes(const std::string& text);    // "64MiB", "1.5GiB", "64MB", "4096" (bytes); throws Error(usage)

// stdout takes either data or a JSON document. Throws Error(usage) when --json meets an `output` of "-".
// `option`: the option that sends the data to a file, for the message.
void check_stdout(const Context& context, const std::string& output, const std::string& option = "-o FILE");

// Reports an error on stderr or as a JSON document; returns `code`.
int report(const Context& context, int code, const std::string& what, const std::string& why, const std::string& hint);

// Throws Error(storage) with the text of errno.
[[noreturn]] void fail_to_write(const std::string& where);

// An input path: "-" is stdin, copied to a temporary file for the lifetime of this object; other paths are used unchanged.
class InputFile {
 public:
  explicit InputFile(const std::string& path);  // throws Error(storage)
  ~InputFile();
  InputFile(const InputFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  bool ours_ = false;
};

// Writes to a temporary name that finish() renames, so an existing file stays until the new one is complete. "-" or "" is stdout; stdout,
// pipes and devices are written directly. All members throw Error(storage).
class OutputFile {
 public:
  explicit OutputFile(std::string path);
  ~OutputFile();  // removes an unfinished file
  OutputFile(const OutputFile&) = delete;
  bool is_stdout() const { return path_.empty() || path_ == "-"; }
  std::ostream& stream();
  void finish();

 private:
  [[noreturn]] void fail() const;
  std::string path_, part_;  // part_: the temporary name; "" = direct output
  std::ofstream file_;
};

// The database to use: --store, else COMERA_STORE, else $XDG_DATA_HOME/comera/runs.db.
std::string store_path(const Context& context);
// The same for verbs that only read; a note on stderr if a newer version wrote the database.
std::string store_to_read(const Context& context);

// The checkpoint of a run, the last one or that of a step (-1: the last), or the file itself. Throws Error(not_found).
ModelPath model_file(const Context& context, const std::string& model, int64_t step);

// The verbs, one file each.
void add_train(Verb& program, Context& context);  // train, resume, fork
void add_eval(Verb& program, Context& context);   // eval, predict
void add_generate(Verb& program, Context& context);
void add_plan(Verb& program, Context& context);
void add_duel(Verb& program, Context& context);
void add_sweep(Verb& program, Context& context);
void add_config(Verb& program, Context& context);
void add_data(Verb& program, Context& context);
void add_doctor(Verb& program, Context& context);
void add_bench(Verb& program, Context& context);
void add_runs(Verb& program, Context& context);    // runs, get, ranks, query
void add_export(Verb& program, Context& context);  // export, import
void add_reproduce(Verb& program, Context& context);
void add_completion(Verb& program, Context& context);

}  // namespace comera::cli
