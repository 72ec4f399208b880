// safetensors files: what is written is read, the bytes are fixed, files made by an enemy are refused, a full disk
// leaves no ruin. To add a hostile case: a row in kHostile.
#include "core/tensor/safetensors.h"

#include <sys/mount.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>

#include "tests/store/support.h"

namespace comera {
namespace {

using test::error_of;
using test::Folder;
using test::has;

std::string file_of(const std::string& header, const std::string& data, int64_t claimed = -1) {
  const uint64_t size = claimed >= 0 ? static_cast<uint64_t>(claimed) : header.size();
  return std::string(reinterpret_cast<const char*>(&size), 8) + header + data;
}

TEST(Safetensors, WhoeverWatchesIsToldHowFarItIs) {
  Folder folder;
  const std::vector<float> values(10 << 20, 1.5f);  // 40 MiB: several writes
  const auto write = [&](const std::string& name) {
    SafetensorsWriter writer;
    writer.add("w", "F32", {static_cast<int64_t>(values.size())}, values.data());
    return writer.finish(folder.file(name));
  };
  std::vector<int64_t> told;
  int64_t total = 0;
  {
    const WatchWrites watch([&](int64_t done, int64_t of) {
      told.push_back(done);
      total = of;
    });
    write("a.safetensors");
  }
  ASSERT_GT(told.size(), 3u);
  EXPECT_TRUE(std::is_sorted(told.begin(), told.end()));
  EXPECT_EQ(total, static_cast<int64_t>(std::filesystem::file_size(folder.file("a.safetensors"))));
  EXPECT_EQ(told.back(), total);
  EXPECT_LT(told[told.size() / 2], total);
  const size_t before = told.size();
  write("b.safetensors");
  EXPECT_EQ(told.size(), before) << "nobody watches any more";
}

TEST(Safetensors, RoundTrip) {
  Folder folder;
  const std::string path = folder.file("a.safetensors");
  const float floats[6] = {1, -2.5f, INFINITY, -0.0f, 1e-40f, 3};
  const int64_t whole = int64_t{1} << 60;
  const uint8_t bytes[3] = {0, 127, 255};
  SafetensorsWriter writer;
  writer.metadata("step", "12");
  writer.metadata("caf\xc3\xa9 \"x\"", "two\nlines");
  writer.add("w", "F32", {2, 3}, floats);
  writer.add("none", "F16", {0, 5}, nullptr);
  writer.add("scalar", "I64", {}, &whole);
  writer.add("bytes", "U8", {3}, bytes);
  writer.add_values("half", "F64", {2}, {0.5, std::nan("")});
  const int64_t bytes_written = writer.finish(path);
  EXPECT_EQ(bytes_written, static_cast<int64_t>(std::filesystem::file_size(path)));

  SafetensorsFile file(path);
  EXPECT_EQ(file.metadata().at("step"), "12");
  EXPECT_EQ(file.metadata().at("caf\xc3\xa9 \"x\""), "two\nlines");
  ASSERT_EQ(file.entries().size(), 5u);
  EXPECT_EQ(file.entry("w").dtype, "F32");
  EXPECT_EQ(file.entry("w").shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(std::memcmp(file.data("w"), floats, sizeof floats), 0);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(file.data("w")) % 8, 0u);
  EXPECT_EQ(file.entry("none").count(), 0);
  EXPECT_EQ(file.values("scalar").at(0), static_cast<double>(whole));
  EXPECT_EQ(file.values("bytes"), (std::vector<double>{0, 127, 255}));
  EXPECT_TRUE(std::isnan(file.values("half").at(1)));
  EXPECT_FALSE(file.has("x"));
  EXPECT_TRUE(has(error_of([&] { file.entry("x"); }), {test::code(ErrorCode::storage), path, "no tensor 'x'"}));
}

TEST(Safetensors, SameTensorsSameBytes) {
  Folder folder;
  const float value = 1;
  const auto write = [&](const std::string& path) {
    SafetensorsWriter writer;
    writer.add("b", "F32", {1}, &value);
    writer.add("a", "F32", {}, &value);
    writer.metadata("z", "1");
    writer.metadata("y", "2");
    writer.finish(path);
  };
  write(folder.file("1"));
  write(folder.file("2"));
  EXPECT_EQ(test::read_text(folder.file("1")), test::read_text(folder.file("2")));
  const std::string header =
      R"({"__metadata__":{"y":"2","z":"1"},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[],"data_offsets":[4,8]}})";
  EXPECT_EQ(test::read_text(folder.file("1")).substr(8, header.size()), header);
}

TEST(Safetensors, SmallFormatsAndOddAlignmentAreRead) {
  Folder folder;
  // Half, bfloat16 and int8 at odd addresses, as others may write them.
  const std::string header =
      R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"h":{"dtype":"F16","shape":[3],"data_offsets":[1,7]},)"
      R"("b":{"dtype":"BF16","shape":[1],"data_offsets":[7,9]},"i":{"dtype":"I8","shape":[1],"data_offsets":[9,10]}})";
  test::write_text(folder.file("x"), file_of(header, std::string("\x05\x00\x3e\x01\x00\x00\xfc\x00\xc0\xff", 10)));
  SafetensorsFile file(folder.file("x"));
  EXPECT_EQ(file.values("h"), (std::vector<double>{1.5, std::ldexp(1.0, -24), -INFINITY}));
  EXPECT_EQ(file.values("b").at(0), -2);
  EXPECT_EQ(file.values("i").at(0), -1);
  EXPECT_EQ(file.values("a").at(0), 5);
}

TEST(Safetensors, EmptyFileOfNoTensors) {
  Folder folder;
  SafetensorsWriter().finish(folder.file("x"));
  EXPECT_TRUE(SafetensorsFile(folder.file("x")).entries().empty());
}

struct Hostile {
  const char* what;
  std::string bytes;
  const char* why;
};

std::string tensor(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return "{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}";
}
std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return "{\"a\":" + tensor(dtype, shape, offsets) + "}";
}

const std::string kEight(8, 'd');
const Hostile kHostile[] = {
    {"nothing", "", "only 0 bytes"},
    {"seven bytes", "1234567", "only 7 bytes"},
    {"header size beyond the limit", file_of("{}", "", 100'000'001), "limit"},
    {"header size of all ones", std::string(8, '\xff') + "{}", "limit"},
    {"header beyond the file", file_of("{}", "", 3), "the file has 10"},
    {"header cut short", file_of("{\"a\":", ""), "not valid JSON"},
    {"no JSON", file_of("hello", ""), "not valid JSON"},
    {"empty header", file_of("", ""), "not valid JSON"},
    {"text after the JSON", file_of("{}x", ""), "not valid JSON"},
    {"a list", file_of("[]", ""), "not a JSON object"},
    {"a number", file_of("7", ""), "not a JSON object"},
    {"bad UTF-8 in a name", file_of("{\"\xff\xfe\":" + tensor("F32", "[2]", "[0,8]") + "}", kEight), "not valid JSON"},
    {"bad UTF-8 in the metadata", file_of("{\"__metadata__\":{\"k\":\"\xc0\x80\"}}", ""), "not valid JSON"},
    {"deep nesting", file_of(std::string(100'000, '['), ""), "too deep"},
    {"deep nesting of objects",
     file_of(
         [] {
           std::string text;
           for (int i = 0; i < 1000; ++i) text += "{\"a\":";
           return text;
         }(),
         ""),
     "too deep"},
    {"name twice", file_of("{\"a\":" + tensor("U8", "[8]", "[0,8]") + ",\"a\":" + tensor("U8", "[8]", "[0,8]") + "}", kEight), "twice"},
    {"key of a tensor twice", file_of("{\"a\":{\"dtype\":\"U8\",\"dtype\":\"F64\",\"shape\":[8],\"data_offsets\":[0,8]}}", kEight),
     "twice"},
    {"metadata key twice", file_of("{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}}", ""), "twice"},
    {"metadata of numbers", file_of("{\"__metadata__\":{\"k\":1}}", ""), "is not a text"},
    {"metadata that is a list", file_of("{\"__metadata__\":[]}", ""), "not an object of texts"},
    {"tensor that is a text", file_of("{\"a\":\"b\"}", ""), "no dtype, shape and data_offsets"},
    {"no shape", file_of("{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,8]}}", kEight), "no dtype, shape and data_offsets"},
    {"unknown dtype", file_of(one("F33", "[2]", "[0,8]"), kEight), "unknown dtype"},
    {"dtype that is a number", file_of("{\"a\":{\"dtype\":1,\"shape\":[2],\"data_offsets\":[0,8]}}", kEight), "no dtype text"},
    {"negative size", file_of(one("F32", "[-2]", "[0,8]"), kEight), "not a whole number"},
    {"size with a fraction", file_of(one("F32", "[2.0]", "[0,8]"), kEight), "not a whole number"},
    {"size of 2^64", file_of(one("F32", "[18446744073709551616]", "[0,8]"), kEight), "not a whole number"},
    {"product that wraps to 0", file_of(one("U8", "[4294967296,4294967296]", "[0,0]"), ""), "overflows"},
    {"product that wraps to 8", file_of(one("U8", "[3,3074457345618258606]", "[0,8]"), kEight), "not a whole number"},
    {"bytes that wrap", file_of(one("F64", "[1125899906842624]", "[0,8]"), kEight), "its shape asks for another number"},
    {"shape of too many axes", file_of(one("U8", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,8]", "[0,8]"), kEight), "no shape list"},
    {"shape that is a text", file_of(one("U8", "\"8\"", "[0,8]"), kEight), "no shape list"},
    {"shape larger than the data", file_of(one("F32", "[3]", "[0,8]"), kEight), "its shape asks for another number"},
    {"one offset", file_of(one("F32", "[2]", "[8]"), kEight), "no pair of offsets"},
    {"negative offset", file_of(one("F32", "[2]", "[-8,0]"), kEight), "not a whole number"},
    {"offsets reversed", file_of(one("F32", "[2]", "[8,0]"), kEight), "outside the file"},
    {"data beyond the file", file_of(one("F32", "[4]", "[0,16]"), kEight), "outside the file"},
    {"data far beyond the file", file_of(one("F32", "[2]", "[1125899906842616,1125899906842624]"), kEight), "outside the file"},
    {"overlap", file_of("{\"a\":" + tensor("F32", "[2]", "[0,8]") + ",\"b\":" + tensor("F32", "[1]", "[4,8]") + "}", kEight), "overlap"},
    {"same range twice", file_of("{\"a\":" + tensor("F32", "[2]", "[0,8]") + ",\"b\":" + tensor("F32", "[2]", "[0,8]") + "}", kEight),
     "overlap"},
    {"hole at the front", file_of(one("F32", "[1]", "[4,8]"), kEight), "hole of 4 bytes"},
    {"hole between", file_of("{\"a\":" + tensor("U8", "[2]", "[0,2]") + ",\"b\":" + tensor("U8", "[2]", "[6,8]") + "}", kEight),
     "hole of 4 bytes"},
    {"data at the end of no tensor", file_of(one("F32", "[2]", "[0,8]"), kEight + "x"), "the file holds 9"},
    {"data without a tensor", file_of("{}", kEight), "the file holds 8"},
    {"data cut short", file_of(one("F32", "[2]", "[0,8]"), "ddddddd"), "outside the file"},
};

TEST(Safetensors, HostileFilesAreRefused) {
  Folder folder;
  for (const Hostile& c : kHostile) {
    test::write_text(folder.file("x"), c.bytes);
    EXPECT_TRUE(has(error_of([&] { SafetensorsFile(folder.file("x")); }),
                    {test::code(ErrorCode::storage), "not a sound safetensors file", c.why, "another copy"}))
        << c.what;
  }
  EXPECT_TRUE(has(error_of([&] { SafetensorsFile(folder.file("no")); }), {test::code(ErrorCode::not_found)}));
  EXPECT_TRUE(has(error_of([&] { SafetensorsFile(folder.path()); }), {test::code(ErrorCode::config), "not a file"}));
}

// A header within its limit that would fill the memory all the same: two bytes of text a value. Slow under sanitizers.
TEST(Safetensors, SlowAHeaderOfTooManyValuesIsRefused) {
  Folder folder;
  std::string values = "0";
  for (int i = 0; i < 10'000'000; ++i) values += ",0";
  test::write_text(folder.file("x"), file_of("{\"a\":[" + values + "]}", ""));
  EXPECT_TRUE(has(error_of([&] { SafetensorsFile(folder.file("x")); }),
                  {test::code(ErrorCode::storage), "not a sound safetensors file", "its header has too many values"}));
}

TEST(Safetensors, EveryCutOfASoundFileIsRefused) {
  Folder folder;
  SafetensorsWriter writer;
  writer.metadata("k", "v");
  writer.add_values("w", "F32", {4}, {1, 2, 3, 4});
  writer.finish(folder.file("x"));
  const std::string bytes = test::read_text(folder.file("x"));
  for (size_t cut = 0; cut < bytes.size(); ++cut) {
    test::write_text(folder.file("x"), bytes.substr(0, cut));
    EXPECT_TRUE(has(error_of([&] { SafetensorsFile(folder.file("x")); }), {test::code(ErrorCode::storage)})) << cut;
  }
}

// Any byte changed: an error or a file that can be read, never a crash (run under the address sanitizer).
TEST(Safetensors, ChangedBytesNeverCrash) {
  Folder folder;
  SafetensorsWriter writer;
  writer.metadata("k", "v");
  writer.add_values("w", "F32", {2, 2}, {1, 2, 3, 4});
  writer.add_values("b", "F64", {1}, {1});
  writer.finish(folder.file("x"));
  const std::string bytes = test::read_text(folder.file("x"));
  int64_t refused = 0;
  for (size_t at = 0; at < bytes.size(); ++at)
    for (int change : {1, 4, 16, 128, 255}) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(changed[at] ^ change);
      test::write_text(folder.file("y"), changed);
      try {
        SafetensorsFile file(folder.file("y"));
        for (const auto& [name, entry] : file.entries()) EXPECT_EQ(file.values(name).size(), static_cast<size_t>(entry.count()));
      } catch (const Error&) {
        ++refused;
      }
    }
  EXPECT_GT(refused, 400);
}

TEST(Safetensors, AFileThatIsWrittenWhileItIsReadIsAnError) {
  Folder folder;
  const std::vector<double> values(100'000, 3.0);
  const auto write = [&](const std::string& name) {
    SafetensorsWriter writer;
    writer.add_values("w", "F64", {100'000}, values);
    writer.finish(folder.file(name));
    return folder.file(name);
  };
  const std::string cut = write("cut"), changed = write("changed");
  const SafetensorsFile of_cut(cut), of_changed(changed);
  EXPECT_EQ(of_cut.values("w").back(), 3.0);
  EXPECT_EQ(of_changed.values("w").back(), 3.0);

  std::filesystem::resize_file(cut, 1000);
  const auto* last = static_cast<const char*>(of_cut.data("w")) + 799'992;
  EXPECT_EQ(*last, 0) << "behind the new end";
  const std::string told = error_of([&] { of_cut.values("w"); });
  EXPECT_TRUE(has(told, {"cut was changed while it was in use", "now 1000", "read it again"})) << told;

  std::filesystem::last_write_time(changed, std::filesystem::last_write_time(changed) + std::chrono::seconds(1));
  EXPECT_TRUE(has(error_of([&] { of_changed.check_unchanged(); }), {"changed was changed", "modification time"}));
}

TEST(Safetensors, AFailedWriteLeavesTheOldFile) {
  Folder folder;
  const std::string path = folder.file("disk/x.safetensors");
  std::filesystem::create_directory(folder.file("disk"));
  if (::mount("tmpfs", folder.file("disk").c_str(), "tmpfs", 0, "size=1m") != 0) GTEST_SKIP() << "needs the right to mount a small tmpfs";
  const std::vector<double> small(1000, 1.0), large(400'000, 2.0);
  {
    SafetensorsWriter writer;
    writer.add_values("w", "F64", {1000}, small);
    writer.finish(path);
  }
  const std::string before = test::read_text(path);
  SafetensorsWriter writer;
  writer.add_values("w", "F64", {400'000}, large);
  EXPECT_TRUE(has(error_of([&] { writer.finish(path); }), {test::code(ErrorCode::storage), "No space left", "free some disk space"}));
  EXPECT_EQ(test::read_text(path), before);
  int64_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.file("disk"))) ++files;
  EXPECT_EQ(files, 1) << "the temporary was left behind";
  ::umount2(folder.file("disk").c_str(), MNT_DETACH);
  EXPECT_TRUE(
      has(error_of([&] { SafetensorsWriter().finish(folder.file("no/where")); }), {test::code(ErrorCode::storage), "cannot write"}));
}

}  // namespace
}  // namespace comera
