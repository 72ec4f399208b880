#include "core/data/tokenizer.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/mapped_file.h"
#include "core/base/paths.h"
#include "core/data/bpe.h"
#include "core/data/sha256.h"
#include "core/data/utf8.h"
#include "core/data/wordpiece.h"

namespace comera {
namespace {

namespace fs = std::filesystem;

bool strips_or_has_space(const AddedToken& token) {
  return token.strips_right || std::any_of(token.text.begin(), token.text.end(), [](char c) { return is_white_space(c); });
}

std::shared_ptr<const Tokenizer> of_json(const std::string& path) {
  const MappedFile mapped(path);
  const WideJson file = parse_wide_json(std::string(mapped.bytes()), path);
  try {
    const WideJson& model = file.at("model");
    const std::string kind = model.value("type", "BPE"), fingerprint = sha256_hex(mapped.bytes());
    if (kind == "WordPiece") return WordPiece::of_json(path, file, fingerprint);
    if (kind == "BPE") return BpeTokenizer::of_json(path, file, fingerprint);
    TokenReader(path).unknown("a model of type " + model.at("type").dump());
  } catch (const WideJson::exception& error) {
    throw Error(ErrorCode::config, path + " is not a tokenizer.json", error.what(), "give the file that the tokenizers library wrote");
  }
}

}  // namespace

Tokenizer::Tokenizer(TokenTable table, bool words)
    : table_(std::move(table)), cuts_(words && std::none_of(table_.added.begin(), table_.added.end(), strips_or_has_space)) {}

std::vector<int32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<int32_t> ids;
  encode(text, ids);
  return ids;
}

int64_t Tokenizer::marks(bool pair) const {
  const std::vector<Mark>& around = pair ? table_.pair : table_.single;
  return std::count_if(around.begin(), around.end(), [](const Mark& mark) { return mark.token >= 0; });
}

void Tokenizer::surround(const std::vector<int32_t>& first, const std::vector<int32_t>* second, std::vector<int32_t>& ids,
                         std::vector<int32_t>& segments) const {
  ids.clear();
  segments.clear();
  for (const Mark& mark : second ? table_.pair : table_.single) {
    if (mark.token >= 0) {
      ids.push_back(mark.token);
    } else {
      const std::vector<int32_t>& text = mark.text == 0 ? first : *second;
      ids.insert(ids.end(), text.begin(), text.end());
    }
    segments.resize(ids.size(), mark.segment);
  }
}

std::vector<int32_t> Tokenizer::encode_with_specials(std::string_view text) const {
  std::vector<int32_t> ids, segments;
  surround(encode(text), nullptr, ids, segments);
  return ids;
}

std::vector<int32_t> Tokenizer::encode_with_specials(std::string_view first, std::string_view second) const {
  std::vector<int32_t> ids, segments;
  const std::vector<int32_t> other = encode(second);
  surround(encode(first), &other, ids, segments);
  return ids;
}

std::vector<int32_t> Tokenizer::document(std::string_view text) const {
  std::vector<int32_t> ids = encode_with_specials(text);
  if (table_.single.back().token >= 0) return ids;
  if (table_.end >= 0) {
    ids.push_back(table_.end);
  } else {
    const std::vector<int32_t> line_end = encode("\n");
    ids.insert(ids.end(), line_end.begin(), line_end.end());
  }
  return ids;
}

// Before a space or a line end behind a printable ASCII character: a word ends there whatever stands around, and the white space is the
// right part's. A token that takes the white space behind it, or that has some, would know the difference.
size_t Tokenizer::cut(std::string_view text, size_t from) const {
  if (!cuts_) return text.size();
  for (size_t at = std::max<size_t>(from, 1); at < text.size(); ++at)
    if ((text[at] == ' ' || text[at] == '\n') && text[at - 1] > ' ' && text[at - 1] <= '~') return at;
  return text.size();
}

std::string tokenizer_file_in(const std::string& folder) {
  const fs::path in(folder);
  std::error_code ignored;
  for (const char* name : {"tokenizer.json", "vocab.txt"})
    if (fs::is_regular_file(in / name, ignored)) return (in / name).string();
  if (fs::is_regular_file(in / "vocab.json", ignored) && fs::is_regular_file(in / "merges.txt", ignored))
    return (in / "vocab.json").string();
  return "";
}

std::string tokenizer_file(const std::string& name) {
  std::error_code ignored;
  const fs::path of_set = fs::path(paths::sets_folder()) / name;
  const bool is_set = !name.empty() && name.find('/') == std::string::npos && !fs::exists(name, ignored) && fs::exists(of_set, ignored);
  const std::string path = is_set ? of_set.string() : name;
  if (!fs::is_directory(path, ignored)) return path;
  const std::string file = tokenizer_file_in(path);
  if (file.empty())
    throw Error(ErrorCode::not_found, "no tokenizer is in " + path,
                "it has no tokenizer.json, no vocab.txt, and no vocab.json with merges.txt",
                "name a file of a tokenizer, or a folder that has one");
  return file;
}

std::string bert_vocabulary(const std::string& assets) { return (fs::path(assets) / "vocab" / "bert-uncased.txt").string(); }

std::shared_ptr<const Tokenizer> open_tokenizer(const std::string& name) {
  const fs::path given(tokenizer_file(name));
  if (given.filename() == "merges.txt" || given.filename() == "vocab.json") return BpeTokenizer::of_files(given.parent_path().string());
  return given.extension() == ".json" ? of_json(given.string()) : WordPiece::of_lines(given.string());
}

}  // namespace comera
