#include "app/studio/runs/run_filter.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>

#include "app/format.h"
#include "app/studio/runs/run_fields.h"
#include "core/base/json.h"
#include "core/config/config.h"

namespace comera::studio {
namespace {

using Test = std::function<bool(const RunRow&, const SettingValues&)>;

struct Token {
  enum Kind { word, quoted, regex, compare, open, close, end };
  Kind kind = end;
  std::string text;
};

struct Misread {
  std::string text;
};

std::vector<Token> tokens_of(const std::string& text) {
  std::vector<Token> out;
  const auto until = [&](size_t& i, char last, Token::Kind kind, const char* what) {
    const size_t close = text.find(last, i + 1);
    if (close == std::string::npos) throw Misread{std::string(what) + " is not closed"};
    out.push_back({kind, text.substr(i + 1, close - i - 1)});
    i = close + 1;
  };
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (std::isspace(static_cast<unsigned char>(c))) {
      ++i;
    } else if (c == '(' || c == ')') {
      out.push_back({c == '(' ? Token::open : Token::close, {}});
      ++i;
    } else if (c == '"') {
      until(i, '"', Token::quoted, "A \"");
    } else if (c == '/') {
      until(i, '/', Token::regex, "A /");
    } else if (std::strchr("<>=!:", c)) {
      const size_t length = c != ':' && i + 1 < text.size() && text[i + 1] == '=' ? 2 : 1;
      if (c == '!' && length == 1) throw Misread{"! is only valid in !="};
      out.push_back({Token::compare, text.substr(i, length)});
      i += length;
    } else {
      const size_t end = std::min(text.find_first_of(" \t()\"<>=!:", i), text.size());
      out.push_back({Token::word, text.substr(i, end - i)});
      i = end;
    }
  }
  out.push_back({});
  return out;
}

// Parses "1e-3", "90%".
std::optional<double> number_of(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || end == text.c_str()) return {};
  if (std::string(end) == "%") return value / 100;
  if (*end != '\0') return {};
  return value;
}

bool holds(double value, const std::string& compare, double wanted) {
  if (!std::isfinite(value)) return false;
  const bool same = std::abs(value - wanted) <= 1e-9 * std::max(std::abs(value), std::abs(wanted));
  if (compare == "<") return value < wanted && !same;
  if (compare == "<=") return value < wanted || same;
  if (compare == ">") return value > wanted && !same;
  if (compare == ">=") return value > wanted || same;
  return same == (compare != "!=");
}

bool holds(const std::string& value, const std::string& compare, const std::string& wanted) {
  if (value.empty()) return false;
  if (compare == ":") return lower_case(value).find(wanted) != std::string::npos;
  const std::string text = lower_case(value);
  if (compare == "=") return text == wanted;
  if (compare == "!=") return text != wanted;
  return compare == "<" ? text < wanted : compare == "<=" ? text <= wanted : compare == ">" ? text > wanted : text >= wanted;
}

// The texts of a run that words are searched in, one per line.
std::string words_of(const RunRow& row) {
  std::string text = row.name + "\n" + row.id + "\n" + row.status + "\n" + row.device + "\n" + row.notes;
  for (const std::string& tag : all_tags(row)) text += "\n" + tag;
  return text;
}

const std::vector<std::string>& setting_paths() {
  static const std::vector<std::string> kPaths = [] {
    std::vector<std::string> paths;
    for (const FieldEntry& entry : all_settings())
      if (entry.path.find('.') != std::string::npos) paths.push_back(entry.path);
    return paths;
  }();
  return kPaths;
}

// The setting that a word names. Throws if there is none or more than one.
std::string setting_of(const std::string& word) {
  for (const FieldEntry& entry : all_settings())
    if (*entry.info.symbol && lower_case(word) == lower_case(entry.info.symbol)) return entry.path;
  std::vector<std::string> fitting;
  for (const std::string& path : setting_paths()) {
    if (path == word) return path;
    if (path.size() > word.size() && path.ends_with(word) && path[path.size() - word.size() - 1] == '.') fitting.push_back(path);
  }
  if (fitting.size() == 1) return fitting[0];
  if (fitting.size() > 1) throw Misread{"Several settings end with " + word + ": " + fitting[0] + ", " + fitting[1] + " ..."};
  for (const RunField& field : run_fields())
    if (word.size() > 1 && std::string_view(field.id).starts_with(lower_case(word)))
      throw Misread{"There is no " + word + ": did you mean " + field.id + "?"};
  std::vector<std::string> known = setting_paths();
  for (const std::string& path : setting_paths()) known.push_back(path.substr(path.rfind('.') + 1));
  for (const RunField& field : run_fields()) known.emplace_back(field.id);
  const std::string near = nearest_name(word, known);
  throw Misread{"There is no " + word + (near.empty() ? "" : ": did you mean " + near + "?")};
}

bool is_number(const std::string& path) {
  for (const FieldEntry& entry : all_settings())
    if (entry.path == path) return number_of(entry.value).has_value();
  return false;
}

class Parser {
 public:
  Parser(const std::string& text, std::vector<std::string>& settings, bool& asks_for_short)
      : tokens_(tokens_of(text)), settings_(settings), asks_for_short_(asks_for_short) {}

  Test parse() {
    Test all = any();
    if (now().kind == Token::close) throw Misread{"One ) too many"};
    return all;
  }

 private:
  const Token& now() const { return tokens_[at_]; }
  Token take() { return tokens_[at_++]; }
  bool is_word(const char* word) const {
    return now().kind == Token::word && lower_case(now().text) == word && tokens_[at_ + 1].kind != Token::compare;
  }

  Test any() {
    Test left = all();
    while (is_word("or")) {
      take();
      left = [left, right = all()](const RunRow& row, const SettingValues& settings) {
        return left(row, settings) || right(row, settings);
      };
    }
    return left;
  }
  Test all() {
    Test left = one();
    while (now().kind != Token::end && now().kind != Token::close && !is_word("or")) {
      if (is_word("and")) take();
      left = [left, right = one()](const RunRow& row, const SettingValues& settings) {
        return left(row, settings) && right(row, settings);
      };
    }
    return left;
  }
  Test one() {
    if (is_word("not")) {
      take();
      return [test = one()](const RunRow& row, const SettingValues& settings) { return !test(row, settings); };
    }
    const Token token = take();
    switch (token.kind) {
      case Token::open: {
        Test inner = any();
        if (take().kind != Token::close) throw Misread{"A ( is not closed"};
        return inner;
      }
      case Token::regex:
        return regex(token.text);
      case Token::word:
        if (now().kind == Token::compare) {
          const std::string compare = take().text;
          const Token value = take();
          if (value.kind != Token::word && value.kind != Token::quoted)
            throw Misread{"After " + token.text + compare + " there is no value"};
          if (token.text.size() < 2 || token.text[0] != '-') return comparison(token.text, compare, value.text);
          return [test = comparison(token.text.substr(1), compare, value.text)](const RunRow& row, const SettingValues& settings) {
            return !test(row, settings);
          };
        }
        [[fallthrough]];
      case Token::quoted:
        return [word = lower_case(token.text)](const RunRow& row, const SettingValues&) {
          return lower_case(words_of(row)).find(word) != std::string::npos;
        };
      case Token::compare:
        throw Misread{"Before " + token.text + " there is no field"};
      case Token::close:
      case Token::end:
        break;
    }
    throw Misread{"The filter is incomplete"};
  }

  static Test regex(const std::string& text) {
    try {
      const auto pattern = std::make_shared<const std::regex>(text, std::regex::ECMAScript | std::regex::icase);
      return [pattern](const RunRow& row, const SettingValues&) {
        const auto found = [&](const std::string& in) { return std::regex_search(in, *pattern); };
        const std::vector<std::string> tags = all_tags(row);
        return found(row.name) || found(row.id) || std::any_of(tags.begin(), tags.end(), found);
      };
    } catch (const std::regex_error&) {
      throw Misread{"/" + text + "/ is not a regular expression"};
    }
  }

  Test comparison(const std::string& key, const std::string& compare, const std::string& value) {
    const std::string wanted = lower_case(value);
    const auto number = number_of(value);
    if (key == "tag") {
      asks_for_short_ = asks_for_short_ || wanted == kShort;
      return [=](const RunRow& row, const SettingValues&) {
        const std::vector<std::string> tags = all_tags(row);
        const bool any = std::any_of(tags.begin(), tags.end(), [&](const std::string& tag) { return lower_case(tag) == wanted; });
        return any == (compare != "!=");
      };
    }
    if (const RunField* field = find_run_field(lower_case(key))) {
      if (!field->number) return [=](const RunRow& row, const SettingValues&) { return holds(field->text(row), compare, wanted); };
      if (!number) throw Misread{key + " is a number, " + value + " is not"};
      return [=](const RunRow& row, const SettingValues&) { return holds(field->number(row), compare, *number); };
    }
    const std::string path = setting_of(key);
    if (compare != ":" && !number && is_number(path)) throw Misread{key + " is a number, " + value + " is not"};
    settings_.push_back(path);
    return [=](const RunRow& row, const SettingValues& settings) {
      const auto of = settings.find(path);
      if (of == settings.end()) return false;
      const auto found = of->second.find(row.id);
      if (found == of->second.end()) return false;
      const auto is = number_of(found->second);
      return number && is ? holds(*is, compare, *number) : holds(found->second, compare, wanted);
    };
  }

  std::vector<Token> tokens_;
  size_t at_ = 0;
  std::vector<std::string>& settings_;
  bool& asks_for_short_;
};

}  // namespace

RunFilter::RunFilter(const std::string& text) {
  if (text.find_first_not_of(" \t") == std::string::npos) return;
  try {
    test_ = Parser(text, settings_, asks_for_short_).parse();
  } catch (const Misread& problem) {
    problem_ = problem.text;
    settings_.clear();
  }
}

}  // namespace comera::studio
