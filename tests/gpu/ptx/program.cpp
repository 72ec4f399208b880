#include "tests/gpu/ptx/program.h"

#include <algorithm>
#include <stdexcept>

namespace comera::ptx {
namespace {

bool is_word(char c) { return isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%' || c == '.'; }

}  // namespace

Program::Program(std::string text) {
  split(text);
  read_outline();
}

void Program::split(const std::string& text) {
  int line = 1;
  size_t i = 0, begin_of_line = 0;
  const auto end_line = [&] {
    lines_.push_back(text.substr(begin_of_line, i - begin_of_line));
    begin_of_line = i + 1;
    ++line;
  };
  while (i < text.size() && text[i] != '\0') {
    const char c = text[i];
    if (c == '\n') {
      end_line();
      ++i;
    } else if (isspace(static_cast<unsigned char>(c))) {
      ++i;
    } else if (text.compare(i, 2, "//") == 0) {
      while (i < text.size() && text[i] != '\n') ++i;
    } else if (c == '"') {
      const size_t end = text.find('"', i + 1);
      words_.push_back({text.substr(i, end + 1 - i), line});
      i = end + 1;
    } else if (is_word(c)) {
      size_t end = i;
      while (end < text.size() && is_word(text[end])) ++end;
      words_.push_back({text.substr(i, end - i), line});
      i = end;
    } else {
      words_.push_back({std::string(1, c), line});
      ++i;
    }
  }
  end_line();
  words_.push_back({"", line});
}

std::string Program::line(int number) const { return lines_.at(static_cast<size_t>(number - 1)); }

// From behind ".shared" and the like to the name and its brackets: ".align 4 .b8 NAME[32]", ".param .u64 .ptr .align 1 NAME".
Program::Variable Program::read_variable(size_t& i, std::string& name) const {
  Variable variable;
  int64_t of_one = 0;
  for (; words_[i].text[0] == '.'; ++i) {
    const std::string& word = words_[i].text;
    if (word == ".align") {
      variable.align = std::stoll(words_[++i].text);
    } else if (word != ".ptr" && word != ".global" && word != ".noalias" && isdigit(static_cast<unsigned char>(word.back()))) {
      of_one = bytes_of_type(word.substr(1));
    }
  }
  variable.align = std::max(variable.align, of_one);
  name = words_[i++].text;
  variable.bytes = of_one;
  if (words_[i].text == "[") {
    variable.bytes = words_[i + 1].text == "]" ? 0 : of_one * std::stoll(words_[i + 1].text);
    while (words_[i].text != "]") ++i;
    ++i;
  }
  return variable;
}

void Program::read_outline() {
  for (size_t i = 0; !words_[i].text.empty();) {
    const std::string& word = words_[i].text;
    if (word == ".version") {
      i += 2;
    } else if (word == ".address_size") {
      i += 2;
    } else if (word == ".target") {
      capability_ = std::stoi(words_[i + 1].text.substr(3));
      i += 2;
      while (words_[i].text == ",") i += 2;
    } else if (word == ".visible" || word == ".extern" || word == ".weak") {
      ++i;
    } else if (word == ".shared" || word == ".global" || word == ".const") {
      const std::string space = word;
      std::string name;
      Variable variable = read_variable(++i, name);
      variable.space = space;
      if (words_[i].text == "=") throw std::runtime_error("PTX: " + name + " has values, which are not known here");
      if (space != ".shared") {
        globals_[name] = std::make_unique<char[]>(static_cast<size_t>(std::max<int64_t>(variable.bytes, 1)));
      }
      variables_[name] = variable;
      ++i;  // ;
    } else if (word == ".entry" || word == ".func") {
      Function function;
      function.entry = word == ".entry";
      ++i;
      const auto read_params = [&](auto&& add) {
        for (++i; words_[i].text != ")";) {
          if (words_[i].text == ",") {
            ++i;
            continue;
          }
          ++i;  // .param
          std::string name;
          const Variable variable = read_variable(i, name);
          add(name, variable);
        }
        ++i;
      };
      if (!function.entry && words_[i].text == "(") read_params([&](const std::string& name, const Variable&) { function.result = name; });
      const std::string name = words_[i++].text;
      if (words_[i].text == "(")
        read_params([&](const std::string& param, const Variable& variable) { function.params.emplace_back(param, variable); });
      while (words_[i].text != "{" && words_[i].text != ";") ++i;  // .maxntid and the like
      if (words_[i++].text == ";") continue;                       // declared only
      function.body = i;
      for (int depth = 1; depth > 0; ++i) depth += words_[i].text == "{" ? 1 : words_[i].text == "}" ? -1 : 0;
      functions_[name] = function;
    } else {
      throw std::runtime_error("PTX: line " + std::to_string(words_[i].line) + " begins with " + word + ", which is not known here");
    }
  }
}

}  // namespace comera::ptx
