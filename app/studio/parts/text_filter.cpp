#include "app/studio/parts/text_filter.h"

#include <imgui.h>

#include <algorithm>
#include <cctype>
#include <cstdio>

#include "app/studio/parts/texts.h"

namespace comera::studio {

void TextFilter::set(const std::string& text) {
  if (text == text_) return;
  text_ = text;
  regex_.reset();
  problem_.clear();
  if (text.size() < 2 || !text.starts_with("/") || !text.ends_with("/")) return;
  try {
    regex_ = std::regex(text.substr(1, text.size() - 2), std::regex::ECMAScript | std::regex::icase | std::regex::nosubs);
  } catch (const std::regex_error& error) {
    problem_ = std::string("Not a regular expression: ") + error.what();
  }
}

bool TextFilter::fits(const std::string& text) const {
  if (text_.empty() || !problem_.empty()) return true;
  if (regex_) return std::regex_search(text, *regex_);
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
  };
  return std::search(text.begin(), text.end(), text_.begin(), text_.end(), same) != text.end();
}

void filter_box(TextFilter& filter, const char* hint, const char* help, float width, bool take_keyboard) {
  char text[256];
  std::snprintf(text, sizeof text, "%s", filter.text().c_str());
  const bool wrong = !filter.problem().empty();
  ImGui::SetNextItemWidth(width);
  if (take_keyboard) ImGui::SetKeyboardFocusHere();
  if (wrong) ImGui::PushStyleColor(ImGuiCol_Text, theme().bad);
  if (ImGui::InputTextWithHint("##filter", hint, text, sizeof text)) filter.set(text);
  if (wrong) ImGui::PopStyleColor();
  tooltip(wrong ? filter.problem().c_str() : help);
}

}  // namespace comera::studio
