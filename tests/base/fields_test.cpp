// Config fields: JSON and --set go in, every problem comes out with its path and a suggestion.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/json.h"

namespace comera {
namespace {

struct Inner {
  double rate = 0.5;
  std::vector<int64_t> modes = {2, 3};
  void fields(FieldVisitor& v) {
    v.field("rate", rate, {.help = "a rate", .range = {0, 1}, .live = Live::yes});
    v.field("modes", modes, {.help = "modes", .range = {1, 100}});
  }
};
struct Outer {
  int64_t count = 4;
  bool flag = false;
  std::string kind = "tt";
  Inner inner;
  void fields(FieldVisitor& v) {
    v.field("count", count, {.help = "a count", .range = {1, 10}});
    v.field("flag", flag, {.help = "a flag"});
    v.field("kind", kind, {.help = "a kind", .choices = {{"tt"}, {"dense"}}});
    v.group("inner", inner);
  }
};

std::vector<Problem> read(Outer& config, const std::string& text) {
  std::vector<Problem> problems;
  fields_from_json(fields_of(config), parse_json(text, "test"), problems);
  return problems;
}

TEST(Fields, JsonRoundTripKeepsEveryValue) {
  Outer a;
  a.count = 7;
  a.flag = true;
  a.kind = "dense";
  a.inner = {0.125, {5, 6, 7}};
  Outer b;
  std::vector<Problem> problems;
  fields_from_json(fields_of(b), fields_to_json(fields_of(a)), problems);
  EXPECT_TRUE(problems.empty());
  EXPECT_EQ(fields_to_json(fields_of(a)).dump(), fields_to_json(fields_of(b)).dump());
  EXPECT_EQ(b.inner.modes, (std::vector<int64_t>{5, 6, 7}));
}

TEST(Fields, CommentsAreAllowedAndAbsentKeysKeepTheirValue) {
  Outer config;
  EXPECT_TRUE(read(config, "{ // how many\n \"count\": 2 /* all */ }").empty());
  EXPECT_EQ(config.count, 2);
  EXPECT_EQ(config.kind, "tt");
}

struct BadCase {
  const char* text;
  const char* path;
  const char* contains;
  const char* hint;
};

TEST(Fields, EveryKindOfMistakeNamesItsPath) {
  const BadCase cases[] = {
      {R"({"cuont": 2})", "cuont", "not a known setting", "did you mean 'count'?"},
      {R"({"inner": {"rote": 1}})", "inner.rote", "not a known setting", "did you mean 'inner.rate'?"},
      {R"({"count": 0})", "count", "must be 1 to 10, is 0", ""},
      {R"({"count": 1048577})", "count", "must be 1 to 10, is 1048577", ""},
      {R"({"count": 2.5})", "count", "must be a whole number", ""},
      {R"({"count": "two"})", "count", "must be a whole number", ""},
      {R"({"inner": {"rate": 2}})", "inner.rate", "must be 0 to 1, is 2", ""},
      {R"({"flag": 1})", "flag", "must be true or false", ""},
      {R"({"kind": "dens"})", "kind", "is not one of: tt, dense", "did you mean 'dense'?"},
      {R"({"inner": {"modes": [2, 0]}})", "inner.modes", "must be 1 to 100, is 0", ""},
      {R"({"inner": {"modes": 3}})", "inner.modes", "must be a list", ""},
      {R"({"inner": 3})", "inner", "must be an object", ""},
  };
  for (const BadCase& bad : cases) {
    Outer config;
    const std::vector<Problem> problems = read(config, bad.text);
    ASSERT_EQ(problems.size(), 1u) << bad.text;
    EXPECT_EQ(problems[0].path, bad.path) << bad.text;
    EXPECT_NE(problems[0].text.find(bad.contains), std::string::npos) << problems[0].text;
    EXPECT_EQ(problems[0].hint, bad.hint) << bad.text;
    EXPECT_EQ(config.count, 4) << "a wrong value must not be taken: " << bad.text;
  }
}

TEST(Fields, AllProblemsAreReportedAtOnce) {
  Outer config;
  EXPECT_EQ(read(config, R"({"count": 99, "flag": 3, "nothing_like_it": 1})").size(), 3u);
}

TEST(Fields, SetTakesPathsAndBareWords) {
  Outer config;
  std::vector<Problem> problems;
  fields_set(fields_of(config), "inner.rate", "0.25", problems);
  fields_set(fields_of(config), "kind", "dense", problems);
  fields_set(fields_of(config), "inner.modes", "[4,4]", problems);
  EXPECT_TRUE(problems.empty());
  EXPECT_EQ(config.inner.rate, 0.25);
  EXPECT_EQ(config.kind, "dense");
  EXPECT_EQ(config.inner.modes, (std::vector<int64_t>{4, 4}));
  fields_set(fields_of(config), "inner.rato", "1", problems);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].hint, "did you mean 'inner.rate'?");
}

TEST(Fields, ListNamesTypeValueAndLiveness) {
  Outer config;
  const std::vector<FieldEntry> entries = fields_list(fields_of(config));
  ASSERT_EQ(entries.size(), 5u);
  EXPECT_EQ(entries[3].path, "inner.rate");
  EXPECT_EQ(entries[3].type, "number");
  EXPECT_EQ(entries[3].value, "0.5");
  EXPECT_EQ(entries[3].info.live, Live::yes);
  EXPECT_EQ(entries[4].value, "[2,3]");
}

TEST(Json, SyntaxErrorNamesLineAndColumn) {
  try {
    parse_json("{\n  \"a\": 1,\n  \"b\" 2\n}", "some.json");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::config);
    EXPECT_EQ(std::string(error.what()).rfind("some.json:3:", 0), 0u) << error.what();
  }
  EXPECT_THROW(parse_json("", "empty.json"), Error);
  EXPECT_THROW(parse_json("{\"a\": 1e999}", "large.json"), Error);
  EXPECT_THROW(read_json_file("/nonexistent/file.json"), Error);
}

TEST(Names, NearestIsOfferedOnlyWhenItIsNear) {
  EXPECT_EQ(nearest_name("trian", {"train", "plan", "eval"}), "train");
  EXPECT_EQ(nearest_name("xyzzy", {"train", "plan", "eval"}), "");
}

}  // namespace
}  // namespace comera
