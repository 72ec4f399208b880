#include "core/data/criteo.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/base/error.h"
#include "core/data/formats.h"
#include "core/data/sha256.h"

namespace comera {

namespace fs = std::filesystem;

CriteoRows::CriteoRows(const CriteoPack& training, int column, int64_t least, int64_t rows) : rows_(rows) {
  std::vector<CriteoCount> counts;
  for (const CriteoCount* value = training.begin(column); value != training.end(column); ++value)
    if (value->count >= least) counts.push_back(*value);
  std::sort(counts.begin(), counts.end(),
            [](const CriteoCount& a, const CriteoCount& b) { return a.count != b.count ? a.count > b.count : a.hash < b.hash; });
  if (rows_ == 0) rows_ = static_cast<int64_t>(counts.size()) + 1;
  for (size_t i = 0; i < counts.size(); ++i) {
    const auto next = static_cast<int64_t>(i) + 1;
    const int64_t row = next < rows_ ? next : rows_ > 1 ? 1 + counts[i].hash % (rows_ - 1) : 0;
    known_.push_back({counts[i].hash, static_cast<int32_t>(row)});
  }
  std::sort(known_.begin(), known_.end(), [](const Known& a, const Known& b) { return a.hash < b.hash; });
}

int32_t CriteoRows::of(uint32_t hash) const {
  const auto found = std::lower_bound(known_.begin(), known_.end(), hash, [](const Known& known, uint32_t h) { return known.hash < h; });
  return found != known_.end() && found->hash == hash ? found->row : 0;
}

CriteoDataset::CriteoDataset(const std::string& path, const std::string& training, int64_t least, const std::vector<int64_t>& tables,
                             const std::function<void(double)>& progress)
    : pack_(path, progress) {
  if (!tables.empty() && tables.size() != kCriteoCategories)
    throw Error(ErrorCode::config, "model.dlrm.tables has " + std::to_string(tables.size()) + " tables",
                "a row in Criteo's format has " + std::to_string(kCriteoCategories) + " categories",
                "give the number of rows for each category");
  const std::unique_ptr<const CriteoPack> other = training == path ? nullptr : std::make_unique<const CriteoPack>(training, progress);
  const CriteoPack& of_values = other ? *other : pack_;
  info_.name = std::filesystem::path(path).filename().string();
  info_.holds = "a click log";
  info_.rows = pack_.rows();
  info_.classes = 2;
  info_.labelled = pack_.labelled();
  info_.fields.add({.name = "numbers",
                    .dtype = DType::f32,
                    .width = kCriteoNumbers,
                    .about = "the data set has " + std::to_string(kCriteoNumbers) + " numeric columns"});
  for (int c = 0; c < kCriteoCategories; ++c) {
    rows_.emplace_back(of_values, c, least, tables.empty() ? 0 : tables[static_cast<size_t>(c)]);
    names_.push_back("category" + std::to_string(c));
    info_.tables.push_back(rows_.back().rows());
    info_.fields.add({.name = names_.back(),
                      .high = rows_.back().rows(),
                      .about = "category " + std::to_string(c + 1) + " has values for " + std::to_string(rows_.back().rows()) + " rows"});
  }
  info_.fields.add({.name = "labels", .low = -1, .high = 2, .about = "the data set has 2 classes"});
  info_.fingerprint = sha256_hex(pack_.fingerprint() + of_values.fingerprint() + "/" + std::to_string(least));
}

void CriteoDataset::read(int64_t row, int64_t, Columns& out) const {
  CHECK(row >= 0 && row < info_.rows, "row " << row << " of " << info_.rows);
  const CriteoRow& from = pack_.row(row);
  std::vector<float>& numbers = out.reals["numbers"];
  numbers.resize(kCriteoNumbers);
  for (size_t i = 0; i < kCriteoNumbers; ++i) {
    const double x = from.numbers[i] == CriteoRow::kMissing ? 0 : from.numbers[i];
    numbers[i] = static_cast<float>(std::copysign(std::log1p(std::fabs(x)), x));
  }
  for (size_t c = 0; c < kCriteoCategories; ++c) out.ints[names_[c]].assign(1, rows_[c].of(from.categories[c]));
  out.ints["labels"].assign(1, from.label);
}

namespace {

bool is_clicks(const std::string&, std::string_view bytes) { return CriteoPack::is(bytes); }

// The tables are for the values of the training file beside it, where there is one.
std::unique_ptr<Dataset> open_clicks(const std::string& path, const DataSpec& spec) {
  std::string training = spec.training.empty() ? path : spec.training;
  if (spec.training.empty() && spec.split != "train" && fs::path(path) != fs::path(spec.path))
    if (const std::string found = find_split(fs::path(path).parent_path().string(), "train"); !found.empty()) training = found;
  return std::make_unique<CriteoDataset>(path, training, spec.min_count, spec.tables, spec.progress);
}

}  // namespace

const Format kClickFormat = {.is = is_clicks, .open = open_clicks, .endings = {".tsv.gz", ".txt.gz"}};

}  // namespace comera
