#include "core/data/bpe.h"

#include <utf8proc.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <queue>

#include "core/base/error.h"
#include "core/data/mapped_file.h"
#include "core/data/sha256.h"

namespace comera {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD", kLowLine = "\xE2\x96\x81";  // U+FFFD, U+2581

std::string utf8_of(int32_t c) {
  utf8proc_uint8_t bytes[4];
  const auto count = utf8proc_encode_char(c, bytes);
  return {reinterpret_cast<const char*>(bytes), static_cast<size_t>(count)};
}

// Length of the character at `at`, 0 if it is not valid; `bad` is then the length of its maximal part (Unicode 3.9, table 3-7).
size_t character(std::string_view text, size_t at, size_t& bad) {
  const auto byte = [&](size_t i) { return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u; };
  const unsigned first = byte(0);
  bad = 1;
  if (first < 0x80) return 1;
  unsigned low = 0x80, high = 0xBF;
  size_t length = 0;
  if (first >= 0xC2 && first <= 0xDF) length = 2;
  if (first >= 0xE0 && first <= 0xEF) length = 3, low = first == 0xE0 ? 0xA0 : 0x80, high = first == 0xED ? 0x9F : 0xBF;
  if (first >= 0xF0 && first <= 0xF4) length = 4, low = first == 0xF0 ? 0x90 : 0x80, high = first == 0xF4 ? 0x8F : 0xBF;
  for (size_t i = 1; i < length; ++i) {
    if (byte(i) < low || byte(i) > high) {
      bad = i;
      return 0;
    }
    low = 0x80, high = 0xBF;
  }
  return length;
}

std::string valid_utf8(std::string_view text) {
  std::string out;
  for (size_t at = 0, bad = 0; at < text.size();) {
    const size_t length = character(text, at, bad);
    out += length > 0 ? text.substr(at, length) : kReplacement;
    at += length > 0 ? length : bad;
  }
  return out;
}

int32_t code_at(std::string_view text, size_t at, size_t& length) {
  int32_t code = -1;
  const auto read =
      utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at, static_cast<utf8proc_ssize_t>(text.size() - at), &code);
  CHECK(read > 0, "text that is not UTF-8");
  length = static_cast<size_t>(read);
  return code;
}

// Unicode's White_Space.
bool is_space(int32_t c) {
  return (c >= 9 && c <= 13) || c == 32 || c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}
enum class Class : unsigned char { space, letter, number, other };
Class class_of(int32_t c) {
  if (is_space(c)) return Class::space;
  const utf8proc_category_t category = utf8proc_category(c);
  if (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO) return Class::letter;
  if (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO) return Class::number;
  return Class::other;
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

void BpeTokenizer::unknown(const std::string& what) const {
  throw Error(ErrorCode::config, path_ + ": " + what, "this part of a tokenizer is not known here",
              "use a tokenizer of GPT-2, RoBERTa or LLaMA");
}

int32_t BpeTokenizer::id_of(const std::string& token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? -1 : found->second;
}

BpeTokenizer::BpeTokenizer(const std::string& path) : path_(path) {
  const MappedFile mapped(path);
  fingerprint_ = sha256_hex(mapped.bytes());
  const Json file = parse_json(std::string(mapped.bytes()), path);
  try {
    read_model(file.at("model"));
    read_added(file.value("added_tokens", Json::array()));
    read_steps(file);
    read_template(file.value("post_processor", Json()));
  } catch (const Json::exception& error) {
    throw Error(ErrorCode::config, path + " is not a tokenizer.json", error.what(), "give the file that the tokenizers library wrote");
  }
}

void BpeTokenizer::read_model(const Json& model) {
  if (model.value("type", "BPE") != "BPE") unknown("a model of type " + model.at("type").dump());
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (const auto found = model.find(key); found != model.end() && !found->is_null() && *found != "")
      unknown(std::string(key) + " " + found->dump());
  if (const auto found = model.find("dropout"); found != model.end() && !found->is_null() && *found != 0.0)
    unknown("dropout " + found->dump());
  int64_t most = -1;
  for (const auto& [token, id] : model.at("vocab").items()) {
    if (!id.is_number_integer() || id < 0 || id > 100'000'000)
      throw Error(ErrorCode::config, path_ + ": the id of a token is " + id.dump(), "ids are small whole numbers");
    ids_[token] = id;
    most = std::max(most, id.get<int64_t>());
  }
  if (most < 0) throw Error(ErrorCode::config, path_ + " has no tokens", "its vocabulary is empty");
  if (most >= 4 * static_cast<int64_t>(ids_.size()) + 1024)
    throw Error(ErrorCode::config, path_ + ": the ids of tokens reach " + std::to_string(most),
                "there are " + std::to_string(ids_.size()) + " tokens");
  tokens_.resize(static_cast<size_t>(most) + 1);
  for (const auto& [token, id] : ids_) tokens_[static_cast<size_t>(id)] = token;
  int32_t rank = 0;
  for (const Json& merge : model.at("merges")) {
    std::string a, b;
    if (merge.is_array()) {
      a = merge.at(0), b = merge.at(1);
    } else {  // older files
      const std::string both = merge;
      const size_t space = both.find(' ');
      a = both.substr(0, space), b = space == std::string::npos ? "" : both.substr(space + 1);
    }
    const int32_t left = id_of(a), right = id_of(b), made = id_of(a + b);
    if (left < 0 || right < 0 || made < 0)
      throw Error(ErrorCode::config, path_ + ": merge " + merge.dump() + " has no token",
                  "both parts and their sum must be in the vocabulary");
    merges_.try_emplace(key_of(left, right), Merge{rank++, made});
  }
  if (const auto found = model.find("unk_token"); found != model.end() && found->is_string()) unknown_ = id_of(*found);
  bytes_.fill(-1);
  if (model.value("byte_fallback", false))
    for (int byte = 0; byte < 256; ++byte) {
      char name[8];
      std::snprintf(name, sizeof name, "<0x%02X>", byte);
      bytes_[static_cast<size_t>(byte)] = id_of(name);
    }
}

void BpeTokenizer::read_added(const Json& added) {
  for (const Json& token : added) {
    const std::string text = token.at("content");
    const int32_t id = token.at("id");
    if (text.empty() || id < 0 || id > static_cast<int32_t>(tokens_.size()) + 100'000) unknown("the added token " + token.dump());
    if (token.value("single_word", false)) unknown("an added token that is a single word");
    if (static_cast<size_t>(id) >= tokens_.size()) tokens_.resize(static_cast<size_t>(id) + 1);
    tokens_[static_cast<size_t>(id)] = text;
    ids_[text] = id;
    added_.push_back({text, id, token.value("lstrip", false), token.value("rstrip", false)});
  }
  std::stable_sort(added_.begin(), added_.end(), [](const Added& a, const Added& b) { return a.text.size() > b.text.size(); });
}

void BpeTokenizer::read_steps(const Json& file) {
  const Json pre = file.value("pre_tokenizer", Json()), normalizer = file.value("normalizer", Json());
  const std::string kind = pre.is_object() ? pre.value("type", "") : "";
  if (kind == "ByteLevel") {
    if (!pre.value("use_regex", true)) unknown("byte-level tokens of whole texts");
    by_bytes_ = true;
    prefix_space_ = pre.value("add_prefix_space", false);
    const std::array<std::string, 256> names = byte_names();
    for (size_t byte = 0; byte < 256; ++byte) bytes_[byte] = id_of(names[byte]);
    if (!normalizer.is_null()) unknown("a normalizer before bytes");
    return;
  }
  if (kind == "Metaspace") {
    if (pre.value("split", true)) unknown("words that are split at spaces");
    if (pre.value("replacement", std::string(kLowLine)) != kLowLine) unknown("another sign for spaces");
    const std::string scheme = pre.value("prepend_scheme", pre.value("add_prefix_space", true) ? "always" : "never");
    spaces_ = scheme == "first" ? Spaces::before_first : Spaces::before_each;
    if (scheme == "never") unknown("spaces without a sign before the text");
    if (!normalizer.is_null()) unknown("a normalizer before spaces");
    return;
  }
  if (!pre.is_null()) unknown("a pre-tokenizer of type " + kind);
  const Json steps = normalizer.is_object() && normalizer.value("type", "") == "Sequence" ? normalizer.at("normalizers") : Json();
  const bool known = steps.size() == 2 && steps[0].value("type", "") == "Prepend" && steps[0].value("prepend", "") == kLowLine &&
                     steps[1].value("type", "") == "Replace" && steps[1].at("pattern").value("String", "") == " " &&
                     steps[1].value("content", "") == kLowLine;
  if (!known) unknown("the normalizer " + normalizer.dump());
  spaces_ = Spaces::before_each;
}

void BpeTokenizer::read_template(const Json& processor) {
  const Piece first{-1, 0}, second{-1, 1};
  single_ = {first};
  pair_ = {first, second};
  const std::string kind = processor.is_object() ? processor.value("type", "") : "";
  if (kind.empty() || kind == "ByteLevel") return;
  if (kind == "RobertaProcessing" || kind == "BertProcessing") {
    const Piece cls{processor.at("cls").at(1), 0}, sep{processor.at("sep").at(1), 0};
    single_ = {cls, first, sep};
    pair_ = {cls, first, sep, second, sep};
    if (kind == "RobertaProcessing") pair_.insert(pair_.begin() + 3, sep);
    return;
  }
  if (kind != "TemplateProcessing") unknown("a post-processor of type " + kind);
  const auto pieces = [&](const Json& list) {
    std::vector<Piece> out;
    for (const Json& piece : list) {
      if (const auto special = piece.find("SpecialToken"); special != piece.end())
        for (const Json& id : processor.at("special_tokens").at(special->at("id").get<std::string>()).at("ids")) out.push_back({id, 0});
      else
        out.push_back({-1, piece.at("Sequence").at("id") == "A" ? 0 : 1});
    }
    return out;
  };
  single_ = pieces(processor.at("single"));
  pair_ = pieces(processor.at("pair"));
}

// Pairs are merged in the order of their rank, of two with the same rank the one on the left first.
void BpeTokenizer::merge(std::vector<int32_t>& symbols) const {
  if (symbols.size() < 2) return;
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
    if (const auto found = merges_.find(key_of(left, right)); found != merges_.end())
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

void BpeTokenizer::encode_by_words(std::string_view text, std::vector<int32_t>& ids) const {
  std::string spaced;
  if (prefix_space_ && !text.empty()) {
    size_t length = 0;
    if (!is_space(code_at(text, 0, length))) text = spaced = " " + std::string(text);
  }
  std::vector<int32_t> symbols;
  for (size_t at = 0; at < text.size();) {
    const size_t end = piece_end(text, at);
    symbols.clear();
    for (; at < end; ++at)
      if (const int32_t id = bytes_[static_cast<unsigned char>(text[at])]; id >= 0) symbols.push_back(id);
    merge(symbols);
    ids.insert(ids.end(), symbols.begin(), symbols.end());
  }
}

void BpeTokenizer::encode_characters(std::string_view text, std::vector<int32_t>& ids) const {
  std::vector<int32_t> symbols;
  for (size_t at = 0, length = 0; at < text.size(); at += length) {
    code_at(text, at, length);
    const std::string_view character = text.substr(at, length);
    if (const int32_t id = id_of(std::string(character)); id >= 0) {
      symbols.push_back(id);
      continue;
    }
    const bool all = std::all_of(character.begin(), character.end(), [&](char c) { return bytes_[static_cast<unsigned char>(c)] >= 0; });
    if (all)
      for (const char c : character) symbols.push_back(bytes_[static_cast<unsigned char>(c)]);
    else if (unknown_ >= 0 && (symbols.empty() || symbols.back() != unknown_))  // several unknown ones are one
      symbols.push_back(unknown_);
  }
  merge(symbols);
  ids.insert(ids.end(), symbols.begin(), symbols.end());
}

// `first`: nothing stands before it in its text.
void BpeTokenizer::encode_plain(std::string_view text, bool first, std::vector<int32_t>& ids) const {
  if (text.empty()) return;
  if (by_bytes_) return encode_by_words(text, ids);
  std::string line;
  const bool marked = text.starts_with(' ') || text.starts_with(kLowLine);
  if (spaces_ == Spaces::before_each || (spaces_ == Spaces::before_first && first && !marked)) line = kLowLine;
  for (const char c : text) line += c == ' ' ? std::string(kLowLine) : std::string(1, c);
  encode_characters(line, ids);
}

std::vector<int32_t> BpeTokenizer::encode(std::string_view given) const {
  const std::string text = valid_utf8(given);
  std::vector<int32_t> ids;
  size_t begin = 0;
  const std::string_view all = text;
  const auto plain = [&](size_t end) { encode_plain(all.substr(begin, end - begin), begin == 0, ids); };
  for (size_t at = 0; at < text.size();) {
    const auto found =
        std::find_if(added_.begin(), added_.end(), [&](const Added& added) { return all.substr(at).starts_with(added.text); });
    if (found == added_.end()) {
      ++at;
      continue;
    }
    size_t end = at, next = at + found->text.size();
    if (found->strips_left) {
      for (size_t place = begin, length = 0, last = begin; place < at; place += length) {
        if (!is_space(code_at(all, place, length))) last = place + length;
        end = last;
      }
    }
    if (found->strips_right)
      for (size_t length = 0; next < text.size() && is_space(code_at(all, next, length)); next += length) {
      }
    plain(end);
    ids.push_back(found->id);
    begin = at = next;
  }
  plain(text.size());
  return ids;
}

std::vector<int32_t> BpeTokenizer::around(const std::vector<Piece>& pieces, std::string_view first, std::string_view second) const {
  std::vector<int32_t> ids;
  for (const Piece& piece : pieces) {
    if (piece.token >= 0) {
      ids.push_back(piece.token);
      continue;
    }
    const std::vector<int32_t> own = encode(piece.text == 0 ? first : second);
    ids.insert(ids.end(), own.begin(), own.end());
  }
  return ids;
}

int32_t BpeTokenizer::mask_token() const {
  const int32_t mask = id_of("<mask>");
  return mask >= 0 ? mask : id_of("[MASK]");
}

std::vector<int32_t> BpeTokenizer::encode_with_specials(std::string_view text) const { return around(single_, text, {}); }
std::vector<int32_t> BpeTokenizer::encode_with_specials(std::string_view first, std::string_view second) const {
  return around(pair_, first, second);
}

std::string BpeTokenizer::decode(const std::vector<int32_t>& ids) const {
  std::string out, run;
  const auto end_run = [&] {  // of byte tokens: a text, or a sign for each byte
    size_t bad = 0, at = 0;
    while (at < run.size() && character(run, at, bad) > 0) at += character(run, at, bad);
    if (at == run.size())
      out += run;
    else
      for (size_t i = 0; i < run.size(); ++i) out += kReplacement;
    run.clear();
  };
  if (by_bytes_) {
    static const std::array<std::string, 256> names = byte_names();
    static const std::unordered_map<std::string, char> byte_of = [] {
      std::unordered_map<std::string, char> map;
      for (size_t byte = 0; byte < 256; ++byte) map[names[byte]] = static_cast<char>(byte);
      return map;
    }();
    for (const int32_t id : ids) {
      if (id < 0 || id >= size()) continue;
      const std::string& token = tokens_[static_cast<size_t>(id)];
      for (size_t at = 0, length = 0; at < token.size(); at += length) {
        code_at(token, at, length);
        const auto found = byte_of.find(token.substr(at, length));
        if (found == byte_of.end())
          out += token.substr(at, length);
        else
          out += found->second;
      }
    }
    return valid_utf8(out);
  }
  for (const int32_t id : ids) {
    if (id < 0 || id >= size()) continue;
    const auto byte = std::find(bytes_.begin(), bytes_.end(), id);
    if (byte != bytes_.end()) {
      run += static_cast<char>(byte - bytes_.begin());
      continue;
    }
    end_run();
    std::string token = tokens_[static_cast<size_t>(id)];
    for (size_t at = token.find(kLowLine); at != std::string::npos; at = token.find(kLowLine, at)) token.replace(at, kLowLine.size(), " ");
    out += token;
  }
  end_run();
  return out.starts_with(' ') ? out.substr(1) : out;
}

}  // namespace comera
