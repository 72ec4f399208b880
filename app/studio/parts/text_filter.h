// Syntax of a search box: words in any case, or a regular expression between slashes: /lr_|late/.
#pragma once
#include <optional>
#include <regex>
#include <string>

namespace comera::studio {

class TextFilter {
 public:
  // Compiles the filter. An invalid regular expression matches everything and sets problem().
  void set(const std::string& text);
  const std::string& text() const { return text_; }
  const std::string& problem() const { return problem_; }  // "" = none
  bool empty() const { return text_.empty(); }
  bool fits(const std::string& text) const;

 private:
  std::string text_, problem_;
  std::optional<std::regex> regex_;
};

// The search box, `width` wide: red while the expression is invalid, with the reason in the tooltip. `take_keyboard`: focus it now.
void filter_box(TextFilter& filter, const char* hint, const char* help, float width, bool take_keyboard);

}  // namespace comera::studio
