#include "core/data/dataset.h"

#include <algorithm>

namespace comera {
namespace {

BatchField labels_of(const DatasetInfo& info) {
  std::string about = "the data set " + info.name + " has " + std::to_string(info.classes);
  constexpr size_t kShown = 10;  // names
  const size_t names = info.label_names.size();
  for (size_t i = 0; i < std::min(names, kShown); ++i) about += (i == 0 ? ": " : ", ") + info.label_names[i];
  if (names > kShown) about += " ...";
  return {.name = "labels", .low = -1, .high = info.classes, .about = about};
}

const BatchField kSegments = {.name = "segments", .per = Per::token, .high = 2, .about = "the data set has 2"};

}  // namespace

std::string Dataset::label_text(int32_t label) const {
  const std::vector<std::string>& names = info().label_names;
  if (label < 0) return "no label";
  return static_cast<size_t>(label) < names.size() ? names[static_cast<size_t>(label)] : "class " + std::to_string(label);
}

std::string Dataset::shown(int64_t row, int64_t max_length) const {
  Columns columns;
  read(row, max_length, columns);
  std::string text;
  for (const BatchField& field : info().fields.fields) {
    if (field.name == "labels") continue;
    text += (text.empty() ? "" : ", ") + field.name + " ";
    text += field.dtype == DType::i32 ? std::to_string(columns.ints.at(field.name)[0]) : "(" + std::to_string(field.width) + " numbers)";
  }
  return text + "  ->  " + label_text(columns.ints.at("labels")[0]);
}

void describe_texts(DatasetInfo& info, bool masked) {
  info.holds = "text";
  info.fields = {};
  const std::string about = "the vocabulary has " + std::to_string(info.vocab_size) + " tokens";
  info.fields.add({.name = "ids", .per = Per::token, .high = info.vocab_size, .spread = true, .about = about});
  info.fields.add(kSegments);
  if (masked)
    info.fields.add({.name = "labels", .per = Per::token, .low = -1, .high = info.vocab_size, .about = about});
  else
    info.fields.add(labels_of(info));
}

void describe_stream(DatasetInfo& info, bool masked) {
  info.holds = kJoinedTexts;
  info.fields = {};
  const std::string about = "the data set has " + std::to_string(info.vocab_size) + " different tokens";
  info.fields.add({.name = "ids", .per = Per::token, .high = info.vocab_size, .spread = true, .about = about});
  if (masked) info.fields.add(kSegments);
  info.fields.add({.name = "labels", .per = Per::token, .low = -1, .high = info.vocab_size, .about = about});
}

void describe_images(DatasetInfo& info) {
  info.holds = "images";
  info.fields = {};
  info.fields.add({.name = "pixels",
                   .dtype = DType::f32,
                   .width = info.height * info.width * info.channels,
                   .about = "the images are " + std::to_string(info.height) + " x " + std::to_string(info.width) +
                            (info.channels > 1 ? " with " + std::to_string(info.channels) + " channels" : "")});
  info.fields.add(labels_of(info));
}

}  // namespace comera
