#include "core/data/token_table.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/data/utf8.h"

namespace comera {
namespace {

constexpr int64_t kLargestId = 100'000'000;
constexpr int32_t kMostSegments = 2;

// Of a message that has parts of a file in it.
std::string one_line(const std::string& text) {
  std::string buffer, line(valid_utf8(std::string_view(text).substr(0, 200), buffer));
  std::replace_if(
      line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  return line;
}

}  // namespace

void TokenReader::unknown(const std::string& what) const {
  throw Error(ErrorCode::config, path_ + ": " + one_line(what), "this part of a tokenizer is not known here",
              "use a tokenizer of BERT, RoBERTa, GPT-2 or LLaMA");
}

void TokenReader::wrong(const std::string& what, const std::string& why) const {
  throw Error(ErrorCode::config, path_ + one_line(what), one_line(why), "get the tokenizer's files again");
}

int32_t TokenReader::id_from(const WideJson& json) const {
  if (!json.is_number_integer() || json < 0 || json > kLargestId)
    wrong(": the id of a token is " + json.dump(), "ids are whole numbers from 0 on");
  return json.get<int32_t>();
}

void TokenReader::read_vocabulary(const WideJson& vocabulary) {
  if (!vocabulary.is_object()) wrong(": its vocabulary is not an object", "it must have the id of each token");
  for (const auto& [token, id] : vocabulary.items()) ids_[token] = id_from(id);
  if (ids_.empty()) wrong(" has no tokens", "its vocabulary is empty");
}

void TokenReader::add(const AddedToken& token, bool special) {
  ids_[token.text] = token.id;
  table_.added.push_back(token);
  if (special) table_.specials.push_back(token.id);
}

void TokenReader::read_added(const WideJson& added) {
  for (const WideJson& token : added) {
    const std::string text = token.at("content");
    if (text.empty()) unknown("the added token " + token.dump());
    if (token.value("single_word", false)) unknown("an added token that is a single word");
    add({text, id_from(token.at("id")), token.value("lstrip", false), token.value("rstrip", false)}, token.value("special", false));
  }
}

std::vector<Mark> TokenReader::marks_of(const WideJson& list, const WideJson& tokens) const {
  std::vector<Mark> out;
  for (const WideJson& piece : list) {
    const auto special = piece.find("SpecialToken");
    const WideJson& of = special != piece.end() ? *special : piece.at("Sequence");
    const auto segment = of.value("type_id", int64_t{0});
    if (segment < 0 || segment >= kMostSegments) unknown("the segment " + std::to_string(segment));
    if (special == piece.end())
      out.push_back({-1, of.at("id") == "A" ? 0 : 1, static_cast<int32_t>(segment)});
    else
      for (const WideJson& id : tokens.at(of.at("id").get<std::string>()).at("ids"))
        out.push_back({id_from(id), 0, static_cast<int32_t>(segment)});
    if (out.size() > 64) unknown("more than 64 tokens around texts");
  }
  return out;
}

void TokenReader::surround(const char* cls, const char* sep, bool doubled) {
  table_.cls = id_of(cls);
  table_.sep = id_of(sep);
  if (table_.cls < 0 || table_.sep < 0) wrong(std::string(" has no ") + (table_.cls < 0 ? cls : sep), "it stands around every text");
  const Mark before{table_.cls, 0, 0}, behind{table_.sep, 0, 0};
  const int32_t second = doubled ? 0 : 1;  // its segment
  table_.single = {before, {-1, 0, 0}, behind};
  table_.pair = {before, {-1, 0, 0}, behind};
  if (doubled) table_.pair.push_back(behind);
  table_.pair.push_back({-1, 1, second});
  table_.pair.push_back({table_.sep, 0, second});
}

void TokenReader::read_processor(const WideJson& processor) {
  const std::string kind = processor.is_object() ? processor.value("type", "") : "";
  if (kind.empty()) return;
  if (kind == "ByteLevel") return;
  if (kind == "RobertaProcessing" || kind == "BertProcessing") {
    const std::string cls = processor.at("cls").at(0), sep = processor.at("sep").at(0);
    for (const char* mark : {"cls", "sep"})
      if (id_of(processor.at(mark).at(0).get<std::string>()) != id_from(processor.at(mark).at(1)))
        wrong(": " + processor.at(mark).dump() + " stands around texts", "the vocabulary has no such token of this id");
    return surround(cls.c_str(), sep.c_str(), kind == "RobertaProcessing");
  }
  if (kind != "TemplateProcessing") unknown("a post-processor of type " + kind);
  const WideJson tokens = processor.value("special_tokens", WideJson::object());
  table_.single = marks_of(processor.at("single"), tokens);
  table_.pair = marks_of(processor.at("pair"), tokens);
  const auto texts = [](const std::vector<Mark>& marks, int text) {
    return std::count_if(marks.begin(), marks.end(), [&](const Mark& mark) { return mark.token < 0 && mark.text == text; });
  };
  if (texts(table_.single, 0) != 1 || texts(table_.single, 1) != 0 || texts(table_.pair, 0) != 1 || texts(table_.pair, 1) != 1)
    unknown("a post-processor that leaves out a text, or repeats it");
}

TokenTable TokenReader::finish(const std::string& unknown, const std::string& fingerprint) {
  const size_t count = ids_.size();
  std::vector<const std::string*> by_id(count);
  int64_t most = -1;
  for (const auto& [token, id] : ids_) {
    most = std::max<int64_t>(most, id);
    if (static_cast<size_t>(id) >= count) continue;
    const std::string*& place = by_id[static_cast<size_t>(id)];
    if (place)
      wrong(": two tokens have the id " + std::to_string(id), "they are " + WideJson(*place).dump() + " and " + WideJson(token).dump());
    place = &token;
  }
  if (const auto hole = std::find(by_id.begin(), by_id.end(), nullptr); hole != by_id.end())
    wrong(": the ids of tokens reach " + std::to_string(most),
          "there are " + std::to_string(count) + " tokens, and none has the id " + std::to_string(hole - by_id.begin()));
  for (const std::string* token : by_id) table_.tokens.push_back(*token);
  for (const std::vector<Mark>* marks : {&table_.single, &table_.pair})
    for (const Mark& mark : *marks)
      if (mark.token >= static_cast<int32_t>(count))
        wrong(": token " + std::to_string(mark.token) + " stands around texts", "there are " + std::to_string(count) + " tokens");
  const auto named = [&](int32_t& id, std::initializer_list<const char*> names) {
    for (const char* name : names)
      if (id < 0) id = id_of(name);
    if (id >= 0) table_.specials.push_back(id);
  };
  named(table_.pad, {"[PAD]", "<pad>"});
  named(table_.cls, {"[CLS]", "<s>"});
  named(table_.sep, {"[SEP]", "</s>"});
  named(table_.mask, {"[MASK]", "<mask>"});
  for (const char* name : {"</s>", "<|endoftext|>", "<|end_of_text|>", "<eos>", "[SEP]"})
    if (table_.end < 0) table_.end = id_of(name);
  if (!unknown.empty()) table_.unknown = id_of(unknown);
  named(table_.unknown, {"[UNK]", "<unk>"});
  for (const std::vector<Mark>* marks : {&table_.single, &table_.pair})
    for (const Mark& mark : *marks)
      if (mark.token >= 0) table_.specials.push_back(mark.token);
  std::sort(table_.specials.begin(), table_.specials.end());
  table_.specials.erase(std::unique(table_.specials.begin(), table_.specials.end()), table_.specials.end());
  table_.fingerprint = fingerprint;
  return std::move(table_);
}

AddedSplitter::AddedSplitter(const std::vector<AddedToken>& added) : added_(added) {
  std::stable_sort(added_.begin(), added_.end(), [](const AddedToken& a, const AddedToken& b) { return a.text.size() > b.text.size(); });
  for (const AddedToken& token : added_) begins_[static_cast<unsigned char>(token.text[0])] = true;
}

const AddedToken* AddedSplitter::at(std::string_view text, size_t place) const {
  if (!begins_[static_cast<unsigned char>(text[place])]) return nullptr;
  const auto found =
      std::find_if(added_.begin(), added_.end(), [&](const AddedToken& token) { return text.substr(place).starts_with(token.text); });
  return found == added_.end() ? nullptr : &*found;
}

void AddedSplitter::split(std::string_view text, const std::function<void(std::string_view, size_t)>& plain,
                          const std::function<void(int32_t)>& token) const {
  size_t begin = 0;
  for (size_t place = 0; place < text.size();) {
    const AddedToken* found = at(text, place);
    if (!found) {
      ++place;
      continue;
    }
    size_t end = place, next = place + found->text.size();
    if (found->strips_left) {
      end = begin;
      for (size_t at = begin, length = 0; at < place; at += length)
        if (!is_white_space(code_at(text, at, length))) end = at + length;
    }
    if (found->strips_right)
      for (size_t length = 0; next < text.size() && is_white_space(code_at(text, next, length)); next += length) {
      }
    plain(text.substr(begin, end - begin), begin);
    token(found->id);
    begin = place = next;
  }
  plain(text.substr(begin), begin);
}

}  // namespace comera
