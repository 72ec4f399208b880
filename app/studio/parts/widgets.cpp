#include "app/studio/parts/widgets.h"

#include <imgui_internal.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "app/format.h"
#include "app/studio/key_bindings.h"
#include "app/studio/parts/named_items.h"

namespace comera::studio {

void draw_icon(ImDrawList* list, Icon icon, ImVec2 c, float size, ImU32 color) {
  const float r = size * 0.5f, line = std::max(1.0f, size * 0.11f);
  const auto at = [&](float x, float y) { return ImVec2(c.x + x * r, c.y + y * r); };
  const auto poly = [&](std::initializer_list<ImVec2> points, float width = 0) {
    list->AddPolyline(points.begin(), static_cast<int>(points.size()), color, width > 0 ? width : line);
  };
  switch (icon) {
    case Icon::none:
      break;
    case Icon::play:
      list->AddTriangleFilled(at(-0.6f, -0.85f), at(-0.6f, 0.85f), at(0.9f, 0), color);
      break;
    case Icon::pause:
      list->AddRectFilled(at(-0.7f, -0.8f), at(-0.18f, 0.8f), color, size * 0.06f);
      list->AddRectFilled(at(0.18f, -0.8f), at(0.7f, 0.8f), color, size * 0.06f);
      break;
    case Icon::step:
      list->AddTriangleFilled(at(-0.85f, -0.8f), at(-0.85f, 0.8f), at(0.45f, 0), color);
      list->AddRectFilled(at(0.5f, -0.8f), at(0.85f, 0.8f), color);
      break;
    case Icon::step_back:
      list->AddTriangleFilled(at(0.85f, 0.8f), at(0.85f, -0.8f), at(-0.45f, 0), color);
      list->AddRectFilled(at(-0.85f, -0.8f), at(-0.5f, 0.8f), color);
      break;
    case Icon::forward:
      list->AddTriangleFilled(at(-0.95f, -0.75f), at(-0.95f, 0.75f), at(0, 0), color);
      list->AddTriangleFilled(at(0, -0.75f), at(0, 0.75f), at(0.95f, 0), color);
      break;
    case Icon::to_mark:  // arrow to a flag
      list->AddTriangleFilled(at(-0.95f, -0.7f), at(-0.95f, 0.7f), at(0, 0), color);
      poly({at(0.3f, 0.9f), at(0.3f, -0.9f)});
      list->AddRectFilled(at(0.3f, -0.9f), at(0.95f, -0.15f), color);
      break;
    case Icon::rewind:
      list->AddTriangleFilled(at(0.95f, 0.75f), at(0.95f, -0.75f), at(0, 0), color);
      list->AddTriangleFilled(at(0, 0.75f), at(0, -0.75f), at(-0.95f, 0), color);
      break;
    case Icon::loop:
      list->PathArcTo(c, r * 0.75f, -0.6f, 4.6f, 24);
      list->PathStroke(color, line * 1.2f);
      list->AddTriangleFilled(at(0.15f, -0.35f), at(1.0f, -0.35f), at(0.75f, -1.0f), color);
      break;
    case Icon::fork:
      poly({at(-0.5f, -0.5f), at(-0.5f, 0.6f)});
      poly({at(-0.5f, 0.35f), at(0.55f, -0.1f), at(0.55f, -0.5f)});
      for (const ImVec2 dot : {at(-0.5f, -0.7f), at(-0.5f, 0.7f), at(0.55f, -0.7f)}) list->AddCircleFilled(dot, line * 1.7f, color);
      break;
    case Icon::stop:
      list->AddRectFilled(at(-0.7f, -0.7f), at(0.7f, 0.7f), color, size * 0.1f);
      break;
    case Icon::save:  // arrow into a tray
      poly({at(0, -0.9f), at(0, 0.3f)});
      poly({at(-0.45f, -0.12f), at(0, 0.35f), at(0.45f, -0.12f)});
      poly({at(-0.85f, 0.3f), at(-0.85f, 0.85f), at(0.85f, 0.85f), at(0.85f, 0.3f)});
      break;
    case Icon::check:
      poly({at(-0.75f, 0.05f), at(-0.2f, 0.6f), at(0.8f, -0.6f)}, line * 1.2f);
      break;
    case Icon::cross:
      poly({at(-0.6f, -0.6f), at(0.6f, 0.6f)}, line * 1.2f);
      poly({at(0.6f, -0.6f), at(-0.6f, 0.6f)}, line * 1.2f);
      break;
    case Icon::warning:
      list->AddTriangle(at(0, -0.85f), at(-0.95f, 0.75f), at(0.95f, 0.75f), color, line);
      poly({at(0, -0.3f), at(0, 0.25f)});
      list->AddCircleFilled(at(0, 0.5f), line * 0.7f, color);
      break;
    case Icon::dot:
      list->AddCircleFilled(c, r * 0.62f, color);
      break;
    case Icon::ring:
      list->AddCircle(c, r * 0.7f, color, 0, line);
      break;
    case Icon::clock:
      list->AddCircle(c, r * 0.85f, color, 0, line);
      poly({at(0, -0.5f), at(0, 0), at(0.38f, 0.2f)});
      break;
    case Icon::home:
      poly({at(-0.95f, -0.02f), at(0, -0.85f), at(0.95f, -0.02f)});
      poly({at(-0.65f, -0.2f), at(-0.65f, 0.8f), at(0.65f, 0.8f), at(0.65f, -0.2f)});
      break;
    case Icon::chart:
      poly({at(-0.85f, -0.85f), at(-0.85f, 0.8f), at(0.9f, 0.8f)});
      poly({at(-0.5f, -0.45f), at(-0.1f, 0.25f), at(0.3f, 0.0f), at(0.85f, 0.4f)});
      break;
    case Icon::search:
      list->AddCircle(at(-0.15f, -0.15f), r * 0.6f, color, 0, line);
      poly({at(0.3f, 0.3f), at(0.85f, 0.85f)});
      break;
    case Icon::sun:
      list->AddCircleFilled(c, r * 0.4f, color);
      for (int i = 0; i < 8; ++i) {
        const float a = static_cast<float>(i) * 0.7853982f;
        poly({at(std::cos(a) * 0.65f, std::sin(a) * 0.65f), at(std::cos(a) * 0.95f, std::sin(a) * 0.95f)});
      }
      break;
    case Icon::moon:
      list->PathArcTo(c, r * 0.85f, -1.2f, 2.75f, 24);
      list->PathArcTo(at(-0.28f, -0.28f), r * 0.62f, 2.2f, -0.65f, 24);
      list->PathFillConcave(color);
      break;
    case Icon::plus:
      poly({at(-0.75f, 0), at(0.75f, 0)}, line * 1.2f);
      poly({at(0, -0.75f), at(0, 0.75f)}, line * 1.2f);
      break;
    case Icon::more:
      for (const float x : {-0.7f, 0.0f, 0.7f}) list->AddCircleFilled(at(x, 0), line * 1.3f, color);
      break;
    case Icon::star:
    case Icon::star_empty: {
      ImVec2 points[10];
      for (int i = 0; i < 10; ++i) {
        const float angle = static_cast<float>(i) * IM_PI / 5 - IM_PI / 2, out = i % 2 == 0 ? 1.0f : 0.45f;
        points[i] = at(std::cos(angle) * out, std::sin(angle) * out);
      }
      if (icon == Icon::star)
        list->AddConcavePolyFilled(points, 10, color);
      else
        list->AddPolyline(points, 10, color, line, ImDrawFlags_Closed);
      break;
    }
  }
}

bool begin_card(const char* id, ImVec2 size, ImGuiChildFlags flags, ImGuiWindowFlags window_flags) {
  ImGui::PushStyleColor(ImGuiCol_ChildBg, theme().card);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(em(0.8f), em(0.65f)));
  // Tab and the arrow keys move across cards as if these were one window.
  constexpr ImGuiChildFlags kCard = ImGuiChildFlags_Borders | ImGuiChildFlags_AlwaysUseWindowPadding | ImGuiChildFlags_NavFlattened;
  const bool open = ImGui::BeginChild(id, size, kCard | flags, window_flags);
  ImGui::PopStyleVar();
  ImGui::PopStyleColor();
  return open;
}

void end_card() { ImGui::EndChild(); }

void card_title(const char* title, const char* help, float width) {
  push_title();
  const float room = std::max(em(1), width - (help ? em(2) : 0));
  if (width > 0 && ImGui::CalcTextSize(title).x > room)
    text_fit(title, room, theme().text);
  else
    ImGui::TextUnformatted(title);
  ImGui::PopFont();
  if (help) {
    ImGui::SameLine();
    help_marker(help);
  }
}

namespace {

constexpr float kIconShare = 0.72f;  // of the font size

float visible_width(const char* label) {
  const char* end = ImGui::FindRenderedTextEnd(label);
  return end > label ? ImGui::CalcTextSize(label, end).x : 0;
}

}  // namespace

float button_width(const char* label, const ButtonLook& look) {
  if (look.size.x > 0) return look.size.x;
  const float text = visible_width(label), font = ImGui::GetFontSize();
  float width = text + 2 * ImGui::GetStyle().FramePadding.x;
  if (look.icon != Icon::none) width += font * kIconShare + (text > 0 ? font * 0.45f : 0);
  return std::max(width, ImGui::GetFrameHeight());
}

bool button(const char* label, const ButtonLook& look) {
  const Theme& t = theme();
  const ImVec2 size(button_width(label, look), look.size.y > 0 ? look.size.y : ImGui::GetFrameHeight());
  const bool primary = look.primary && look.enabled;  // disabled buttons do not have the accent colour
  ImGui::BeginDisabled(!look.enabled);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  if (primary) {
    ImGui::PushStyleColor(ImGuiCol_Button, t.accent);
    ImGui::PushStyleColor(ImGuiCol_ButtonHovered, t.accent_hover);
    ImGui::PushStyleColor(ImGuiCol_ButtonActive, t.accent_hover);
  }
  ImGui::PushID(label);
  const bool pressed = ImGui::Button("##button", size);
  ImGui::PopID();
  if (collects_items()) {
    const char* id = std::strstr(label, "###");
    name_item(id ? id + 3 : label);
  }
  if (primary) ImGui::PopStyleColor(3);
  const float font = ImGui::GetFontSize(), text = visible_width(label);
  const float icon = look.icon == Icon::none ? 0 : font * kIconShare;
  const float gap = icon > 0 && text > 0 ? font * 0.45f : 0;
  const ImU32 color = with_alpha(primary ? t.on_accent : t.text, look.enabled ? 1 : ImGui::GetStyle().DisabledAlpha);
  float x = at.x + (size.x - icon - gap - text) / 2;
  ImDrawList* list = ImGui::GetWindowDrawList();
  if (icon > 0) draw_icon(list, look.icon, {x + icon / 2, at.y + size.y / 2}, icon, color);
  if (text > 0) list->AddText({x + icon + gap, std::round(at.y + (size.y - font) / 2)}, color, label, ImGui::FindRenderedTextEnd(label));
  ImGui::EndDisabled();
  const char* tip = look.enabled ? look.tooltip : look.why_not ? look.why_not : look.tooltip;
  if (tip && ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled | ImGuiHoveredFlags_DelayShort)) {
    const std::string keys = tip == look.tooltip ? key_text(look.keys) : "";
    ImGui::SetTooltip("%s%s", tip, keys.empty() ? "" : (" (" + keys + ")").c_str());
  }
  return pressed && look.enabled;
}

float chip_width(const char* text, Icon icon) {
  push_small();
  const float width = ImGui::CalcTextSize(text).x + em(1.1f) + (icon == Icon::none ? 0 : em(1.0f));
  ImGui::PopFont();
  return width;
}

void chip(const char* text, ImU32 color, Icon icon) {
  const float width = chip_width(text, icon), line = ImGui::GetTextLineHeight();
  push_small();
  const float font = ImGui::GetFontSize(), height = std::round(font * 1.5f);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  // Centred on the current line of text, whatever its frame padding is.
  const float y = at.y + ImGui::GetCurrentWindow()->DC.CurrLineTextBaseOffset + (line - height) / 2;
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled({at.x, y}, {at.x + width, y + height}, with_alpha(color, 0.16f), height / 2);
  float x = at.x + em(0.55f);
  if (icon != Icon::none) {
    draw_icon(list, icon, {x + font * 0.36f, y + height / 2}, font * 0.72f, color);
    x += em(1.0f);
  }
  list->AddText({x, std::round(y + (height - font) / 2)}, color, text);
  ImGui::PopFont();
  ImGui::Dummy({width, line});
}

PhaseLook look_of(Phase phase) {
  const Theme& t = theme();
  switch (phase) {
    case Phase::idle:
      return {"Idle", t.dim, Icon::ring};
    case Phase::preparing:
      return {"Preparing", t.accent, Icon::clock};
    case Phase::running:
      return {"Running", t.accent, Icon::play};
    case Phase::pausing:
      return {"Pausing", t.warning, Icon::clock};
    case Phase::paused:
      return {"Paused", t.warning, Icon::pause};
    case Phase::stopping:
      return {"Stopping", t.warning, Icon::clock};
    case Phase::finished:
      return {"Finished", t.good, Icon::check};
    case Phase::stopped:
      return {"Stopped", t.dim, Icon::stop};
    case Phase::interrupted:
      return {"Interrupted", t.warning, Icon::warning};
    case Phase::failed:
      return {"Failed", t.bad, Icon::cross};
    case Phase::diverged:
      return {"Diverged", t.bad, Icon::warning};
  }
  return {"", t.dim, Icon::none};
}

ImU32 color_of(Mark::Kind kind) {
  const Theme& t = theme();
  switch (kind) {
    case Mark::late_stage:
      return t.series[3];
    case Mark::early_stage:
      return t.series[0];
    case Mark::edit:
      return t.accent;
    case Mark::checkpoint:
      return t.text;
    case Mark::cut:
    case Mark::growth:
      return t.good;
    case Mark::alert:
      return t.warning;
    case Mark::segment:
      return t.dim;
  }
  return t.dim;
}

void draw_mark_sign(ImDrawList* list, Mark::Kind kind, ImVec2 at, float r) {
  const ImU32 color = color_of(kind);
  const float x = at.x, y = at.y;
  switch (kind) {
    case Mark::late_stage:
      list->AddCircleFilled(at, r, color);
      break;
    case Mark::early_stage:
      list->AddCircle(at, r * 0.85f, color, 0, std::max(1.0f, r * 0.4f));
      break;
    case Mark::edit:
      list->AddTriangleFilled({x - r, y + r}, {x + r, y + r}, {x, y - r}, color);
      break;
    case Mark::checkpoint:
      list->AddRectFilled({x - r * 0.8f, y - r * 0.8f}, {x + r * 0.8f, y + r * 0.8f}, color, r * 0.3f);
      break;
    case Mark::cut:
      list->AddQuadFilled({x - r, y}, {x, y - r}, {x + r, y}, {x, y + r}, color);
      break;
    case Mark::growth:
      list->AddTriangleFilled({x - r, y + 1.6f * r}, {x + r, y + 1.6f * r}, {x, y - 1.6f * r}, color);
      break;
    case Mark::alert:
      draw_icon(list, Icon::warning, at, 2.9f * r, color);
      break;
    case Mark::segment:
      list->AddLine({x, y - 1.6f * r}, {x, y + 1.6f * r}, color, std::max(1.0f, r * 0.3f));
      break;
  }
}

PurposeLook look_of(Purpose purpose) {
  const auto& series = theme().series;
  switch (purpose) {
    case Purpose::tt_core:
      return {"TT cores", "Cores of the tensor trains; pruning makes them smaller.", series[1]};
    case Purpose::dense_weight:
      return {"Dense weights", "All other parameters: dense matrices, biases, norms, embeddings.", series[5]};
    case Purpose::rank_vector:
      return {"Rank vectors", "One trainable factor per entry of a bond.", series[4]};
    case Purpose::gradient:
      return {"Gradients", "One value per parameter.", series[3]};
    case Purpose::optimizer:
      return {"Optimizer", "Moments of the optimizer.", series[6]};
    case Purpose::activation:
      return {"Activations", "Activations that forward stores for backward.", series[0]};
    case Purpose::workspace:
      return {"Workspace", "Temporaries of a step.", series[7]};
    case Purpose::data:
      return {"Batch data", "Batch buffers and scalars of the step.", series[2]};
  }
  return {"", "", theme().dim};
}

void color_mark(ImU32 color) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float line = ImGui::GetTextLineHeight();
  ImGui::GetWindowDrawList()->AddRectFilled({at.x, at.y + line * 0.2f}, {at.x + line * 0.6f, at.y + line * 0.8f}, color, line * 0.12f);
  ImGui::SetCursorPosX(ImGui::GetCursorPosX() + line);
}

void purpose_bar(const MemoryByPurpose& memory, double full, float height) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(at, {at.x + width, at.y + height}, theme().raised, em(0.25f));
  std::vector<Copied> copied;
  float x = at.x;
  for (int i = 0; i < kPurposes; ++i) {
    const double bytes = static_cast<double>(memory.bytes[static_cast<size_t>(i)]);
    const float part = full > 0 ? static_cast<float>(bytes / full) * width : 0;
    if (part < 1) continue;
    const PurposeLook look = look_of(static_cast<Purpose>(i));
    list->AddRectFilled({x, at.y}, {x + part - (part > 3 ? 1.0f : 0.0f), at.y + height}, look.color, em(0.15f));
    if (ImGui::IsMouseHoveringRect({x, at.y}, {x + part, at.y + height}) && ImGui::IsWindowHovered()) {
      ImGui::SetTooltip("%s  %s = %s", look.title, mebibytes(bytes).c_str(), megabytes(bytes).c_str());
      copied = {{"Copy value", std::string(look.title) + "  " + mebibytes(bytes)}};
    }
    x += part;
  }
  ImGui::PushID("purpose-bar");
  copy_menu(copied, !copied.empty());
  ImGui::PopID();
  ImGui::Dummy({width, height});
}

void stat(const char* caption, const std::string& value, const char* under, ImU32 color) {
  ImGui::BeginGroup();
  push_small();
  text_dim(caption);
  ImGui::PopFont();
  push_numbers(1.2f);
  ImGui::PushStyleColor(ImGuiCol_Text, color ? color : theme().text);
  ImGui::TextUnformatted(value.c_str());
  ImGui::PopStyleColor();
  ImGui::PopFont();
  if (under) {
    push_small();
    text_dim(under);
    ImGui::PopFont();
  }
  ImGui::EndGroup();
}

bool empty_state(Icon icon, const char* title, const char* text, const char* action, Icon action_icon, const char* other,
                 bool* other_pressed) {
  const ImVec2 space = ImGui::GetContentRegionAvail();
  const float wrap = std::max(em(6), std::min(space.x - em(1), em(30)));
  push_small();
  const ImVec2 size = ImGui::CalcTextSize(text, nullptr, false, wrap);
  ImGui::PopFont();
  // The title wraps in narrow places.
  const float title_wrap = std::max(em(6), space.x - em(0.5f));
  push_title();
  const ImVec2 title_size = ImGui::CalcTextSize(title, nullptr, false, title_wrap);
  const float more_lines = title_size.y - ImGui::GetFontSize();
  ImGui::PopFont();
  const bool with_icon = space.y > em(7);
  const float below = action ? ImGui::GetFrameHeight() + em(1) : 0;
  const float height = size.y + em(1.6f) + more_lines + (with_icon ? em(3) : 0) + below;
  const ImVec2 at = ImGui::GetCursorPos();
  float y = at.y + std::max(0.0f, (space.y - height) / 2);
  if (with_icon) {
    const ImVec2 screen = ImGui::GetCursorScreenPos();
    draw_icon(ImGui::GetWindowDrawList(), icon, {screen.x + space.x / 2, screen.y + y - at.y + em(1.1f)}, em(1.8f),
              with_alpha(theme().dim, 0.7f));
    y += em(3);
  }
  push_title();
  ImGui::SetCursorPos({at.x + std::max(0.0f, (space.x - title_size.x) / 2), y});
  ImGui::PushTextWrapPos(ImGui::GetCursorPosX() + title_wrap);
  ImGui::TextUnformatted(title);
  ImGui::PopTextWrapPos();
  ImGui::PopFont();
  y += more_lines;
  push_small();
  ImGui::SetCursorPos({at.x + std::max(0.0f, (space.x - size.x) / 2), y + em(1.7f)});
  ImGui::PushTextWrapPos(ImGui::GetCursorPosX() + wrap);
  text_dim(text);
  ImGui::PopTextWrapPos();
  ImGui::PopFont();
  if (!action) return false;
  const ButtonLook look{.icon = action_icon, .primary = true};
  const float gap = ImGui::GetStyle().ItemSpacing.x, both = button_width(action, look) + (other ? gap + button_width(other, {}) : 0);
  ImGui::SetCursorPos({at.x + std::max(0.0f, (space.x - both) / 2), ImGui::GetCursorPosY() + em(0.6f)});
  const bool pressed = button(action, look);
  if (!other) return pressed;
  if (both <= space.x) ImGui::SameLine();
  *other_pressed = button(other);
  return pressed;
}

float banner_height(const std::string& text, float width) {
  const float pad = em(0.6f), icon = em(0.95f);
  return ImGui::CalcTextSize(text.c_str(), nullptr, false, width - 3 * pad - icon).y + 2 * pad;
}

void banner(Level level, const std::string& text) {
  const Theme& t = theme();
  const ImU32 color = level == Level::error ? t.bad : level == Level::warning ? t.warning : level == Level::good ? t.good : t.accent;
  const float width = ImGui::GetContentRegionAvail().x, pad = em(0.6f), icon = em(0.95f);
  const ImVec2 size = ImGui::CalcTextSize(text.c_str(), nullptr, false, width - 3 * pad - icon);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(at, {at.x + width, at.y + size.y + 2 * pad}, with_alpha(color, 0.14f), ImGui::GetStyle().FrameRounding);
  const Icon shape = level == Level::error || level == Level::warning ? Icon::warning : level == Level::good ? Icon::check : Icon::dot;
  draw_icon(list, shape, {at.x + pad + icon / 2, at.y + pad + ImGui::GetFontSize() / 2}, icon, color);
  list->AddText(nullptr, 0, {at.x + 2 * pad + icon, at.y + pad}, t.text, text.c_str(), nullptr, width - 3 * pad - icon);
  ImGui::Dummy({width, size.y + 2 * pad});
  name_item("says:" + text);
}

void small_beside(const std::string& text, ImU32 color) {
  const float line = ImGui::GetTextLineHeight();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  push_small();
  const ImVec2 size = ImGui::CalcTextSize(text.c_str());
  const float base = ImGui::GetCurrentWindow()->DC.CurrLineTextBaseOffset + std::round((line - ImGui::GetTextLineHeight()) * 0.8f);
  ImGui::GetWindowDrawList()->AddText({at.x, at.y + base}, color, text.c_str());
  ImGui::PopFont();
  ImGui::Dummy({size.x, line});
}

void text_dim(const std::string& text) {
  ImGui::PushStyleColor(ImGuiCol_Text, theme().dim);
  ImGui::TextUnformatted(text.c_str(), text.c_str() + text.size());
  ImGui::PopStyleColor();
}

void text_wrapped(const std::string& text, ImU32 color) {
  ImGui::PushTextWrapPos(0);
  ImGui::PushStyleColor(ImGuiCol_Text, color);
  ImGui::TextUnformatted(text.c_str());
  ImGui::PopStyleColor();
  ImGui::PopTextWrapPos();
  name_item("says:" + text);
}

void text_right(const std::string& text, float right, ImU32 color) {
  const float width = ImGui::CalcTextSize(text.c_str()).x;
  ImGui::SetCursorPosX(std::max(ImGui::GetCursorPosX(), right - width));
  ImGui::PushStyleColor(ImGuiCol_Text, color);
  ImGui::TextUnformatted(text.c_str());
  ImGui::PopStyleColor();
}

void beside_or_below(float width, float gap) {
  const ImGuiWindow* window = ImGui::GetCurrentWindow();
  const float begin = window->DC.CursorPosPrevLine.x + (gap < 0 ? ImGui::GetStyle().ItemSpacing.x : gap);
  if (begin + width <= ImGui::GetCursorScreenPos().x + ImGui::GetContentRegionAvail().x) ImGui::SameLine(0, gap);
}

float checkbox_width(const char* label) {
  return ImGui::GetFrameHeight() + ImGui::GetStyle().ItemInnerSpacing.x + std::ceil(ImGui::CalcTextSize(label).x);
}

void text_fit(const std::string& text, float width, ImU32 color) {
  ImGui::PushStyleColor(ImGuiCol_Text, color);
  const ImVec2 at = ImGui::GetCursorScreenPos(), size = ImGui::CalcTextSize(text.c_str());
  const float height = ImGui::GetTextLineHeight();
  ImGui::RenderTextEllipsis(ImGui::GetWindowDrawList(), {at.x, at.y + ImGui::GetCurrentWindow()->DC.CurrLineTextBaseOffset},
                            {at.x + width, at.y + ImGui::GetCurrentWindow()->DC.CurrLineTextBaseOffset + height}, at.x + width,
                            text.c_str(), nullptr, &size);
  ImGui::PopStyleColor();
  ImGui::Dummy({std::min(width, size.x), height});
  if (size.x > width) tooltip(text.c_str());
}

void tooltip(const char* text) {
  if (!ImGui::IsItemHovered(ImGuiHoveredFlags_DelayShort | ImGuiHoveredFlags_AllowWhenDisabled)) return;
  if (!ImGui::BeginTooltip()) return;
  ImGui::PushTextWrapPos(em(24));
  ImGui::TextUnformatted(text);
  ImGui::PopTextWrapPos();
  if (collects_items()) name_item(std::string("tip:") + text);
  ImGui::EndTooltip();
}

void told(const char* id, const std::string& text, const std::string& value) {
  if (!text.empty()) tooltip(text.c_str());
  std::vector<Copied> what;
  if (!value.empty()) what.push_back({"Copy value", value});
  if (!text.empty()) what.push_back({"Copy tooltip", value.empty() ? text : value + "\n" + text});
  ImGui::PushID(id);
  copy_menu(what);
  ImGui::PopID();
}

bool focus_area(const char* id, ImVec2 at, ImVec2 size) {
  ImGui::SetCursorPos(at);
  const bool pressed = ImGui::InvisibleButton(id, {std::max(1.0f, size.x), std::max(1.0f, size.y)}, ImGuiButtonFlags_EnableNav);
  ImGui::RenderNavCursor({ImGui::GetItemRectMin(), ImGui::GetItemRectMax()}, ImGui::GetItemID());
  return pressed;
}

bool led_by_keyboard() {
  const ImGuiContext& context = *ImGui::GetCurrentContext();
  return context.NavHighlightItemUnderNav && context.NavCursorVisible;
}

void copy_menu(const std::vector<Copied>& what, bool over) {
  static std::vector<Copied> opened_with;  // static, because only one menu is open at a time
  constexpr const char* kMenu = "copy-menu";
  const bool clicked = over && ImGui::IsMouseReleased(ImGuiMouseButton_Right) && !mouse_dragged(ImGuiMouseButton_Right);
  const ImGuiContext& context = *ImGui::GetCurrentContext();  // the Menu key was pressed on the focused item
  const bool by_key = ImGui::IsItemFocused() && context.NavOpenContextMenuItemId == context.LastItemData.ID;
  if (!what.empty() && (clicked || by_key)) {
    opened_with = what;
    ImGui::OpenPopup(kMenu);
  }
  if (!ImGui::BeginPopup(kMenu)) return;
  for (const Copied& one : opened_with) {
    if (ImGui::MenuItem(one.title.c_str(), nullptr, false, !one.text.empty())) ImGui::SetClipboardText(one.text.c_str());
    name_item("copy:" + one.title);
  }
  ImGui::EndPopup();
}

bool mouse_dragged(int button) {
  const ImGuiIO& io = ImGui::GetIO();
  if (!io.MouseDown[button] && !io.MouseReleased[button]) return false;  // ImGui still has the distance of an earlier drag
  return io.MouseDragMaxDistanceSqr[button] >= io.MouseDragThreshold * io.MouseDragThreshold;
}

void help_marker(const char* text) {
  const float font = ImGui::GetFontSize(), r = font * 0.42f;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImVec2 center(at.x + r, at.y + ImGui::GetCurrentWindow()->DC.CurrLineTextBaseOffset + font * 0.55f);
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddCircle(center, r, theme().dim, 0, std::max(1.0f, font * 0.06f));
  push_small();
  const ImVec2 size = ImGui::CalcTextSize("?");
  list->AddText({center.x - size.x / 2, center.y - size.y / 2}, theme().dim, "?");
  ImGui::PopFont();
  ImGui::Dummy({2 * r, font});
  tooltip(text);
}

void progress_bar(float share, ImVec2 size, ImU32 color, const std::string& overlay) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float rounding = std::min(size.y / 2, ImGui::GetStyle().FrameRounding);
  const ImVec2 end(at.x + size.x, at.y + size.y);
  list->AddRectFilled(at, end, theme().raised, rounding);
  if (share < 0) {
    const float part = size.x * 0.22f, phase = static_cast<float>(std::fmod(ImGui::GetTime() / 1.6, 1.0));
    const float x = at.x - part + (size.x + part) * phase;
    list->PushClipRect(at, end, true);
    list->AddRectFilled({x, at.y}, {x + part, end.y}, with_alpha(color, 0.8f), rounding);
    list->PopClipRect();
  }
  share = std::clamp(share, 0.0f, 1.0f);
  if (share > 0) {
    list->PushClipRect(at, {at.x + size.x * share, end.y}, true);
    list->AddRectFilled(at, end, color, rounding);
    list->PopClipRect();
  }
  if (!overlay.empty()) {
    const ImVec2 text = ImGui::CalcTextSize(overlay.c_str());
    const ImVec2 where(std::round(at.x + (size.x - text.x) / 2), std::round(at.y + (size.y - text.y) / 2));
    // Drawn twice with clipping, so that each part contrasts with its background.
    list->PushClipRect({at.x + size.x * share, at.y}, end, true);
    list->AddText(where, theme().text, overlay.c_str());
    list->PopClipRect();
    list->PushClipRect(at, {at.x + size.x * share, end.y}, true);
    list->AddText(where, readable_on(color), overlay.c_str());
    list->PopClipRect();
  }
  ImGui::Dummy(size);
}

double slider_value(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return std::atof(text);
}

bool slim_slider(const char* id, double& value, double low, double high, bool logarithmic, float width) {
  // The slider moves over 0..1. If a logarithmic slider includes 0, its left end is 0, followed by four decades.
  const bool zero = logarithmic && low <= 0;
  const double least = zero ? high * 1e-4 : low;
  const auto position_of = [&](double v) {
    if (!logarithmic) return (v - low) / (high - low);
    if (zero && v < least * 0.5) return 0.0;
    const double share = std::log(std::max(v, least) / least) / std::log(high / least);
    return zero ? 0.03 + 0.97 * share : share;
  };
  const auto value_at = [&](double position) {
    if (!logarithmic) return low + (high - low) * position;
    if (zero && position < 0.02) return 0.0;
    return least * std::pow(high / least, zero ? std::max(0.0, position - 0.03) / 0.97 : position);
  };
  const Theme& t = theme();
  auto position = static_cast<float>(std::clamp(position_of(value), 0.0, 1.0));
  const float height = em(1.15f), grab = em(0.9f);
  const ImU32 none = IM_COL32(0, 0, 0, 0);
  for (const ImGuiCol color :
       {ImGuiCol_FrameBg, ImGuiCol_FrameBgHovered, ImGuiCol_FrameBgActive, ImGuiCol_SliderGrab, ImGuiCol_SliderGrabActive})
    ImGui::PushStyleColor(color, none);
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(0, std::max(0.0f, (height - ImGui::GetFontSize()) / 2)));
  ImGui::PushStyleVar(ImGuiStyleVar_GrabMinSize, grab);
  ImGui::SetNextItemWidth(width);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const bool changed = ImGui::SliderFloat(id, &position, 0, 1, "", ImGuiSliderFlags_NoInput | ImGuiSliderFlags_NoRoundToFormat);
  const bool lit = ImGui::IsItemHovered() || ImGui::IsItemActive();
  ImGui::PopStyleVar(2);
  ImGui::PopStyleColor(5);
  const float alpha = ImGui::GetStyle().Alpha, middle = at.y + height / 2, line = em(0.13f);
  const float x = at.x + 2 + grab / 2 + (width - 4 - grab) * position;
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled({at.x, middle - line}, {at.x + width, middle + line}, with_alpha(t.pressed, alpha), line);
  list->AddRectFilled({at.x, middle - line}, {x, middle + line}, with_alpha(t.accent, alpha), line);
  list->AddCircleFilled({x, middle}, grab / 2 * (lit ? 1.1f : 1), with_alpha(lit ? t.accent_hover : t.accent, alpha));
  list->AddCircleFilled({x, middle}, grab * 0.2f, with_alpha(t.card, alpha));
  if (changed) value = value_at(position);
  return changed;
}

bool toggle(const char* id, bool& on) {
  const Theme& t = theme();
  const float height = ImGui::GetFrameHeight(), track = std::round(height * 0.68f), width = track * 1.8f;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const bool pressed = ImGui::InvisibleButton(id, {width, height}, ImGuiButtonFlags_EnableNav);
  if (pressed) on = !on;
  const bool lit = ImGui::IsItemHovered() || ImGui::IsItemActive();
  const float y = at.y + height / 2, r = track / 2;
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled({at.x, y - r}, {at.x + width, y + r}, on ? (lit ? t.accent_hover : t.accent) : (lit ? t.pressed : t.hover), r);
  list->AddCircleFilled({on ? at.x + width - r : at.x + r, y}, r * 0.72f, on ? t.on_accent : t.text);
  ImGui::RenderNavCursor({at, {at.x + width, at.y + height}}, ImGui::GetItemID());
  ImGui::SameLine(0, em(0.5f));
  ImGui::AlignTextToFramePadding();
  text_dim(on ? "on" : "off");
  return pressed;
}

bool segmented(const char* id, const char* const* labels, int count, int& chosen) {
  const Theme& t = theme();
  bool changed = false;
  ImGui::PushID(id);
  const bool in_menu = ImGui::GetCurrentWindow()->DC.LayoutType == ImGuiLayoutType_Horizontal;  // menus are laid out in one line
  for (int i = 0; i < count; ++i) {
    if (i > 0 && !in_menu) ImGui::SameLine(0, em(0.15f));
    const bool on = i == chosen;
    ImGui::PushStyleColor(ImGuiCol_Button, on ? t.accent_soft : IM_COL32(0, 0, 0, 0));
    ImGui::PushStyleColor(ImGuiCol_Text, on ? t.text : t.dim);
    if (ImGui::Button(labels[i]) && !on) {
      chosen = i;
      changed = true;
    }
    name_item(std::string("choice:") + labels[i]);
    ImGui::PopStyleColor(2);
  }
  ImGui::PopID();
  return changed;
}

}  // namespace comera::studio
