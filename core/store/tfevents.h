// TensorBoard event files: records of
//   uint64 length, uint32 masked crc32c(length), data, uint32 masked crc32c(data)       all little-endian
// whose data is a protobuf Event {1: double wall_time, 2: int64 step, 3: string file_version, 5: Summary}, with
// Summary {1: Value {1: string tag, 2: float simple_value, 8: Tensor, 9: metadata}}. Written by hand: no dependency.
#pragma once
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "core/store/run_types.h"

namespace comera {

uint32_t crc32c(const void* data, size_t bytes);
uint32_t masked_crc32c(const void* data, size_t bytes);

// Writes to a stream; the caller checks the stream's state. Values become 32-bit floats, as the format has them.
class TfeventsWriter {
 public:
  TfeventsWriter(std::ostream& out, double wall_time);  // writes the first record, "brain.Event:2"
  void scalars(int64_t step, double wall_time, const NamedValues& values);

 private:
  void record(const std::string& data);
  std::ostream& out_;
};

struct TfeventsScalar {
  double wall_time = 0;
  int64_t step = 0;
  std::string tag;
  double value = 0;
};

struct TfeventsContents {
  std::vector<TfeventsScalar> scalars;
  int64_t other_values = 0;  // histograms, images, texts: left out
  bool cut_short = false;    // the last record is incomplete, as in a file that is still written
};
// simple_value scalars and scalar tensors of a number type. Throws Error(not_found) when there is no file,
// Error(config) with the byte where a checksum or the structure is wrong.
TfeventsContents read_tfevents(const std::string& path);
// Whether the file begins like one.
bool looks_like_tfevents(const std::string& path);

}  // namespace comera
