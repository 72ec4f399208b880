#include "tests/studio/overlaps.h"

#include <imgui.h>
#include <imgui_internal.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <utility>

namespace comera::studio {
namespace {

constexpr float kCell = 32;      // pixels; of the grid in which neighbours are looked for
constexpr float kShare = 0.35f;  // of the smaller glyph's width and height: in one text neighbours share less
constexpr float kTuck = 0.15f;   // of the height: so far a narrow letter may stand under its neighbour, as in "Al"
constexpr int kSeen = 40;        // opacity of a text that somebody reads, of 255

struct Glyph {
  ImRect box;    // its visible part
  ImVec2 uv;     // which glyph it is
  int line = 0;  // texts that were drawn in one go
  int window = 0;
  bool lost = false;  // told already
};

// A character by the place of its picture in the atlas.
class Characters {
 public:
  char of(ImVec2 uv) {
    const ImFontGlyph* glyph = find(uv);
    return !glyph || glyph->Codepoint > 126 ? '?' : static_cast<char>(glyph->Codepoint);
  }

  // By how many pixels the font itself moves `next` under `last`, as in "r." and "Aj", when `next` is drawn `height` high.
  float overhang(ImVec2 last, ImVec2 next, float height) {
    const ImFontGlyph* before = find(last);
    const ImFontGlyph* after = find(next);
    if (!before || !after || after->Y1 <= after->Y0) return 0;
    return (before->X1 - before->AdvanceX - after->X0) * height / (after->Y1 - after->Y0);
  }

 private:
  const ImFontGlyph* find(ImVec2 uv) {
    if (glyphs_.empty()) read();
    const auto found = glyphs_.find({uv.x, uv.y});
    return found == glyphs_.end() ? nullptr : &found->second;
  }
  void read() {
    ImFontAtlas* atlas = ImGui::GetIO().Fonts;
    for (int i = 0; i < atlas->Builder->BakedPool.Size; ++i)
      for (const ImFontGlyph& glyph : atlas->Builder->BakedPool[i].Glyphs) glyphs_[{glyph.U0, glyph.V0}] = glyph;
  }
  std::map<std::pair<float, float>, ImFontGlyph> glyphs_;
};

class Group {  // what belongs to one window, in the order in which it is drawn
 public:
  void add(const ImGuiWindow& window) {
    windows_.push_back(window.Name);
    for (const ImDrawCmd& command : window.DrawList->CmdBuffer)
      if (!command.UserCallback) add(*window.DrawList, command);
    for (const ImGuiWindow* child : window.DC.ChildWindows)
      if (child->Active && !child->Hidden) add(*child);
  }
  const std::vector<std::string>& found() const { return found_; }

 private:
  void add(const ImDrawList& list, const ImDrawCmd& command) {
    ++line_;
    const ImRect clip(command.ClipRect.x, command.ClipRect.y, command.ClipRect.z, command.ClipRect.w);
    const ImDrawIdx* index = list.IdxBuffer.Data + command.IdxOffset;
    const ImDrawVert* vertices = list.VtxBuffer.Data + command.VtxOffset;
    for (unsigned i = 0; i + 2 < command.ElemCount;) {
      const ImDrawIdx* at = index + i;
      const bool quad =
          i + 5 < command.ElemCount && at[1] == at[0] + 1 && at[2] == at[0] + 2 && at[3] == at[0] && at[4] == at[2] && at[5] == at[0] + 3;
      if (quad && is_glyph(vertices + at[0])) {
        add_glyph(vertices + at[0], clip);
        i += 6;
      } else {
        cover(vertices[at[0]], vertices[at[1]], vertices[at[2]], clip);
        i += 3;
      }
    }
  }

  // A rectangle of the atlas; fills have one point of it, and lines a row of points.
  static bool is_glyph(const ImDrawVert* v) {
    return v[0].uv.x != v[2].uv.x && v[0].uv.y != v[2].uv.y && v[0].uv.y == v[1].uv.y && v[1].uv.x == v[2].uv.x && v[3].uv.x == v[0].uv.x;
  }

  void add_glyph(const ImDrawVert* v, const ImRect& clip) {
    if (static_cast<int>(v[0].col >> IM_COL32_A_SHIFT) < kSeen) return;
    Glyph glyph;
    glyph.box = ImRect(v[0].pos, v[0].pos);
    for (int i = 1; i < 4; ++i) glyph.box.Add(v[i].pos);
    glyph.uv = v[0].uv;
    const ImVec2 whole = glyph.box.GetSize();
    glyph.box.ClipWith(clip);
    if (glyph.box.GetWidth() < whole.x / 2 || glyph.box.GetHeight() < whole.y / 2) return;  // cut off where a list ends
    glyph.line = line_;
    glyph.window = static_cast<int>(windows_.size()) - 1;
    for_cells(glyph.box, [&](std::vector<size_t>& cell) {
      for (const size_t other : cell) {
        ImRect both = glyph.box;
        const ImRect& box = glyphs_[other].box;
        both.ClipWith(box);
        const float height = std::max(glyph.box.GetHeight(), box.GetHeight());
        const bool next = other + 1 == glyphs_.size() && glyphs_[other].line == line_;
        // Glyphs are placed on whole pixels.
        const float tucked = next ? characters_.overhang(glyphs_[other].uv, glyph.uv, whole.y) + 1 : 0;
        const float least = std::max({kShare * std::min(glyph.box.GetWidth(), box.GetWidth()), kTuck * height, tucked});
        if (both.GetWidth() > least && both.GetHeight() > kShare * std::min(glyph.box.GetHeight(), box.GetHeight()) &&
            !std::exchange(glyphs_[other].lost, true))
          tell(glyphs_.size(), &glyph, other);
      }
      cell.push_back(glyphs_.size());
    });
    glyphs_.push_back(glyph);
  }

  // An opaque fill hides what was there before it.
  void cover(const ImDrawVert& a, const ImDrawVert& b, const ImDrawVert& c, const ImRect& clip) {
    ++line_;
    for (const ImDrawVert* v : {&a, &b, &c})
      if ((v->col >> IM_COL32_A_SHIFT) < 250) return;
    ImRect box(a.pos, a.pos);
    box.Add(b.pos);
    box.Add(c.pos);
    box.ClipWith(clip);
    if (box.GetWidth() <= 0 || box.GetHeight() <= 0) return;
    for_cells(box, [&](const std::vector<size_t>& cell) {
      for (const size_t other : cell) {
        const ImVec2 middle = glyphs_[other].box.GetCenter();
        if (!glyphs_[other].lost && box.Contains(middle) && ImTriangleContainsPoint(a.pos, b.pos, c.pos, middle)) {
          glyphs_[other].lost = true;
          tell(other, nullptr, other);
        }
      }
    });
  }

  template <class Each>
  void for_cells(const ImRect& box, const Each& each) {
    const auto cell = [](float x) { return static_cast<int>(std::floor(x / kCell)); };
    for (int y = cell(box.Min.y); y <= cell(box.Max.y); ++y)
      for (int x = cell(box.Min.x); x <= cell(box.Max.x); ++x) each(cells_[{x, y}]);
  }

  // The text that a glyph belongs to, as far as it is drawn.
  std::string text_at(size_t at) {
    if (at >= glyphs_.size()) return "";
    size_t first = at, last = at;
    while (first > 0 && at - first < 24 && glyphs_[first - 1].line == glyphs_[at].line) --first;
    while (last + 1 < glyphs_.size() && last - at < 24 && glyphs_[last + 1].line == glyphs_[at].line) ++last;
    std::string text;
    for (size_t i = first; i <= last; ++i) text += characters_.of(glyphs_[i].uv);
    return text;
  }

  void tell(size_t newer, const Glyph* glyph, size_t older) {
    const std::string under = text_at(older);
    const auto key = std::pair(glyphs_[older].line, line_);
    if (!told_.insert(key).second) return;
    char place[64];
    std::snprintf(place, sizeof place, " at %.0f, %.0f", glyphs_[older].box.Min.x, glyphs_[older].box.Min.y);
    std::string over = "a fill";
    if (glyph) over = std::string("'") + characters_.of(glyph->uv) + "' after '" + text_at(newer - 1) + "'";
    found_.push_back(over + " over '" + under + "' in " + windows_[static_cast<size_t>(glyphs_[older].window)] + place);
  }

  Characters characters_;
  std::vector<const char*> windows_;
  std::vector<Glyph> glyphs_;
  std::map<std::pair<int, int>, std::vector<size_t>> cells_;  // glyphs that reach into a cell
  std::set<std::pair<int, int>> told_;
  std::vector<std::string> found_;
  int line_ = 0;
};

}  // namespace

std::vector<std::string> overlapping_texts() {
  std::vector<std::string> found;
  for (const ImGuiWindow* window : ImGui::GetCurrentContext()->Windows) {
    if (!window->Active || window->Hidden || (window->Flags & ImGuiWindowFlags_ChildWindow)) continue;
    Group group;
    group.add(*window);
    found.insert(found.end(), group.found().begin(), group.found().end());
  }
  return found;
}

}  // namespace comera::studio
