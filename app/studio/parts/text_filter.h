// Syntax of a search box: words in any case, or a regular expression between slashes: /lr_|late/.
#pragma once
#include <optional>
#include <regex>
#include <string>

namespace comera::studio {

class TextFilter {
 public:
  // Compiled when it changes; one that is no regular expression lets everything through and says why.
  void set(const std::string& text);
  const std::string& text() const { return text_; }
  const std::string& problem() const { return problem_; }  // "" = none
  bool empty() const { return text_.empty(); }
  bool fits(const std::string& text) const;

 private:
  std::string text_, problem_;
  std::optional<std::regex> regex_;
};

// Its box, `width` wide; red while what stands there is no expression, and then `help` says why. `take_keyboard`: now.
void filter_box(TextFilter& filter, const char* hint, const char* help, float width, bool take_keyboard);

}  // namespace comera::studio
