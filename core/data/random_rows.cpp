#include "core/data/random_rows.h"

#include <algorithm>

#include "core/base/rng.h"

namespace comera {
namespace {

class RandomRows final : public Dataset {
 public:
  RandomRows(const BatchLayout& layout, int64_t rows) {
    info_.rows = rows;
    for (const BatchField& field : layout.fields)
      if (!field.collated) info_.fields.add(field);
  }
  const DatasetInfo& info() const override { return info_; }
  void read(int64_t row, int64_t max_length, Columns& out) const override {
    uint32_t site = 1;
    for (const BatchField& field : info_.fields.fields) {
      const Philox random{7, static_cast<uint32_t>(row), site++};
      const auto count = static_cast<size_t>(field.width * (field.per == Per::token ? max_length : 1));
      if (field.dtype == DType::i32) {
        const int64_t low = std::max<int64_t>(field.low, 0);
        std::vector<int32_t>& values = out.ints[field.name];
        values.resize(count);
        for (size_t i = 0; i < count; ++i) values[i] = static_cast<int32_t>(low + random.word(i) % static_cast<uint64_t>(field.high - low));
      } else {
        std::vector<float>& values = out.reals[field.name];
        values.resize(count);
        for (size_t i = 0; i < count; ++i) values[i] = uniform_half(random.word(i));
      }
    }
  }

 private:
  DatasetInfo info_;
};

}  // namespace

Batch random_batch(const BatchLayout& layout, const BatchOptions& options) {
  Batch batch;
  make_batch(RandomRows(layout, options.batch_size), options, 0, batch);
  return batch;
}

}  // namespace comera
