#include "core/data/glue.h"

#include <algorithm>
#include <filesystem>
#include <limits>

#include "core/base/error.h"
#include "core/base/mapped_file.h"
#include "core/data/formats.h"
#include "core/data/parquet.h"
#include "core/data/sha256.h"
#include "core/data/utf8.h"

namespace comera {
namespace {

namespace fs = std::filesystem;

std::string labels_path(const std::string& path) { return fs::path(path).replace_extension(".labels.tsv").string(); }
std::string names_path(const std::string& path) { return (fs::path(path).parent_path() / "labels.txt").string(); }

}  // namespace

void cut_pair(std::vector<int32_t>& a, std::vector<int32_t>& b, int64_t budget) {
  const auto left = static_cast<size_t>(std::max<int64_t>(budget, 0));
  // Dropping one at a time first evens out the longer side, then takes from both in turn, the first side first.
  size_t na = a.size(), nb = b.size();
  if (na + nb > left) {
    if (na >= nb)
      na = std::max(nb, left > nb ? left - nb : 0);
    else
      nb = std::max(na, left > na ? left - na : 0);
    if (na + nb > left) {
      na = left / 2;
      nb = left - na;
    }
  }
  a.resize(na);
  b.resize(nb);
}

GlueDataset::GlueDataset(const std::string& path, std::shared_ptr<const Tokenizer> tokenizer, const Options& options)
    : file_(path, options.progress),
      layout_(path, file_.bytes_with(options.columns), options.columns, options.labels && !options.masked),
      tokenizer_(std::move(tokenizer)),
      masked_(options.masked) {
  CHECK(tokenizer_, "a text set needs a tokenizer");
  const int64_t classes = options.classes;
  std::vector<std::string> names = masked_ ? std::vector<std::string>() : read_label_names(names_path(path));
  if (classes > 0 && !names.empty() && static_cast<int64_t>(names.size()) != classes)
    throw Error(ErrorCode::config, names_path(path) + " does not fit",
                "it names " + std::to_string(names.size()) + " classes, " + std::to_string(classes) + " are asked for",
                "correct the model or the file");
  if (names.empty()) names = options.label_names;
  Labels labels(names, classes, !options.columns.any() && !path.ends_with(".csv") && !is_parquet(path));
  std::vector<std::string> joined;
  std::string joined_content;
  info_.labelled = layout_.labelled();
  if (!masked_ && options.labels && !layout_.labelled() && fs::exists(labels_path(path))) {
    joined = read_joined_labels(labels_path(path));
    joined_content = MappedFile(labels_path(path)).bytes();
    info_.labelled = true;
  }
  scan(labels, joined, !options.labels);
  if (masked_) info_.labelled = true;
  describe(labels, joined_content);
}

void GlueDataset::scan(Labels& labels, const std::vector<std::string>& joined, bool all) {
  const std::string_view bytes = file_.bytes();
  TextFields fields;
  std::string why, buffer;
  size_t line = 0;  // of the rows, for the joined labels
  for (size_t offset = layout_.first_row(), next; offset < bytes.size(); offset = next, ++line) {
    if (!layout_.parse(layout_.row_at(bytes, offset, next), fields, why)) file_.bad_row(offset, next, why);
    for (const std::string* text : {&fields.first, &fields.second, &fields.label})
      if (const std::string_view valid = valid_utf8(*text, buffer); valid.data() != text->data())
        file_.bad_line(offset, "a text is not UTF-8",
                       "byte " + std::to_string(valid.find(kReplacement) + 1) + " of it is not part of a character",
                       "convert the file, from Latin-1 with iconv -f LATIN1 -t UTF-8 FILE");
    if (!layout_.labelled() && info_.labelled) {
      if (line >= joined.size())
        file_.bad_line(offset, "no label for this row", labels_path(file_.path()) + " has " + std::to_string(joined.size()) + " labels",
                       "get both files again");
      fields.label = joined[line];
    }
    if (!all && (fields.first.empty() || (layout_.pair() && fields.second.empty()) || fields.label == "-")) {
      ++info_.left_out;
      continue;
    }
    int32_t label = -1;
    if (info_.labelled) {
      label = labels.number_of(fields.label, why);
      if (label < 0)
        file_.bad_line(offset, "bad label", why,
                       fields.label.empty() ? "write a label, or remove the row" : "correct the label, or set the number of classes");
    }
    offsets_.push_back(static_cast<int64_t>(offset));
    labels_.push_back(label);
  }
  const std::vector<int32_t> order = labels.order();
  for (int32_t& label : labels_)
    if (label >= 0) label = order[static_cast<size_t>(label)];
  if (line < joined.size())
    throw Error(ErrorCode::config, labels_path(file_.path()) + " does not fit " + file_.path(),
                "it has " + std::to_string(joined.size()) + " labels for " + std::to_string(line) + " rows", "get both files again");
  if (offsets_.empty())
    throw Error(ErrorCode::config, file_.path() + " has no rows",
                info_.left_out > 0 ? "every row has an empty sentence or no label" : "there is only a header line", "get the file again");
}

std::vector<std::string> GlueDataset::read_joined_labels(const std::string& path) const {
  const MappedFile file(path);
  std::vector<std::string> labels;
  for (size_t offset = 0, line = 0; offset < file.bytes().size(); ++line) {
    const std::string_view text = line_at(file.bytes(), offset);
    const size_t tab = text.find('\t');
    const bool in_order =
        tab != std::string_view::npos && (line == 0 ? text == "index\tprediction" : text.substr(0, tab) == std::to_string(line - 1));
    if (!in_order)
      throw Error(ErrorCode::config, path + ":" + std::to_string(line + 1) + ": not a label line",
                  line == 0 ? "the header is not index<tab>prediction" : "the index is not " + std::to_string(line - 1),
                  "get the file again, or remove it");
    if (line > 0) labels.emplace_back(text.substr(tab + 1));
    const size_t end = file.bytes().find('\n', offset);
    if (end == std::string_view::npos) break;
    offset = end + 1;
  }
  return labels;
}

void GlueDataset::describe(const Labels& labels, const std::string& joined_content) {
  info_.name = fs::path(file_.path()).filename().string();
  info_.rows = static_cast<int64_t>(offsets_.size());
  known_tokens_ = std::vector<std::atomic<uint32_t>>(offsets_.size());
  info_.classes = masked_ ? 0 : labels.classes();
  info_.label_names = labels.names();
  info_.label_texts = labels.texts();
  info_.vocab_size = tokenizer_->size();
  info_.vocab_fingerprint = tokenizer_->fingerprint();
  info_.unknown_token = tokenizer_->unknown();
  info_.cls_token = tokenizer_->cls();
  info_.sep_token = tokenizer_->sep();
  info_.mask_token = tokenizer_->mask();
  info_.special_tokens = tokenizer_->specials();
  describe_texts(info_, masked_);
  Sha256 all;  // everything that decides ids and labels
  all.update(sha256_hex(file_.bytes()));
  all.update(sha256_hex(joined_content));
  all.update(tokenizer_->fingerprint());
  all.update(std::to_string(info_.classes));
  for (const std::string& name : info_.label_names) all.update("\n" + name);
  if (masked_) all.update("\nmasked");
  info_.fingerprint = all.hex();
}

// For texts, without the marks around them.
int64_t GlueDataset::room(int64_t max_length) const {
  const int64_t marks = tokenizer_->marks(layout_.pair());
  if (max_length < marks)
    throw Error(ErrorCode::config, "rows of " + std::to_string(max_length) + " tokens are too short",
                std::to_string(marks) + " special tokens stand around the text", "use a larger model.length");
  return max_length - marks;
}

GlueDataset::Texts GlueDataset::texts(int64_t row) const {
  CHECK(row >= 0 && row < info_.rows, "row " << row << " of " << info_.rows);
  const auto offset = static_cast<size_t>(offsets_[static_cast<size_t>(row)]);
  TextFields fields;
  std::string why;
  size_t next = 0;
  if (!layout_.parse(layout_.row_at(file_.bytes(), offset, next), fields, why))
    file_.bad_line(offset, "the row changed", why, "do not write to a file that is in use");
  Texts texts{tokenizer_->encode(fields.first), layout_.pair() ? tokenizer_->encode(fields.second) : std::vector<int32_t>()};
  known_tokens_[static_cast<size_t>(row)].store(static_cast<uint32_t>(texts.first.size() + texts.second.size() + 1),
                                                std::memory_order_relaxed);
  return texts;
}

int64_t GlueDataset::tokens(int64_t row, int64_t max_length) const {
  const int64_t most = room(max_length);
  CHECK(row >= 0 && row < info_.rows, "row " << row << " of " << info_.rows);
  uint32_t known = known_tokens_[static_cast<size_t>(row)].load(std::memory_order_relaxed);
  if (known == 0) texts(row), known = known_tokens_[static_cast<size_t>(row)].load(std::memory_order_relaxed);
  return std::max<int64_t>(1, std::min<int64_t>(known - 1, most) + max_length - most);
}

void GlueDataset::read(int64_t row, int64_t max_length, Columns& out) const {
  const int64_t most = room(max_length);
  auto [a, b] = texts(row);
  if (layout_.pair())
    cut_pair(a, b, most);
  else
    a.resize(std::min(a.size(), static_cast<size_t>(most)));
  std::vector<int32_t>& ids = out.ints["ids"];
  tokenizer_->surround(a, layout_.pair() ? &b : nullptr, ids, out.ints["segments"]);
  if (ids.empty()) {  // no character of the text is in the vocabulary, and nothing stands around it
    ids.push_back(std::max(tokenizer_->unknown(), 0));
    out.ints["segments"].push_back(0);
  }
  if (masked_)
    out.ints["labels"].assign(ids.size(), -1);
  else
    out.ints["labels"].assign(1, labels_[static_cast<size_t>(row)]);
}

std::string GlueDataset::shown(int64_t row, int64_t max_length) const {
  Columns columns;
  read(row, max_length, columns);
  std::string text;
  for (const int32_t id : columns.ints.at("ids")) text += (text.empty() ? "" : " ") + tokenizer_->token(id);
  return text + "  ->  " + (masked_ ? "masked tokens" : label_text(columns.ints.at("labels")[0]));
}

namespace {

std::unique_ptr<Dataset> open_texts(const std::string& path, const DataSpec& spec) {
  if (spec.joins()) return kStreamFormat.open(path, spec);
  if (spec.vocab.empty() && spec.assets.empty())
    throw Error(ErrorCode::config, "no vocabulary for " + path, "texts need a tokenizer: a vocab.txt or tokenizer.json", "set data.vocab");
  const std::string vocab = !spec.vocab.empty() ? spec.vocab : bert_vocabulary(spec.assets);
  return std::make_unique<GlueDataset>(
      path, open_tokenizer(vocab),
      GlueDataset::Options{spec.classes, spec.columns, spec.label_names, spec.labels, spec.task == TextTask::masked, spec.progress});
}

}  // namespace

const Format kTextFormat = {
    .is = nullptr, .open = open_texts, .endings = {".tsv", ".jsonl", ".csv", ".parquet"}, .dev_and_test = "_matched", .dev = "validation"};

}  // namespace comera
