#include "core/data/wordpiece.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/mapped_file.h"
#include "core/data/sha256.h"
#include "core/data/utf8.h"
#include "core/data/word_cache.h"

namespace comera {
namespace {

bool starts_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

std::vector<std::string> read_lines(std::string_view bytes) {
  std::vector<std::string> lines;
  while (!bytes.empty()) {
    const size_t end = std::min(bytes.find('\n'), bytes.size());
    std::string_view line = bytes.substr(0, end);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    lines.emplace_back(line);
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
  }
  return lines;
}

// A member of a tokenizer_config.json, which may be null or missing.
template <class AnyJson>
bool option(const AnyJson& config, const char* name, bool otherwise) {
  const auto found = config.find(name);
  return found == config.end() || !found->is_boolean() ? otherwise : found->template get<bool>();
}

// What a tokenizer_config.json next to a vocab.txt says.
WordRules rules_next_to(const std::string& path) {
  WordRules rules;
  const std::filesystem::path config = std::filesystem::path(path).parent_path() / "tokenizer_config.json";
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(config, ignored)) return rules;
  const Json json = read_json_file(config.string());
  if (!json.is_object()) return rules;
  rules.lowercase = option(json, "do_lower_case", true);
  rules.ideographs = option(json, "tokenize_chinese_chars", true);
  rules.strip_accents = option(json, "strip_accents", rules.lowercase);
  return rules;
}

// Spaces that an English text does not have.
std::string joined(std::string token) {
  constexpr std::pair<const char*, const char*> kTexts[] = {{" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
                                                            {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
                                                            {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : kTexts) {
    const size_t length = std::string_view(from).size(), step = std::string_view(to).size();
    for (size_t at = token.find(from); at != std::string::npos; at = token.find(from, at + step)) token.replace(at, length, to);
  }
  return token;
}

}  // namespace

WordPiece::WordPiece(TokenTable table, Rules rules) : Tokenizer(std::move(table), true), rules_(std::move(rules)), added_(table_.added) {
  for (size_t id = 0; id < table_.tokens.size(); ++id) {  // of a token that comes twice the last counts, as in the published reader
    std::string_view token = table_.tokens[id];
    first_[token] = static_cast<int32_t>(id);
    longest_ = std::max(longest_, token.size());
    if (!token.starts_with(rules_.prefix) || token.size() == rules_.prefix.size()) continue;
    token.remove_prefix(rules_.prefix.size());
    inner_[token] = static_cast<int32_t>(id);
  }
}

std::shared_ptr<const WordPiece> WordPiece::of_lines(const std::string& path) {
  const MappedFile file(path);
  if (file.bytes().find('\0') != std::string_view::npos)
    throw Error(ErrorCode::config, path + " is not a vocabulary", "it is a binary file", "name a vocab.txt with one token a line");
  TokenTable table;
  table.tokens = read_lines(file.bytes());
  table.fingerprint = sha256_hex(file.bytes());
  Rules rules;
  rules.words = rules_next_to(path);
  if (rules.words != WordRules())
    table.fingerprint = sha256_hex(table.fingerprint + "/" + std::to_string(rules.words.lowercase) +
                                   std::to_string(rules.words.ideographs) + std::to_string(rules.words.strip_accents));
  const auto find = [&](const char* token) {
    const auto found = std::find(table.tokens.rbegin(), table.tokens.rend(), token);
    return static_cast<int32_t>(table.tokens.rend() - found) - 1;
  };
  const auto special = [&](const char* token) {
    const int32_t id = find(token);
    if (id < 0)
      throw Error(ErrorCode::config, path + " is not a WordPiece vocabulary", std::string("it has no line ") + token,
                  "name a vocab.txt of a BERT model: one token a line, among them [PAD], [UNK], [CLS] and [SEP]");
    table.specials.push_back(id);
    return id;
  };
  table.pad = special("[PAD]");
  table.unknown = special("[UNK]");
  table.cls = special("[CLS]");
  table.sep = table.end = special("[SEP]");
  table.mask = find("[MASK]");
  if (table.mask >= 0) table.specials.push_back(table.mask);
  std::sort(table.specials.begin(), table.specials.end());
  const Mark cls{table.cls, 0, 0}, first{-1, 0, 0}, sep{table.sep, 0, 0}, second{-1, 1, 1}, last{table.sep, 0, 1};
  table.single = {cls, first, sep};
  table.pair = {cls, first, sep, second, last};
  return std::shared_ptr<const WordPiece>(new WordPiece(std::move(table), std::move(rules)));
}

WordPiece::Rules WordPiece::rules_of(const TokenReader& reader, const WideJson& file) {
  Rules rules;
  rules.words = {.clean = false, .ideographs = false, .strip_accents = false, .lowercase = false, .library = true};
  const auto kind_of = [&](const char* part) {
    const auto found = file.find(part);
    return found == file.end() || found->is_null() ? std::string() : found->at("type").get<std::string>();
  };
  if (const std::string kind = kind_of("normalizer"); !kind.empty()) {
    if (kind != "BertNormalizer") reader.unknown("a normalizer of type " + kind);
    const WideJson& normalizer = file.at("normalizer");
    rules.words.clean = option(normalizer, "clean_text", true);
    rules.words.ideographs = option(normalizer, "handle_chinese_chars", true);
    rules.words.lowercase = option(normalizer, "lowercase", true);
    rules.words.strip_accents = option(normalizer, "strip_accents", rules.words.lowercase);
    for (const WideJson& token : file.value("added_tokens", WideJson::array()))
      if (token.value("normalized", false)) reader.unknown("the added token " + token.dump() + ", which is looked for in normalized text");
  }
  if (const std::string kind = kind_of("pre_tokenizer"); kind != "BertPreTokenizer")
    reader.unknown(kind.empty() ? "words that are not split" : "a pre-tokenizer of type " + kind);
  if (const std::string kind = kind_of("decoder"); kind == "WordPiece")
    rules.joins = option(file.at("decoder"), "cleanup", true);
  else if (!kind.empty())
    reader.unknown("a decoder of type " + kind);
  const WideJson& model = file.at("model");
  rules.prefix = model.value("continuing_subword_prefix", "##");
  rules.longest_word = model.value("max_input_chars_per_word", int64_t{100});
  return rules;
}

std::shared_ptr<const WordPiece> WordPiece::of_json(const std::string& path, const WideJson& file, const std::string& fingerprint) {
  TokenReader reader(path);
  const WideJson& model = file.at("model");
  reader.read_vocabulary(model.at("vocab"));
  reader.read_added(file.value("added_tokens", WideJson::array()));
  Rules rules = rules_of(reader, file);
  reader.read_processor(file.value("post_processor", WideJson()));
  const std::string unknown = model.value("unk_token", "[UNK]");
  if (reader.id_of(unknown) < 0) reader.wrong(" has no token " + unknown, "unknown words become this token");
  return std::shared_ptr<const WordPiece>(new WordPiece(reader.finish(unknown, fingerprint), std::move(rules)));
}

void WordPiece::encode_word(std::string_view word, std::vector<int32_t>& ids) const {
  const size_t before = ids.size();
  bool known = std::count_if(word.begin(), word.end(), starts_character) <= rules_.longest_word;
  for (size_t start = 0; known && start < word.size();) {
    const Pieces& pieces = start == 0 ? first_ : inner_;
    size_t end = std::min(word.size(), start + longest_);
    for (; end > start; --end) {  // the longest piece that fits
      if (end < word.size() && !starts_character(word[end])) continue;
      const auto found = pieces.find(word.substr(start, end - start));
      if (found == pieces.end()) continue;
      ids.push_back(found->second);
      break;
    }
    known = end > start;
    start = end;
  }
  if (known) return;
  ids.resize(before);
  ids.push_back(table_.unknown);
}

void WordPiece::encode_words(std::string_view text, WordCache& cache, std::vector<int32_t>& ids) const {
  std::string buffer;
  normalize_words(text, rules_.words, buffer);
  for (std::string_view words = buffer; !words.empty();) {
    const size_t end = std::min(words.find(' '), words.size());
    cache.encode(words.substr(0, end), ids, [&](std::string_view word, std::vector<int32_t>& to) { encode_word(word, to); });
    words.remove_prefix(std::min(end + 1, words.size()));
  }
}

void WordPiece::encode(std::string_view text, std::vector<int32_t>& ids) const {
  ids.clear();
  WordCache cache(text.size());
  if (!rules_.words.library) return encode_words(text, cache, ids);
  std::string buffer;
  added_.split(
      valid_utf8(text, buffer), [&](std::string_view plain, size_t) { encode_words(plain, cache, ids); },
      [&](int32_t id) { ids.push_back(id); });
}

std::string WordPiece::decode(const std::vector<int32_t>& ids) const {
  std::string text;
  bool first = true;
  for (const int32_t id : ids) {
    if (id < 0 || id >= size()) continue;
    std::string token = table_.tokens[static_cast<size_t>(id)];
    if (!first) token = token.starts_with(rules_.prefix) ? token.substr(rules_.prefix.size()) : " " + token;
    text += rules_.joins ? joined(std::move(token)) : token;
    first = false;
  }
  return text;
}

}  // namespace comera
