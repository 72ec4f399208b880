#include "core/data/dataset.h"

namespace comera {
namespace {

BatchField labels_of(const DatasetInfo& info) {
  return {.name = "labels", .low = -1, .high = info.classes, .about = "the data set " + info.name + " has " + std::to_string(info.classes)};
}

}  // namespace

void describe_texts(DatasetInfo& info) {
  info.holds = "text";
  info.fields = {};
  info.fields.add({.name = "ids",
                   .per = Per::token,
                   .high = info.vocab_size,
                   .spread = true,
                   .about = "the vocabulary has " + std::to_string(info.vocab_size) + " tokens"});
  info.fields.add({.name = "segments", .per = Per::token, .high = 2, .about = "the data set has 2"});
  info.fields.add(labels_of(info));
}

void describe_stream(DatasetInfo& info) {
  info.holds = "a text";
  info.fields = {};
  const std::string about = "the data set has " + std::to_string(info.vocab_size) + " different tokens";
  info.fields.add({.name = "ids", .per = Per::token, .high = info.vocab_size, .spread = true, .about = about});
  info.fields.add({.name = "labels", .per = Per::token, .low = -1, .high = info.vocab_size, .about = about});
}

void describe_images(DatasetInfo& info) {
  info.holds = "images";
  info.fields = {};
  info.fields.add({.name = "pixels",
                   .dtype = DType::f32,
                   .width = info.height * info.width,
                   .about = "the images are " + std::to_string(info.height) + " x " + std::to_string(info.width)});
  info.fields.add(labels_of(info));
}

}  // namespace comera
