#include "app/studio/form/data_facts.h"

#include <algorithm>
#include <filesystem>

#include "core/base/error.h"
#include "core/base/paths.h"
#include "core/config/config.h"
#include "core/data/text_file.h"

namespace comera::studio {
namespace {
constexpr int64_t kLooked = 4000;  // rows to read, which takes a fraction of a second
constexpr int64_t kShown = 3, kShownTokens = 64;
constexpr int64_t kNoLimit = 1'000'000'000;  // tokens per row
constexpr int kStampedFiles = 1000;          // of a folder; this often asked for, more would keep a slow disk busy

namespace fs = std::filesystem;

void add_stamp(std::string& stamp, const fs::path& path) {
  std::error_code ignored;
  const auto time = fs::last_write_time(path, ignored).time_since_epoch().count();
  stamp += path.string() + " " + std::to_string(time) + " " + std::to_string(fs::file_size(path, ignored)) + "\n";
}

// Leaves a file alone that is no table of texts, or a broken one, which the loader tells of.
void find_columns(const DataSpec& spec, DataFacts& facts) try {
  const std::string path = find_data_file(spec), ending = fs::path(path).extension().string();
  if (ending != ".csv" && ending != ".tsv" && ending != ".jsonl" && ending != ".parquet") return;
  const TextFile file(path);
  facts.columns = TextLayout::columns_of(path, file.bytes());
  facts.likely = TextLayout::guess(path, file.bytes());
  facts.read = TextLayout(path, file.bytes(), spec.columns).reads();
} catch (const Error&) {
}
}  // namespace

double DataFacts::share_beyond(int64_t length) const {
  if (lengths.empty()) return 0;
  const auto beyond = lengths.end() - std::upper_bound(lengths.begin(), lengths.end(), length);
  return static_cast<double>(beyond) / static_cast<double>(lengths.size());
}

std::string data_stamp(const DataQuestion& question) {
  std::string stamp;
  try {
    for (const std::string& path : {question.set, paths::sets_folder() + "/" + question.set, question.vocab}) {
      if (path.empty() || !fs::exists(path)) continue;
      add_stamp(stamp, path);
      if (!fs::is_directory(path)) continue;
      int left = kStampedFiles;
      for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path, fs::directory_options::skip_permission_denied)) {
        if (--left < 0) break;
        add_stamp(stamp, entry.path());
      }
    }
  } catch (const std::exception& error) {
    stamp += error.what();  // a folder that cannot be listed; also that may change
  }
  return stamp;
}

DataFacts read_data_facts(const DataQuestion& question) {
  DataFacts facts;
  facts.of = question;
  facts.stamp = data_stamp(question);  // before reading: what is written meanwhile is then noticed
  try {
    const DataSpec spec{.path = question.set,
                        .vocab = question.vocab,
                        .columns = question.columns,
                        .task = question.task,
                        .join = question.join,
                        .assets = assets_folder()};
    find_columns(spec, facts);
    const auto data = open_dataset(spec);
    facts.whole = is_whole(spec);
    const DatasetInfo& info = data->info();
    facts.info = info;
    facts.text = info.fields.has_tokens();
    for (int64_t i = 0; i < std::min(info.rows, kShown); ++i) facts.first.push_back(data->shown(i, kShownTokens));
    facts.rows = info.rows;
    facts.classes = info.classes;
    facts.height = info.height;
    facts.width = info.width;
    if (std::string_view(info.holds) == kJoinedTexts) {
      const int64_t last = info.rows - 1;
      facts.joined_tokens = last * data->tokens(0, kNoLimit) + data->tokens(last, kNoLimit);
      return facts;
    }
    const int64_t looked = facts.text ? std::min(info.rows, kLooked) : 0;
    Columns row;
    for (int64_t i = 0; i < looked; ++i) {
      data->read(i * info.rows / looked, kNoLimit, row);
      facts.lengths.push_back(static_cast<int64_t>(row.ints.at("ids").size()));
    }
    std::sort(facts.lengths.begin(), facts.lengths.end());
  } catch (const Error& error) {
    facts.problem = std::string(error.what()) + (error.why().empty() ? "" : ": " + error.why());
  } catch (const std::exception& error) {
    facts.problem = error.what();
  }
  return facts;
}

}  // namespace comera::studio
