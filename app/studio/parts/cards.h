// Surfaces and what stands on them: titles, chips, values with a caption, banners, bars of progress.
#pragma once
#include <imgui.h>

#include <string>

#include "app/studio/parts/icons.h"
#include "app/studio/theme.h"

namespace comera::studio {

// A rounded surface. Always call end_card().
bool begin_card(const char* id, ImVec2 size = {0, 0}, ImGuiChildFlags flags = 0, ImGuiWindowFlags window_flags = 0);
void end_card();
// Title line of a card, cut to `width`; 0 = not cut.
void card_title(const char* title, const char* help = nullptr, float width = 0);

// A small rounded label with an icon, so that colour is never the only sign.
void chip(const char* text, ImU32 color, Icon icon = Icon::none);
float chip_width(const char* text, Icon icon);

// A caption, a large value below it, and a dim line below that.
void stat(const char* caption, const std::string& value, const char* under = nullptr, ImU32 color = 0);

// Centred placeholder of an empty panel, with a hint. `action`: label of a button; returns true when it was pressed. `other`: label of a
// second button.
bool empty_state(Icon icon, const char* title, const char* text, const char* action = nullptr, Icon action_icon = Icon::play,
                 const char* other = nullptr, bool* other_pressed = nullptr);
// A coloured strip with wrapped text.
void banner(Level level, const std::string& text);
float banner_height(const std::string& text, float width);  // height at this width

inline constexpr float kNotKnown = -1;  // share of a progress bar that only shows activity
void progress_bar(float share, ImVec2 size, ImU32 color, const std::string& overlay);

}  // namespace comera::studio
