// Click logs in Criteo's format, for recommendation models. Fields: `numbers` (13 reals: sign(x) log(1 + |x|), 0 where missing),
// `category0` .. `category25` (i32: rows of tables), `labels`.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/data/criteo_pack.h"
#include "core/data/dataset.h"

namespace comera {

// From the values of a categorical column to rows of its table, by how often they are in the training file: the most frequent value has row
// 1, and so on. Row 0 is for values that are there fewer than `least` times, or not at all. Where the table has too few rows, values that
// have none share rows by their hash.
class CriteoRows {
 public:
  // `rows` of the table; 0 = as many as there are values for.
  CriteoRows(const CriteoPack& training, int column, int64_t least, int64_t rows);
  int32_t of(uint32_t hash) const;
  int64_t rows() const { return rows_; }

 private:
  struct Known {
    uint32_t hash;
    int32_t row;
  };
  std::vector<Known> known_;  // by hash
  int64_t rows_;
};

class CriteoDataset final : public Dataset {
 public:
  // `training`: the file whose values the tables are for; it may be `path`. `tables`: their rows, 26 or none (as CriteoRows). Throws as
  // CriteoPack does.
  CriteoDataset(const std::string& path, const std::string& training, int64_t least, const std::vector<int64_t>& tables,
                const std::function<void(double)>& progress = {});

  const DatasetInfo& info() const override { return info_; }
  void read(int64_t row, int64_t max_length, Columns& out) const override;

 private:
  const CriteoPack pack_;
  std::vector<CriteoRows> rows_;
  std::vector<std::string> names_;  // of the fields of categories
  DatasetInfo info_;
};

}  // namespace comera
