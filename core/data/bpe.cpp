#include "core/data/bpe.h"

#include <utf8proc.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <queue>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/mapped_file.h"
#include "core/data/sha256.h"
#include "core/data/utf8.h"
#include "core/data/word_cache.h"

namespace comera {
namespace {

constexpr std::string_view kLowLine = "\xE2\x96\x81";  // U+2581

enum class Class : unsigned char { space, letter, number, other };
Class find_class(int32_t c) {
  if (is_white_space(c)) return Class::space;
  const utf8proc_category_t category = utf8proc_category(c);
  if (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO) return Class::letter;
  if (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO) return Class::number;
  return Class::other;
}
Class class_of(int32_t c) {
  static const std::array<Class, 128> ascii = [] {
    std::array<Class, 128> all;
    for (int32_t code = 0; code < 128; ++code) all[static_cast<size_t>(code)] = find_class(code);
    return all;
  }();
  return c < 128 ? ascii[static_cast<size_t>(c)] : find_class(c);
}

// The characters that stand for bytes in a byte-level vocabulary: printable ones for themselves, others from U+0100 on.
std::array<std::string, 256> byte_names() {
  std::array<std::string, 256> names;
  int32_t next = 256;
  for (int32_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    names[static_cast<size_t>(byte)] = utf8_of(printable ? byte : next++);
  }
  return names;
}

uint64_t key_of(int32_t a, int32_t b) { return static_cast<uint64_t>(static_cast<uint32_t>(a)) << 32 | static_cast<uint32_t>(b); }

// The end of the piece that begins at `at`, as GPT-2's pattern splits: 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+|
// ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
size_t piece_end(std::string_view text, size_t at) {
  if (text[at] == '\'')
    for (const std::string_view ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"})
      if (text.substr(at).starts_with(ending)) return at + ending.size();
  size_t length = 0;
  const auto class_at = [&](size_t place) { return class_of(code_at(text, place, length)); };
  const size_t begin = text[at] == ' ' && at + 1 < text.size() ? at + 1 : at;  // a space may stand before a run
  const Class kind = class_at(begin);
  if (kind != Class::space) {
    size_t end = begin;
    while (end < text.size() && class_at(end) == kind) end += length;
    return end;
  }
  size_t end = at, last = at;
  while (end < text.size() && class_at(end) == Class::space) last = end, end += length;
  return end == text.size() || last == at ? end : last;  // before a word the last space goes with it, or stands alone
}

}  // namespace

BpeTokenizer::BpeTokenizer(TokenTable table, Model model)
    : Tokenizer(std::move(table), model.by_bytes), model_(std::move(model)), added_(table_.added) {}

std::shared_ptr<const BpeTokenizer> BpeTokenizer::of_json(const std::string& path, const WideJson& file, const std::string& fingerprint) {
  TokenReader reader(path);
  const WideJson& json = file.at("model");
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (const auto found = json.find(key); found != json.end() && !found->is_null() && *found != "")
      reader.unknown(std::string(key) + " " + found->dump());
  if (const auto found = json.find("dropout"); found != json.end() && !found->is_null() && *found != 0.0)
    reader.unknown("dropout " + found->dump());
  reader.read_vocabulary(json.at("vocab"));
  Model model;
  read_merges(reader, json.at("merges"), model);
  std::string unknown;
  if (const auto found = json.find("unk_token"); found != json.end() && found->is_string()) unknown = *found;
  model.unknown = unknown.empty() ? -1 : reader.id_of(unknown);
  model.bytes.fill(-1);
  if (json.value("byte_fallback", false))
    for (int byte = 0; byte < 256; ++byte) {
      char name[8];
      std::snprintf(name, sizeof name, "<0x%02X>", byte);
      model.bytes[static_cast<size_t>(byte)] = reader.id_of(name);
    }
  reader.read_added(file.value("added_tokens", WideJson::array()));
  read_steps(reader, file, model);
  reader.read_processor(file.value("post_processor", WideJson()));
  model.ids = reader.ids();
  return std::shared_ptr<const BpeTokenizer>(new BpeTokenizer(reader.finish(unknown, fingerprint), std::move(model)));
}

std::shared_ptr<const BpeTokenizer> BpeTokenizer::of_files(const std::string& folder) {
  const std::filesystem::path in(folder);
  const std::string path = (in / "vocab.json").string(), merges_path = (in / "merges.txt").string(),
                    config_path = (in / "tokenizer_config.json").string();
  const MappedFile vocabulary(path), merges(merges_path);
  TokenReader reader(path);
  reader.read_vocabulary(parse_wide_json(std::string(vocabulary.bytes()), path));
  Model model;
  int64_t number = 0;
  for (std::string_view rest = merges.bytes(); !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.starts_with("#version")) continue;
    const size_t space = std::min(line.find(' '), line.size());
    add_merge(reader, line.substr(0, space), line.substr(std::min(space + 1, line.size())),
              " does not fit " + merges_path + ":" + std::to_string(number), model);
  }
  take_bytes(reader, model);
  std::error_code ignored;
  if (std::filesystem::is_regular_file(config_path, ignored)) {
    const Json config = read_json_file(config_path);
    const auto found = config.find("add_prefix_space");
    model.prefix_space = found != config.end() && found->is_boolean() && found->get<bool>();
  }
  const bool around = reader.id_of("<s>") >= 0 && reader.id_of("</s>") >= 0;
  for (const char* token : {"<|endoftext|>", "<s>", "<pad>", "</s>", "<unk>", "<mask>"})
    if (const int32_t id = reader.id_of(token); id >= 0) reader.add({token, id, std::string_view(token) == "<mask>", false});
  if (around) reader.surround("<s>", "</s>", true);
  model.ids = reader.ids();
  const std::string fingerprint =
      sha256_hex(sha256_hex(vocabulary.bytes()) + sha256_hex(merges.bytes()) + (model.prefix_space ? "/space" : ""));
  return std::shared_ptr<const BpeTokenizer>(new BpeTokenizer(reader.finish("", fingerprint), std::move(model)));
}

void BpeTokenizer::add_merge(const TokenReader& reader, std::string_view left, std::string_view right, const std::string& where,
                             Model& model) {
  const std::string both = std::string(left) + std::string(right);
  const int32_t a = reader.id_of(left), b = reader.id_of(right), made = reader.id_of(both);
  if (a < 0 || b < 0 || made < 0) reader.wrong(where, "both parts of a merge and their sum must be in the vocabulary");
  const auto rank = static_cast<int32_t>(model.merges.size());
  model.merges.try_emplace(key_of(a, b), Merge{rank, made});
}

void BpeTokenizer::read_merges(const TokenReader& reader, const WideJson& merges, Model& model) {
  for (const WideJson& merge : merges) {
    std::string left, right;
    if (merge.is_array()) {
      left = merge.at(0), right = merge.at(1);
    } else {  // older files
      const std::string both = merge;
      const size_t space = both.find(' ');
      left = both.substr(0, space), right = space == std::string::npos ? "" : both.substr(space + 1);
    }
    add_merge(reader, left, right, ": merge " + merge.dump().substr(0, 100) + " has no token", model);
  }
}

void BpeTokenizer::take_bytes(const TokenReader& reader, Model& model) {
  model.by_bytes = true;
  const std::array<std::string, 256> names = byte_names();
  for (size_t byte = 0; byte < 256; ++byte) model.bytes[byte] = reader.id_of(names[byte]);
}

void BpeTokenizer::read_steps(const TokenReader& reader, const WideJson& file, Model& model) {
  const WideJson pre = file.value("pre_tokenizer", WideJson()), normalizer = file.value("normalizer", WideJson());
  const std::string kind = pre.is_object() ? pre.value("type", "") : "";
  if (kind == "ByteLevel") {
    if (!pre.value("use_regex", true)) reader.unknown("byte-level tokens of whole texts");
    model.prefix_space = pre.value("add_prefix_space", false);
    take_bytes(reader, model);
    if (!normalizer.is_null()) reader.unknown("a normalizer before bytes");
    return;
  }
  if (kind == "Metaspace") {
    if (pre.value("split", true)) reader.unknown("words that are split at spaces");
    if (pre.value("replacement", std::string(kLowLine)) != kLowLine) reader.unknown("another sign for spaces");
    const std::string scheme = pre.value("prepend_scheme", pre.value("add_prefix_space", true) ? "always" : "never");
    model.spaces = scheme == "first" ? Spaces::before_first : Spaces::before_each;
    if (scheme == "never") reader.unknown("spaces without a sign before the text");
    if (!normalizer.is_null()) reader.unknown("a normalizer before spaces");
    return;
  }
  if (!pre.is_null()) reader.unknown("a pre-tokenizer of type " + kind);
  const WideJson steps = normalizer.is_object() && normalizer.value("type", "") == "Sequence" ? normalizer.at("normalizers") : WideJson();
  const bool known = steps.size() == 2 && steps[0].value("type", "") == "Prepend" && steps[0].value("prepend", "") == kLowLine &&
                     steps[1].value("type", "") == "Replace" && steps[1].at("pattern").value("String", "") == " " &&
                     steps[1].value("content", "") == kLowLine;
  if (!known) reader.unknown("the normalizer " + normalizer.dump());
  model.spaces = Spaces::before_each;
}

constexpr size_t kFew = 24;

// The same as merge() below, for at most kFew symbols: each time the merges of all neighbours are compared.
void BpeTokenizer::merge_few(std::vector<int32_t>& symbols) const {
  Merge merges[kFew];  // of a symbol with the next one
  size_t count = symbols.size();
  const auto look = [&](size_t at) {
    const auto found = model_.merges.find(key_of(symbols[at], symbols[at + 1]));
    merges[at] = found == model_.merges.end() ? Merge{INT32_MAX, -1} : found->second;
  };
  for (size_t at = 0; at + 1 < count; ++at) look(at);
  while (count > 1) {
    const auto best = std::min_element(merges, merges + count - 1, [](const Merge& a, const Merge& b) { return a.rank < b.rank; });
    if (best->made < 0) break;
    const auto at = static_cast<size_t>(best - merges);
    symbols[at] = best->made;
    std::copy(symbols.data() + at + 2, symbols.data() + count, symbols.data() + at + 1);
    std::copy(merges + at + 1, merges + count - 1, merges + at);
    --count;
    if (at > 0) look(at - 1);
    if (at + 1 < count) look(at);
  }
  symbols.resize(count);
}

// Pairs are merged in the order of their rank, of two with the same rank the one on the left first.
void BpeTokenizer::merge(std::vector<int32_t>& symbols) const {
  if (symbols.size() <= kFew) return merge_few(symbols);
  struct Node {
    int32_t symbol;
    int before, after;  // -1: none
  };
  struct Candidate {
    int32_t rank;
    int at;
    int32_t left, right, made;
    bool operator>(const Candidate& other) const { return rank != other.rank ? rank > other.rank : at > other.at; }
  };
  std::vector<Node> nodes;
  const int count = static_cast<int>(symbols.size());
  for (int i = 0; i < count; ++i) nodes.push_back({symbols[static_cast<size_t>(i)], i - 1, i + 1 < count ? i + 1 : -1});
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  const auto node = [&](int at) -> Node& { return nodes[static_cast<size_t>(at)]; };
  const auto offer = [&](int at) {
    if (at < 0 || node(at).after < 0) return;
    const int32_t left = node(at).symbol, right = node(node(at).after).symbol;
    if (const auto found = model_.merges.find(key_of(left, right)); found != model_.merges.end())
      queue.push({found->second.rank, at, left, right, found->second.made});
  };
  for (int i = 0; i + 1 < count; ++i) offer(i);
  while (!queue.empty()) {
    const Candidate next = queue.top();
    queue.pop();
    Node& left = node(next.at);
    if (left.symbol != next.left || left.after < 0 || node(left.after).symbol != next.right) continue;  // merged otherwise meanwhile
    Node& right = node(left.after);
    left.symbol = next.made;
    right.symbol = -1;
    left.after = right.after;
    if (left.after >= 0) node(left.after).before = next.at;
    offer(left.before);
    offer(next.at);
  }
  symbols.clear();
  for (int at = 0; at >= 0; at = node(at).after) symbols.push_back(node(at).symbol);
}

void BpeTokenizer::encode_by_words(std::string_view text, WordCache& cache, std::vector<int32_t>& ids) const {
  std::string spaced;
  if (model_.prefix_space) {
    size_t length = 0;
    if (!is_white_space(code_at(text, 0, length))) text = spaced = " " + std::string(text);
  }
  std::vector<int32_t> symbols;
  const auto encode = [&](std::string_view word, std::vector<int32_t>& to) {
    symbols.clear();
    for (const char c : word)
      if (const int32_t id = model_.bytes[static_cast<unsigned char>(c)]; id >= 0) symbols.push_back(id);
    merge(symbols);
    to.insert(to.end(), symbols.begin(), symbols.end());
  };
  for (size_t at = 0, end; at < text.size(); at = end) {
    end = piece_end(text, at);
    cache.encode(text.substr(at, end - at), ids, encode);
  }
}

void BpeTokenizer::encode_characters(std::string_view text, std::vector<int32_t>& ids) const {
  std::vector<int32_t> symbols;
  for (size_t at = 0, length = 0; at < text.size(); at += length) {
    code_at(text, at, length);
    const std::string_view character = text.substr(at, length);
    if (const int32_t id = id_in(model_.ids, character); id >= 0) {
      symbols.push_back(id);
      continue;
    }
    const bool all =
        std::all_of(character.begin(), character.end(), [&](char c) { return model_.bytes[static_cast<unsigned char>(c)] >= 0; });
    if (all)
      for (const char c : character) symbols.push_back(model_.bytes[static_cast<unsigned char>(c)]);
    else if (model_.unknown >= 0 && (symbols.empty() || symbols.back() != model_.unknown))  // several unknown ones are one
      symbols.push_back(model_.unknown);
  }
  merge(symbols);
  ids.insert(ids.end(), symbols.begin(), symbols.end());
}

// `first`: nothing stands before it in its text.
void BpeTokenizer::encode_plain(std::string_view text, bool first, WordCache& cache, std::vector<int32_t>& ids) const {
  if (text.empty()) return;
  if (model_.by_bytes) return encode_by_words(text, cache, ids);
  std::string line;
  const bool marked = text.starts_with(' ') || text.starts_with(kLowLine);
  if (model_.spaces == Spaces::before_each || (model_.spaces == Spaces::before_first && first && !marked)) line = kLowLine;
  for (const char c : text)
    if (c == ' ')
      line += kLowLine;
    else
      line += c;
  encode_characters(line, ids);
}

void BpeTokenizer::encode(std::string_view text, std::vector<int32_t>& ids) const {
  ids.clear();
  WordCache cache(text.size());
  std::string buffer;
  added_.split(
      valid_utf8(text, buffer), [&](std::string_view plain, size_t begin) { encode_plain(plain, begin == 0, cache, ids); },
      [&](int32_t id) { ids.push_back(id); });
}

std::string BpeTokenizer::decode_bytes(const std::vector<int32_t>& ids) const {
  std::string out, buffer;
  static const std::array<std::string, 256> names = byte_names();
  static const std::unordered_map<std::string, char> byte_of = [] {
    std::unordered_map<std::string, char> map;
    for (size_t byte = 0; byte < 256; ++byte) map[names[byte]] = static_cast<char>(byte);
    return map;
  }();
  for (const int32_t id : ids) {
    if (id < 0 || id >= size()) continue;
    const std::string& token = table_.tokens[static_cast<size_t>(id)];
    for (size_t at = 0, length = 0; at < token.size(); at += length) {
      code_at(token, at, length);
      const auto found = byte_of.find(token.substr(at, length));
      if (found == byte_of.end())
        out += token.substr(at, length);
      else
        out += found->second;
    }
  }
  return std::string(valid_utf8(out, buffer));
}

std::string BpeTokenizer::decode(const std::vector<int32_t>& ids) const {
  if (model_.by_bytes) return decode_bytes(ids);
  std::string out, run;
  const auto end_run = [&] {  // of byte tokens: a text, or a sign for each byte
    size_t bad = 0, at = 0;
    while (at < run.size() && character_length(run, at, bad) > 0) at += character_length(run, at, bad);
    if (at == run.size())
      out += run;
    else
      for (size_t i = 0; i < run.size(); ++i) out += kReplacement;
    run.clear();
  };
  for (const int32_t id : ids) {
    if (id < 0 || id >= size()) continue;
    const auto byte = std::find(model_.bytes.begin(), model_.bytes.end(), id);
    if (byte != model_.bytes.end()) {
      run += static_cast<char>(byte - model_.bytes.begin());
      continue;
    }
    end_run();
    std::string token = table_.tokens[static_cast<size_t>(id)];
    for (size_t at = token.find(kLowLine); at != std::string::npos; at = token.find(kLowLine, at)) token.replace(at, kLowLine.size(), " ");
    out += token;
  }
  end_run();
  return out.starts_with(' ') ? out.substr(1) : out;
}

}  // namespace comera
