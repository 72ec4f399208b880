// Where two safetensors files differ: what a reproduction says of the weights.
#include "core/session/reproduce.h"
#include "core/tensor/safetensors.h"
#include "tests/store/support.h"

namespace comera {
namespace {

struct Item {
  std::string name, dtype;
  std::vector<int64_t> shape;
  std::vector<double> values;
};

class FileDifference : public ::testing::Test {
 protected:
  std::string written(const std::string& name, const std::vector<Item>& items, const std::string& note = "") {
    SafetensorsWriter writer;
    for (const Item& item : items) writer.add_values(item.name, item.dtype, item.shape, item.values);
    if (!note.empty()) writer.metadata("note", note);
    writer.finish(folder_.file(name));
    return folder_.file(name);
  }
  // Both ways round: none of the two files is the one that counts.
  void expect(const std::vector<Item>& other, const std::string& difference) {
    const std::string a = written("a", whole_), b = written("b", other);
    EXPECT_EQ(first_file_difference(a, b), difference);
    EXPECT_EQ(first_file_difference(b, a), difference);
  }
  const std::vector<Item> whole_{{"a", "F32", {2, 2}, {1, 2, 3, 4}}, {"b", "F64", {3}, {5, 6, 7}}, {"c", "F32", {1}, {8}}};
  const test::Folder folder_;
};

TEST_F(FileDifference, IsNoneBetweenEqualTensors) {
  expect(whole_, "");
  expect({whole_[2], whole_[0], whole_[1]}, "");  // in whichever order they were written
  EXPECT_EQ(first_file_difference(written("a", whole_, "one"), written("b", whole_, "two")), "") << "metadata are not compared";
}

TEST_F(FileDifference, IsTheFirstTensorByNameWithAnotherValue) {
  expect({whole_[0], {"b", "F64", {3}, {5, 6, 7.000000000000001}}, whole_[2]}, "b");
  expect({{"a", "F32", {2, 2}, {1, 2, 3, 5}}, {"b", "F64", {3}, {0, 6, 7}}, whole_[2]}, "a");
  expect({whole_[0], whole_[1], {"c", "F32", {1}, {-8}}}, "c");
  const auto zero = [](double value) { return std::vector<Item>{{"z", "F64", {1}, {value}}}; };
  EXPECT_EQ(first_file_difference(written("a", zero(0.0)), written("b", zero(-0.0))), "z") << "bit for bit";
}

TEST_F(FileDifference, SeesTheFormatAndTheShape) {
  expect({{"a", "F32", {4}, {1, 2, 3, 4}}, whole_[1], whole_[2]}, "a");
  expect({whole_[0], {"b", "F32", {3}, {5, 6, 7}}, whole_[2]}, "b");
  expect({whole_[0], {"b", "F64", {4}, {5, 6, 7, 0}}, whole_[2]}, "b");
  const float value = 8;  // the same bytes, read as something else
  const auto as = [&](const char* format) {
    SafetensorsWriter writer;
    writer.add("x", format, {1}, &value);
    writer.finish(folder_.file(format));
    return folder_.file(format);
  };
  EXPECT_EQ(first_file_difference(as("F32"), as("I32")), "x");
}

TEST_F(FileDifference, SeesATensorThatOnlyOneHas) {
  expect({whole_[0], whole_[2]}, "b");
  expect({whole_[0], whole_[1]}, "c");
  expect({whole_[0], whole_[1], whole_[2], {"d", "F32", {1}, {0}}}, "d");
}

}  // namespace
}  // namespace comera
