// TensorBoard event files: checksums of known vectors, what we write we read, and broken files are refused.
#include "core/store/tfevents.h"

#include <cmath>
#include <cstring>
#include <sstream>

#include "core/store/export.h"
#include "core/store/import.h"
#include "tests/store/support.h"

namespace comera {
namespace {

using test::error_of;
using test::Folder;
using test::has;

TEST(Tfevents, ChecksumOfKnownVectors) {
  EXPECT_EQ(crc32c("123456789", 9), 0xE3069283u);  // the check value of CRC-32C
  EXPECT_EQ(crc32c("", 0), 0u);
  const std::string zeros(32, '\0'), ones(32, '\xff');  // RFC 3720, B.4
  EXPECT_EQ(crc32c(zeros.data(), 32), 0x8A9136AAu);
  EXPECT_EQ(crc32c(ones.data(), 32), 0x62A8AB43u);
  const uint32_t crc = crc32c("123456789", 9);
  EXPECT_EQ(masked_crc32c("123456789", 9), ((crc >> 15) | (crc << 17)) + 0xa282ead8u);
}

TEST(Tfevents, FirstRecordByteForByte) {
  std::ostringstream out;
  TfeventsWriter writer(out, 1.0);
  // length 26, checksum, {1: 1.0, 2: 0, 3: "brain.Event:2"}, checksum
  const std::string data = std::string("\x09\0\0\0\0\0\0\xf0\x3f\x10\0\x1a\x0d", 13) + "brain.Event:2";
  const std::string bytes = out.str();
  ASSERT_EQ(bytes.size(), 12 + data.size() + 4);
  EXPECT_EQ(bytes.substr(12, data.size()), data);
  EXPECT_EQ(static_cast<int>(bytes[0]), 26);
}

TEST(Tfevents, WhatIsWrittenIsRead) {
  Folder folder;
  const std::string path = folder.file("events.out.tfevents.1");
  {
    std::ofstream out(path, std::ios::binary);
    TfeventsWriter writer(out, 100);
    writer.scalars(1, 101.5, {{"loss", 0.1}, {"val/acc", std::nan("")}});
    writer.scalars(int64_t{1} << 40, 102.5, {{"loss", -INFINITY}});
    writer.scalars(-1, 103, {{std::string(300, 'n'), 7}});
  }
  EXPECT_TRUE(looks_like_tfevents(path));
  const TfeventsContents contents = read_tfevents(path);
  ASSERT_EQ(contents.scalars.size(), 4u);
  EXPECT_FALSE(contents.cut_short);
  EXPECT_EQ(contents.scalars[0].tag, "loss");
  EXPECT_EQ(contents.scalars[0].value, static_cast<double>(0.1f));
  EXPECT_EQ(contents.scalars[0].wall_time, 101.5);
  EXPECT_TRUE(std::isnan(contents.scalars[1].value));
  EXPECT_EQ(contents.scalars[2].step, int64_t{1} << 40);
  EXPECT_EQ(contents.scalars[2].value, -INFINITY);
  EXPECT_EQ(contents.scalars[3].step, -1);
  EXPECT_EQ(contents.scalars[3].tag.size(), 300u);
}

// ---- values of other writers, spelled by hand --------------------------------------------------------------------

std::string field_bytes(int number, const std::string& bytes) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}
std::string field_varint(int number, int value) { return {static_cast<char>(number << 3), static_cast<char>(value)}; }
template <class T>
std::string raw(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}
// An event file with one Event of step 3 that holds `value` (a Summary.Value).
std::string file_with(const std::string& value) {
  const std::string event = field_varint(2, 3) + field_bytes(5, field_bytes(1, value));
  const std::string length = raw(static_cast<uint64_t>(event.size()));
  return length + raw(masked_crc32c(length.data(), 8)) + event + raw(masked_crc32c(event.data(), event.size()));
}

TEST(Tfevents, ScalarTensors) {
  const std::string one_by_one = field_bytes(2, field_bytes(2, field_varint(1, 1)) + field_bytes(2, field_varint(1, 1)));
  const std::string two = field_bytes(2, field_bytes(2, field_varint(1, 2)));
  struct Case {
    const char* what;
    std::string tensor;
    bool scalar;
    double value;
  };
  const Case cases[] = {
      {"float content", field_varint(1, 1) + field_bytes(4, raw(2.5f)), true, 2.5},
      {"double content", field_varint(1, 2) + field_bytes(4, raw(-0.1)), true, -0.1},
      {"int32 content", field_varint(1, 3) + field_bytes(4, raw(int32_t{-7})), true, -7},
      {"int64 content of shape 1x1", field_varint(1, 9) + one_by_one + field_bytes(4, raw(int64_t{7})), true, 7},
      {"half content", field_varint(1, 19) + field_bytes(4, raw(uint16_t{0x3e00})), true, 1.5},
      {"bfloat16 content", field_varint(1, 14) + field_bytes(4, raw(uint16_t{0xc000})), true, -2},
      {"uint8 content", field_varint(1, 4) + field_bytes(4, raw(uint8_t{200})), true, 200},
      {"packed float", field_varint(1, 1) + field_bytes(5, raw(0.5f)), true, 0.5},
      {"float, not packed", field_varint(1, 1) + std::string{5 << 3 | 5} + raw(0.25f), true, 0.25},
      {"packed double", field_varint(1, 2) + field_bytes(6, raw(0.125)), true, 0.125},
      {"int", field_varint(1, 3) + field_varint(7, 9), true, 9},
      {"packed int64", field_varint(1, 9) + field_bytes(10, std::string("\x96\x01")), true, 150},
      {"vector", field_varint(1, 1) + two + field_bytes(4, raw(1.0f) + raw(2.0f)), false, 0},
      {"vector that one value fills", field_varint(1, 1) + two + field_bytes(5, raw(0.5f)), false, 0},
      {"two values without a shape", field_varint(1, 1) + field_bytes(4, raw(1.0f) + raw(2.0f)), false, 0},
      {"string", field_varint(1, 7) + field_bytes(8, "text"), false, 0},
      {"nothing", field_varint(1, 1), false, 0},
  };
  Folder folder;
  for (const Case& c : cases) {
    test::write_text(folder.file("events"), file_with(field_bytes(1, "tag") + field_bytes(8, c.tensor)));
    const TfeventsContents contents = read_tfevents(folder.file("events"));
    ASSERT_EQ(contents.scalars.size(), c.scalar ? 1u : 0u) << c.what;
    EXPECT_EQ(contents.other_values, c.scalar ? 0 : 1) << c.what;
    if (c.scalar) {
      EXPECT_EQ(contents.scalars[0].value, c.value) << c.what;
    }
  }
}

TEST(Tfevents, BrokenFiles) {
  Folder folder;
  const std::string path = folder.file("events");
  const std::string good = file_with(field_bytes(1, "tag") + std::string{2 << 3 | 5} + raw(1.0f));
  const auto error_with = [&](const std::string& bytes) {
    test::write_text(path, bytes);
    return error_of([&] { read_tfevents(path); });
  };
  EXPECT_EQ(error_with(good + good), "");
  std::string bad = good;
  bad[0] ^= 1;
  EXPECT_TRUE(
      has(error_with(good + bad), {test::code(ErrorCode::config), "checksum of the length", "byte " + std::to_string(good.size())}));
  bad = good;
  bad[14] ^= 1;
  EXPECT_TRUE(has(error_with(bad), {test::code(ErrorCode::config), "checksum of the data", "byte 0"}));
  EXPECT_TRUE(has(error_with("hello, this is text"), {test::code(ErrorCode::config)}));
  // Sound checksums around nonsense: lengths past the end, an endless number, unknown wire types.
  for (const std::string& value : {std::string("\x0a\x7f", 2), std::string(12, '\xff'), std::string("\x0b", 1),
                                   std::string("\x42\x03\x0a\x05\x01", 5), std::string("\0", 1)})
    EXPECT_TRUE(has(error_with(file_with(value)), {test::code(ErrorCode::config), "structure"}));
  for (size_t cut : {size_t{1}, size_t{11}, size_t{13}, good.size() - 1}) {  // a file that is being written
    test::write_text(path, good + good.substr(0, cut));
    const TfeventsContents contents = read_tfevents(path);
    EXPECT_TRUE(contents.cut_short) << cut;
    EXPECT_EQ(contents.scalars.size(), 1u) << cut;
  }
  EXPECT_TRUE(has(error_of([&] { read_tfevents(folder.file("no")); }), {test::code(ErrorCode::not_found)}));
}

TEST(Tfevents, ExportAndImport) {
  Folder folder;
  std::string id;
  {
    RunWriter writer(folder.store(), test::start_of("a/b: \"c\""), test::quick());
    id = writer.run_id();
    for (int64_t step = 0; step < 50; ++step)
      writer.metrics(step, NamedValues{{"loss", 0.5 * static_cast<double>(step)}, {"val/acc", step == 7 ? std::nan("") : 0.25}});
  }
  RunReader reader(folder.store());
  const std::string path = export_tfevents(reader, id, folder.file("tb"));
  EXPECT_TRUE(has(path, {folder.file("tb") + "/a_b: \"c\"-" + id + "/events.out.tfevents."}));
  EXPECT_EQ(export_tfevents(reader, id, folder.file("tb")), path);  // again: replaced
  const Imported imported = import_any(folder.store(), folder.file("tb"));
  ASSERT_EQ(imported.ids.size(), 1u);
  EXPECT_EQ(imported.points, 100);
  EXPECT_EQ(reader.run(imported.ids[0]).name, "a_b: \"c\"-" + id);
  const Series before = reader.metric(id, "loss"), after = reader.metric(imported.ids[0], "loss");
  EXPECT_EQ(after.steps, before.steps);
  EXPECT_EQ(after.values, before.values);
  EXPECT_TRUE(std::isnan(reader.metric(imported.ids[0], "val/acc").values.at(7)));
  EXPECT_EQ(reader.wall_times(imported.ids[0]).values, reader.wall_times(id).values);
  EXPECT_EQ(import_any(folder.store(), path, "one file").ids.size(), 1u);
  EXPECT_EQ(reader.find("one file").tags.at(0), "imported");
  std::filesystem::create_directory(folder.file("nothing"));
  EXPECT_TRUE(has(error_of([&] { import_any(folder.store(), folder.file("nothing")); }), {test::code(ErrorCode::config), "tfevents"}));
}

TEST(Tfevents, StepsWithoutATimeHaveThatOfTheirRun) {
  Folder folder;
  test::write_text(folder.file("plain.csv"), "step,loss\n1,0.5\n2,0.25\n");
  const std::string id = import_any(folder.store(), folder.file("plain.csv")).ids.at(0);
  const RunReader reader(folder.store());
  const TfeventsContents contents = read_tfevents(export_tfevents(reader, id, folder.file("tb")));
  ASSERT_EQ(contents.scalars.size(), 2u);
  for (const TfeventsScalar& scalar : contents.scalars) EXPECT_EQ(scalar.wall_time, reader.run(id).created);
}

}  // namespace
}  // namespace comera
