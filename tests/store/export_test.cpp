// CSV, JSON Lines and other stores: what goes out comes in again, and bad files are refused with the place.
#include "core/store/export.h"

#include <cmath>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/base/csv.h"
#include "core/base/json.h"
#include "core/store/import.h"
#include "core/store/schema.h"
#include "core/store/trace.h"
#include "tests/store/old_schemas.h"
#include "tests/store/support.h"

namespace comera {
namespace {

using test::error_of;
using test::Folder;
using test::has;

// A run with every kind of row, and values that are hard to spell.
std::string make_rich_run(const std::string& store) {
  RunWriter writer(store, test::start_of("rich, \"run\""), test::quick());
  writer.metrics(1, NamedValues{{"loss", 0.1}, {"a,\"b\"\nc", 1e-300}});
  writer.metrics(2, NamedValues{{"loss", std::nan("")}});
  writer.metrics(3, NamedValues{{"loss", INFINITY}, {"a,\"b\"\nc", -INFINITY}});
  writer.rank(1, "enc0.attn.q", 2, 30);
  writer.memory(1, "tt_core", 77);
  writer.event(1, "edit", R"({"path":"x","value":1})");
  writer.checkpoint(3, "c.safetensors", 5, "final");
  writer.finish("finished");
  EXPECT_TRUE(writer.flush());
  return writer.run_id();
}

std::string csv_of(const RunReader& reader, const std::vector<std::string>& ids, bool wide = false) {
  std::ostringstream out;
  export_csv(reader, ids, out, wide);
  return out.str();
}

// Wall times are of now: replaced to compare the rest.
std::string without_times(const RunReader& reader, const std::string& id, std::string text) {
  for (double time : reader.wall_times(id).values) {
    const std::string cell = "," + number_text(time) + ",";
    for (size_t at; (at = text.find(cell)) != std::string::npos;) text.replace(at, cell.size(), ",T,");
  }
  for (size_t at; (at = text.find(id)) != std::string::npos;) text.replace(at, id.size(), "R");
  return text;
}

// What the format asks of every event, and that steps, phases and ops stand where they belong.
TEST(Export, ATraceIsOfTheTraceEventFormat) {
  Folder folder;
  std::string id;
  {
    RunWriter writer(folder.store(), test::start_of("traced \"run\""), test::quick());
    writer.event(0, "start", "{}");
    for (int64_t step = 1; step <= 5; ++step) writer.metrics(step, NamedValues{{"step_ms", 2.5}, {"train_loss", step == 4 ? NAN : 0.5}});
    writer.metrics(5, NamedValues{{"val_loss", 0.4}});
    writer.event(5, "profile",
                 R"({"steps": 3, "step_ms": {"mean": 2.5}, "phases": [{"name": "forward", "mean": 1.5, "median": 1.4, "p95": 2},
                                   {"name": "backward", "mean": 1.0}], "ops": [{"op": "linear", "ms": 0.75, "calls": 4, "gflop": 0.5}]})");
    writer.event(5, "profile", "no json");
    writer.finish("finished");
    ASSERT_TRUE(writer.flush());
    id = writer.run_id();
  }
  const RunReader reader(folder.store());
  std::ostringstream out;
  export_trace(reader, id, out);
  const Json trace = parse_json(out.str(), "the trace");
  EXPECT_EQ(trace["otherData"]["run"], id);
  std::map<std::string, int> kinds;
  std::map<int, double> end;  // of each row
  double step_at = 0;
  for (const Json& event : trace["traceEvents"]) {
    ASSERT_TRUE(event["name"].is_string() && event["ph"].is_string() && event["pid"].is_number_integer()) << event;
    const std::string kind = event["ph"];
    ++kinds[kind];
    if (kind == "M") {
      EXPECT_TRUE(event["args"]["name"].is_string()) << event;
      continue;
    }
    ASSERT_TRUE(event["ts"].is_number() && event["tid"].is_number_integer()) << event;
    EXPECT_GE(event["ts"].get<double>(), 0) << event;
    if (kind == "i") {
      EXPECT_EQ(event["s"], "p");
      continue;
    }
    ASSERT_EQ(kind, "X");
    ASSERT_TRUE(event["dur"].is_number()) << event;
    double& last = end[event["tid"]];
    EXPECT_GE(event["ts"].get<double>(), last - 0.01) << "one after another: " << event;
    last = event["ts"].get<double>() + event["dur"].get<double>();
    if (event["name"] == "step") {
      EXPECT_EQ(event["dur"], 2500) << "microseconds";
      EXPECT_EQ(event["args"].contains("loss"), event["args"]["step"] != 4);
      step_at = event["ts"];
    } else if (event["name"] == "forward" || event["name"] == "linear") {
      EXPECT_NEAR(event["ts"].get<double>(), step_at, 0.01) << "under the step that was timed last";
      EXPECT_EQ(event["args"]["mean_of_steps"], 3);
    } else {
      EXPECT_EQ(event["name"], "backward");
      EXPECT_NEAR(event["ts"].get<double>(), step_at + 1500, 0.01);
    }
  }
  EXPECT_EQ(kinds["X"], 5 + 2 + 1);
  EXPECT_GE(kinds["i"], 3);
  EXPECT_TRUE(has(error_of([&] { export_trace(reader, "r-nothing", out); }), {"r-nothing"}));
}

TEST(Export, NumbersReadBackTheSame) {
  EXPECT_EQ(number_text(0.1), "0.1");
  EXPECT_EQ(number_text(1), "1");
  EXPECT_EQ(number_text(-2.5e-300), "-2.5e-300");
  EXPECT_EQ(number_text(-std::nan("")), "nan");
  EXPECT_EQ(number_text(-INFINITY), "-inf");
  for (double value : {1.0 / 3, 5e-324, 1.7976931348623157e308, 123456789.125})
    EXPECT_EQ(std::strtod(number_text(value).c_str(), nullptr), value);
}

TEST(Export, TidyCsv) {
  Folder folder;
  const std::string id = make_rich_run(folder.store());
  RunReader reader(folder.store());
  EXPECT_EQ(without_times(reader, id, csv_of(reader, {id})),
            "run,step,wall_time,metric,value\r\n"
            "R,1,T,\"a,\"\"b\"\"\nc\",1e-300\r\n"
            "R,1,T,loss,0.1\r\n"
            "R,2,T,loss,nan\r\n"
            "R,3,T,\"a,\"\"b\"\"\nc\",-inf\r\n"
            "R,3,T,loss,inf\r\n");
}

TEST(Export, WideCsv) {
  Folder folder;
  const std::string id = make_rich_run(folder.store()), other = test::make_run(folder.store(), "b", 1);
  RunReader reader(folder.store());
  EXPECT_EQ(without_times(reader, other, without_times(reader, id, csv_of(reader, {id, other}, true))),
            "run,step,wall_time,loss,\"a,\"\"b\"\"\nc\"\r\n"
            "R,1,T,0.1,1e-300\r\n"
            "R,2,T,nan,\r\n"
            "R,3,T,inf,-inf\r\n"
            "R,1,T,1,\r\n");
}

TEST(Export, JsonLines) {
  Folder folder;
  const std::string id = make_rich_run(folder.store());
  std::ostringstream out;
  export_jsonl(RunReader(folder.store()), {id}, out);
  std::istringstream lines(out.str());
  std::string line, types;
  while (std::getline(lines, line)) {
    const auto json = parse_valid_json(line);
    EXPECT_EQ(json.at("run"), id);
    types += json.at("type").get<std::string>() + " ";
    if (json.at("type") == "run") {
      EXPECT_EQ(json.at("config").at("train").at("batch"), 32);
    }
    if (json.at("type") == "event") {
      EXPECT_EQ(json.at("body").at("path"), "x");
    }
    if (json.at("type") == "metrics" && json.at("step") == 3) {
      EXPECT_EQ(json.at("values").at("loss"), "inf");
    }
  }
  EXPECT_EQ(types, "run metrics metrics metrics rank memory event checkpoint ");
}

TEST(Export, FailingStreamIsToldAndUnknownRunToo) {
  Folder folder;
  const std::string id = test::make_run(folder.store(), "a", 100);
  RunReader reader(folder.store());
  std::ofstream full("/dev/full");
  ASSERT_TRUE(full);
  EXPECT_TRUE(has(error_of([&] { export_csv(reader, {id}, full); }), {test::code(ErrorCode::storage), "cannot write"}));
  std::ostringstream out;
  EXPECT_TRUE(has(error_of([&] { export_jsonl(reader, {"r-nosuch"}, out); }), {test::code(ErrorCode::not_found)}));
}

TEST(Csv, CellsThatEndALineAreQuoted) {
  for (const char* text : {"a,b", "a\nb", "a\rb"}) EXPECT_EQ(csv_field(text), "\"" + std::string(text) + "\"");
  EXPECT_EQ(csv_field("a\"b"), "\"a\"\"b\"");
  EXPECT_EQ(csv_field("a b"), "a b");
}

TEST(Csv, QuotingTable) {
  struct Case {
    const char* text;
    std::vector<std::vector<std::string>> records;
  };
  const Case cases[] = {
      {"", {}},
      {"a,b", {{"a", "b"}}},
      {"a,b\r\nc,d\r\n", {{"a", "b"}, {"c", "d"}}},
      {"a,b\nc,d\n", {{"a", "b"}, {"c", "d"}}},
      {"\"a,b\",\"c\"\"d\"\n", {{"a,b", "c\"d"}}},
      {"\"line 1\r\nline 2\",x\n", {{"line 1\r\nline 2", "x"}}},
      {",,\n", {{"", "", ""}}},
      {"\"\",x\n", {{"", "x"}}},
      {"\xEF\xBB\xBFstep\n", {{"step"}}},
      {"a\"b,c\n", {{"a\"b", "c"}}},
  };
  for (const Case& c : cases) {
    std::istringstream in(c.text);
    CsvReader reader(in);
    std::vector<std::vector<std::string>> records;
    for (std::vector<std::string> fields; reader.next(fields);) records.push_back(fields);
    EXPECT_EQ(records, c.records) << c.text;
  }
  for (const std::string text : {"plain", "a,b", "q\"q", "two\nlines", "cr\rcr", ""}) {
    std::istringstream in(csv_field(text) + ",end\r\n");
    CsvReader reader(in);
    std::vector<std::string> fields;
    ASSERT_TRUE(reader.next(fields));
    EXPECT_EQ(fields, (std::vector<std::string>{text, "end"}));
  }
  std::istringstream open("a,\"b\nc");
  CsvReader reader(open);
  std::vector<std::string> fields;
  EXPECT_TRUE(has(error_of([&] { reader.next(fields); }), {test::code(ErrorCode::config), "never ends"}));
}

// ---- import ------------------------------------------------------------------------------------------------------

TEST(Import, CsvRoundTrip) {
  for (const bool wide : {false, true}) {
    Folder folder;
    const std::string a = make_rich_run(folder.store()), b = test::make_run(folder.store(), "b", 5);
    RunReader reader(folder.store());
    const std::string text = csv_of(reader, {a, b}, wide);
    test::write_text(folder.file("runs.csv"), text);
    const Imported imported = import_any(folder.file("new.db"), folder.file("runs.csv"));
    EXPECT_EQ(imported.points, 10);
    ASSERT_EQ(imported.ids.size(), 2u);
    RunReader copy(folder.file("new.db"));
    const RunRow run = copy.run(imported.ids[0]);
    EXPECT_EQ(run.name, a);
    EXPECT_EQ(run.status, "finished");
    EXPECT_EQ(run.tags, std::vector<std::string>{"imported"});
    EXPECT_EQ(run.summary.step, 3);
    EXPECT_EQ(run.created, reader.wall_times(a).values.at(0));
    std::string again = csv_of(copy, imported.ids, wide);
    for (size_t i = 0; i < 2; ++i)
      for (size_t at; (at = again.find(imported.ids[i])) != std::string::npos;) again.replace(at, 8, i == 0 ? a : b);
    EXPECT_EQ(again, text);
  }
}

TEST(Import, CsvOfOtherPrograms) {
  Folder folder;
  test::write_text(folder.file("tb.csv"), "Wall time,Step,Value\n1700000000.5,0,0.5\n1700000001.5,10,NaN\n\n");
  const Imported imported = import_csv(folder.store(), folder.file("tb.csv"), "mine");
  RunReader reader(folder.store());
  const RunRow run = reader.run(imported.ids.at(0));
  EXPECT_EQ(run.name, "mine");
  EXPECT_EQ(run.active_s, 1);
  EXPECT_EQ(reader.metric(run.id, "Value").steps, (std::vector<int64_t>{0, 10}));
  test::write_text(folder.file("plain.csv"), "step,loss,acc\n1,0.5,\n2,,0.25\n");
  const Imported plain = import_csv(folder.store(), folder.file("plain.csv"));
  EXPECT_EQ(reader.run(plain.ids.at(0)).name, "plain");
  EXPECT_EQ(reader.metric(plain.ids.at(0), "acc").steps, std::vector<int64_t>{2});
}

TEST(Import, CurvesThatAreHereAlreadyAreFound) {
  Folder folder;
  const auto csv = [&](const std::string& name, const std::string& rows) {
    test::write_text(folder.file(name), "run,step,metric,value\n" + rows);
    return folder.file(name);
  };
  const std::string a = "a,1,loss,0.5\na,2,loss,nan\na,2,acc,0.25\n", b = "b,1,loss,0.5\nb,2,loss,0.125\n";
  const Imported first = import_csv(folder.store(), csv("a.csv", a));
  EXPECT_TRUE(first.same.empty() && first.notes.empty());
  const auto runs = [&] { return RunReader(folder.store()).runs().size(); };
  // A copy under another name, unasked: nothing changes.
  const Imported refused = import_any(folder.store(), csv("copy.csv", a), "", Twice::refused);
  EXPECT_TRUE(refused.ids.empty());
  EXPECT_EQ(refused.points, 0);
  ASSERT_EQ(refused.same.size(), 1u);
  EXPECT_EQ(refused.same[0].id, first.ids[0]);
  EXPECT_EQ(refused.same[0].name, "a");
  EXPECT_EQ(runs(), 1u);
  // Asked for, it is one more run, and the notes say which it is like.
  const Imported again = import_any(folder.store(), folder.file("copy.csv"));
  ASSERT_EQ(again.ids.size(), 1u);
  ASSERT_EQ(again.notes.size(), 1u);
  EXPECT_EQ(again.notes[0], "run " + again.ids[0] + " has the same curves as run " + first.ids[0] + " (a), which was already here");
  EXPECT_EQ(runs(), 2u);
  // A value, a point more or less, or another metric: not the same.
  for (const char* other :
       {"a,1,loss,0.5\na,2,loss,nan\na,2,acc,0.26\n", "a,1,loss,0.5\na,2,loss,1\na,2,acc,0.25\n", "a,1,loss,0.5\na,2,loss,nan\n",
        "a,0,loss,1\na,1,loss,0.5\na,2,loss,nan\na,2,acc,0.25\n", "a,1,loss,0.5\na,2,loss,nan\na,2,accuracy,0.25\n"})
    EXPECT_EQ(import_any(folder.store(), csv("other.csv", other), "", Twice::refused).ids.size(), 1u) << other;
  // Of several runs one is new: all are imported. Two equal ones in one file are no repetition.
  const size_t before = runs();
  const Imported both = import_any(folder.store(), csv("both.csv", a + b + "c,1,loss,0.5\nc,2,loss,0.125\n"), "", Twice::refused);
  EXPECT_EQ(both.ids.size(), 3u);
  ASSERT_EQ(both.same.size(), 1u);
  EXPECT_EQ(both.same[0].imported, both.ids[0]);
  EXPECT_EQ(runs(), before + 3);
}

TEST(Import, BadCsvIsRefusedWithThePlaceAndLeavesNothing) {
  struct Case {
    const char* text;
    const char* why;
  };
  const Case cases[] = {
      {"", "it is empty"},
      {"a,b\n1,2\n", "no column 'step'"},
      {"step\n1\n", "no column with values"},
      {"step,loss\n", "it has no values"},
      {"step,loss\n1,0.5\n2,abc\n", "line 3: 'abc' is not a number"},
      {"step,loss\n1.5,0.5\n", "line 2: the step is not a whole number"},
      {"step,loss\nnan,0.5\n", "line 2: the step is not a whole number"},
      {"step,loss\n1,0.5,9\n", "line 2 has 3 fields, the first line 2"},
      {"step,loss\n1,\"0.5\n", "never ends"},
      {"run,step,metric,value\na,1,loss,\n", "'' is not a number"},
  };
  Folder folder;
  open_store(folder.store(), StoreAccess::create);
  for (const Case& c : cases) {
    test::write_text(folder.file("bad.csv"), c.text);
    EXPECT_TRUE(has(error_of([&] { import_csv(folder.store(), folder.file("bad.csv")); }), {test::code(ErrorCode::config), c.why}))
        << c.text;
  }
  EXPECT_TRUE(RunReader(folder.store()).runs(true).empty());
  EXPECT_TRUE(has(error_of([&] { import_any(folder.store(), folder.file("missing")); }), {test::code(ErrorCode::not_found)}));
  test::write_text(folder.file("binary"), std::string("\x7f"
                                                      "ELF\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
                                                      18));
  EXPECT_TRUE(has(error_of([&] { import_any(folder.store(), folder.file("binary")); }), {test::code(ErrorCode::config), "neither"}));
}

TEST(Import, AnotherStore) {
  Folder folder;
  const std::string other = folder.file("other.db");
  test::make_run(folder.store(), "mine");  // metric keys differ between the stores
  const std::string rich = make_rich_run(other), running = [&] {
    RunStart child = test::start_of("child");
    child.parent = RunReader(other).runs().at(0).id;
    child.fork_step = 2;
    RunWriter writer(other, child, test::quick());
    EXPECT_TRUE(writer.flush());
    return writer.run_id();
  }();
  open_store(other, StoreAccess::write)->run("UPDATE runs SET status = 'running' WHERE name = 'child'");
  const Imported imported = import_any(folder.store(), other);
  EXPECT_EQ(imported.ids, (std::vector<std::string>{rich, running}));
  EXPECT_EQ(imported.points, 5);
  EXPECT_TRUE(has(imported.notes.at(0), {"1 checkpoint stays"}));
  RunReader from(other), to(folder.store());
  EXPECT_EQ(csv_of(to, {rich}), csv_of(from, {rich}));
  EXPECT_EQ(to.run(rich).name, "rich, \"run\"");
  EXPECT_EQ(to.config(rich), from.config(rich));
  EXPECT_EQ(to.run(running).parent, rich);
  EXPECT_EQ(to.run(running).fork_step, 2);
  EXPECT_EQ(to.run(running).status, "interrupted");
  EXPECT_EQ(Database(folder.store(), Database::Mode::read).text("SELECT status FROM runs WHERE name = 'child'"), "interrupted");
  EXPECT_EQ(to.ranks_at(rich, 5).at(0).rank, 30);
  EXPECT_EQ(to.events(rich).size(), 1u);
  EXPECT_TRUE(to.checkpoints(rich).empty());
  // Again: nothing is doubled. With a clash of ids that is another run: a new id.
  EXPECT_TRUE(import_store(folder.store(), other).ids.empty());
  open_store(other, StoreAccess::write)->run("UPDATE runs SET created = created + 1 WHERE name LIKE 'rich%'");
  const Imported clash = import_store(folder.store(), other);
  ASSERT_EQ(clash.ids.size(), 1u);
  EXPECT_NE(clash.ids[0], rich);
  const Imported again = import_store(folder.store(), other);
  EXPECT_TRUE(again.ids.empty()) << "it is here under its new id";
  EXPECT_TRUE(has(again.notes.at(1), {clash.ids[0].c_str(), "is already here"}));
  EXPECT_EQ(to.runs().size(), 4u);
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    EXPECT_EQ(entry.path().string().find(".import-"), std::string::npos) << "a copy was left behind";
}

TEST(Import, AnOlderStoreIsReadAndNotChanged) {
  Folder folder;
  const std::string old = folder.file("old.db");
  test::make_version_1(old);
  EXPECT_EQ(import_any(folder.store(), old).ids, (std::vector<std::string>{"r-000002", "r-000001"}));
  EXPECT_EQ(RunReader(folder.store()).run("r-000001").active_s, 60);
  EXPECT_EQ(Database(old, Database::Mode::read).number("PRAGMA user_version"), 1);
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    EXPECT_EQ(entry.path().string().find("backup"), std::string::npos) << "a copy was left behind";
}

TEST(Import, StoresThatAreNone) {
  Folder folder;
  test::make_run(folder.store(), "mine");
  { Database(folder.file("foreign.db"), Database::Mode::create).run("CREATE TABLE music(a)"); }
  EXPECT_TRUE(has(error_of([&] { import_any(folder.store(), folder.file("foreign.db")); }),
                  {test::code(ErrorCode::config), "foreign.db", "another program"}));
  EXPECT_TRUE(has(error_of([&] { import_store(folder.store(), folder.store()); }), {test::code(ErrorCode::usage), "itself"}));
  { open_store(folder.file("newer.db"), StoreAccess::create)->run("PRAGMA user_version = 99"); }
  EXPECT_TRUE(has(error_of([&] { import_any(folder.store(), folder.file("newer.db")); }), {test::code(ErrorCode::config), "schema 99"}));
  EXPECT_EQ(RunReader(folder.store()).runs().size(), 1u);
}

}  // namespace
}  // namespace comera
