#include "app/studio/form/config_form.h"

#include <imgui_internal.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>

#include "app/format.h"
#include "app/studio/actions.h"
#include "app/studio/form/data_fields.h"
#include "app/studio/form/sweep_card.h"
#include "app/studio/parts/cards.h"
#include "app/studio/parts/icons.h"
#include "app/studio/parts/inputs.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/texts.h"
#include "core/base/path_visitor.h"
#include "core/config/suggest.h"

namespace comera::studio {
namespace {

// True if each word of the search occurs in the path or the description.
bool fits(const std::string& search, const std::string& path, const FieldInfo& info) {
  const std::string text = lower_case(path + " " + title_with_unit(info) + " " + info.symbol + " " + info.help + " " + info.more);
  size_t at = 0;
  const std::string wanted = lower_case(search);
  while (at < wanted.size()) {
    const size_t end = std::min(wanted.find(' ', at), wanted.size());
    if (text.find(wanted.substr(at, end - at)) == std::string::npos) return false;
    at = end + 1;
  }
  return true;
}

// Collects the paths of fields that match the search.
class Finder : public PathVisitor {
 public:
  explicit Finder(const std::string& search) : search_(search) {}
  std::vector<std::string> found;
  void field(const char* name, int64_t&, const FieldInfo& info) override { look(name, info); }
  void field(const char* name, double&, const FieldInfo& info) override { look(name, info); }
  void field(const char* name, bool&, const FieldInfo& info) override { look(name, info); }
  void field(const char* name, std::string&, const FieldInfo& info) override { look(name, info); }
  void field(const char* name, std::vector<int64_t>&, const FieldInfo& info) override { look(name, info); }

 private:
  void look(const char* name, const FieldInfo& info) {
    if (fits(search_, path_of(name), info)) found.push_back(path_of(name));
  }
  const std::string& search_;
};

bool inside(const std::string& path, const std::string& group) {
  return path.size() > group.size() && path[group.size()] == '.' && path.compare(0, group.size(), group) == 0;
}

// Dragging changes the value by a percentage, so that 1e-5 and 6,000 behave alike; fractions change linearly.
bool drag_number(const char* id, double& value, const Range& range, const char* format = "%.6g") {
  const double span = range.high - range.low;
  const bool even = span <= 1 && (value == 0 || std::fabs(value) >= span * 0.005);
  const double speed = even ? span / 200 : std::max(std::fabs(value) * 0.01, 1e-7);
  double moved = value;
  if (!ImGui::DragScalar(id, ImGuiDataType_Double, &moved, static_cast<float>(speed), &range.low, &range.high, format,
                         ImGuiSliderFlags_NoRoundToFormat) ||
      !std::isfinite(moved))  // typed: "nan"
    return false;
  const bool typed = ImGui::TempInputIsActive(ImGui::GetItemID());
  value = typed ? moved : even ? std::round(moved * 1000) / 1000 : slider_value(moved);
  return true;
}

bool drag_number(const char* id, int64_t& value, const Range& range) {
  const auto low = static_cast<int64_t>(std::max(range.low, -9e15)), high = static_cast<int64_t>(std::min(range.high, 9e15));
  const double speed = std::max(0.06, std::fabs(static_cast<double>(value)) * 0.01);
  int64_t moved = value;
  if (!ImGui::DragScalar(id, ImGuiDataType_S64, &moved, static_cast<float>(speed), &low, &high, "%lld")) return false;
  const bool typed = ImGui::TempInputIsActive(ImGui::GetItemID());
  value = typed ? moved : static_cast<int64_t>(slider_value(static_cast<double>(moved)));
  return true;
}

// A slider over the usual values; typed values may lie outside.
bool slide(const FieldInfo& info, double& value, const char* format = "%.6g") {
  double moved = value;
  if (!ImGui::SliderScalar("##value", ImGuiDataType_Double, &moved, &info.usual.low, &info.usual.high, format,
                           (info.scale == Scale::linear ? 0 : ImGuiSliderFlags_Logarithmic) | ImGuiSliderFlags_NoRoundToFormat) ||
      !std::isfinite(moved))
    return false;
  const bool typed = ImGui::TempInputIsActive(ImGui::GetItemID());
  value = typed ? moved : info.scale == Scale::powers ? std::exp2(std::round(std::log2(std::max(1.0, moved)))) : slider_value(moved);
  return true;
}

bool slide(const FieldInfo& info, int64_t& value) {
  auto moved = static_cast<double>(value);
  if (!slide(info, moved, "%.0f")) return false;
  const auto to = static_cast<int64_t>(std::llround(std::clamp(moved, -9e15, 9e15)));
  return std::exchange(value, to) != to;
}

std::string list_text(const std::vector<int64_t>& values) {
  std::string list;
  for (const int64_t value : values) list += (list.empty() ? "" : ", ") + std::to_string(value);
  return list;
}

int only_a_list(ImGuiInputTextCallbackData* data) {
  return data->EventChar < 128 && (std::isdigit(static_cast<int>(data->EventChar)) || std::strchr(", ", static_cast<int>(data->EventChar)))
             ? 0
             : 1;
}

// The size target in its three units.
struct SizeTarget {
  double share = 0, mib = 0, compression = 0;
};
struct Target {
  const char* path;
  double ComeraConfig::*value;
  double SizeTarget::*shown;
  const char *format, *help;
};
constexpr Target kTargets[] = {
    {"method.comera.target", &ComeraConfig::target, &SizeTarget::share, "share %.3g",
     "Fraction of the size of the tensor trains at the start of the late stage."},
    {"method.comera.target_mib", &ComeraConfig::target_mib, &SizeTarget::mib, "%.3g MiB", "Size of the tensor trains in MiB."},
    {"method.comera.target_compression", &ComeraConfig::target_compression, &SizeTarget::compression, "%.3g x",
     "Compression: dense size / size of the tensor trains."},
};

// The target in all three units, from the unit in effect and the initial sizes; 0 = not known, or no target.
SizeTarget linked_target(const ComeraConfig& comera, const Forecast* forecast) {
  SizeTarget out{comera.target, comera.target_mib, comera.target_compression};
  if (!forecast || forecast->tensorised <= 0) return out;
  const auto start = static_cast<double>(forecast->tensorised), dense = static_cast<double>(forecast->tensorised_dense);
  const double bytes = forecast->value_bytes;
  const double entries = out.mib > 0 ? out.mib * (1 << 20) / bytes : out.compression > 0 ? dense / out.compression : out.share * start;
  if (entries <= 0) return out;
  if (out.share <= 0) out.share = entries / start;
  if (out.mib <= 0) out.mib = entries * bytes / (1 << 20);
  if (out.compression <= 0) out.compression = dense / entries;
  return out;
}

class Form : public PathVisitor {
 public:
  explicit Form(UiState& ui) : ui_(ui), form_(ui.form), window_(ImGui::GetCurrentWindow()->ID) {
    if (!form_.jump.empty()) form_.search.clear();
    if (form_.search.empty()) return;
    Finder finder(form_.search);
    form_.config.fields(finder);
    found_ = std::move(finder.found);
  }
  bool empty() const { return !form_.search.empty() && found_.empty(); }
  std::string changed;  // path of the changed setting; "" = none

  void field(const char* name, int64_t& value, const FieldInfo& info) override {
    row(name, info, [&](float width) {
      const bool seed = path_of(name) == "train.seed", powers = info.scale == Scale::powers;
      const float extra = seed ? button_width("New seed", {}) : powers ? 2 * em(2.2f) + em(0.3f) : 0;
      ImGui::SetNextItemWidth(width - (extra > 0 ? extra + em(0.3f) : 0));
      bool moved = info.slides() ? slide(info, value) : drag_number("##value", value, info.range);
      if (seed) {
        ImGui::SameLine(0, em(0.3f));
        if (button("New seed", {.tooltip = "Draws a random seed"})) new_seed_ = true;
      }
      if (powers) {  // buttons to the neighbouring ones
        ImGui::SameLine(0, em(0.3f));
        if (button("/2###half", {.tooltip = "Half", .size = {em(2.2f), 0}}) && value > 1) value /= 2, moved = true;
        ImGui::SameLine(0, em(0.3f));
        if (button("x2###double", {.tooltip = "Double", .size = {em(2.2f), 0}})) value *= 2, moved = true;
      }
      return moved;
    });
  }
  void field(const char* name, double& value, const FieldInfo& info) override {
    const std::string path = path_of(name);
    const auto target = std::find_if(std::begin(kTargets), std::end(kTargets), [&](const Target& one) { return path == one.path; });
    if (target != std::end(kTargets)) {  // three settings with the same meaning share a row
      if (target == std::begin(kTargets)) size_target(info);
      return;
    }
    row(name, info, [&](float width) {
      ImGui::SetNextItemWidth(width);
      return info.slides() ? slide(info, value) : drag_number("##value", value, info.range);
    });
  }
  void field(const char* name, bool& value, const FieldInfo& info) override {
    row(name, info, [&](float) { return toggle("##value", value); });
  }
  void field(const char* name, std::string& value, const FieldInfo& info) override {
    const auto draw = [&](float width) {
      const std::string path = path_of(name);
      if (path == "data.set") return data_combo(ui_, value, width);
      ImGui::SetNextItemWidth(width);
      if (knows_column(form_, path)) return column_combo(form_, path, value);
      if (!info.choices.empty()) return combo(value, info.choices);
      if (path == "train.device") {
        std::vector<Choice> devices;
        for (const std::string& device : form_.devices) devices.push_back({device.c_str()});
        return combo(value, devices);
      }
      char text[1024];
      std::snprintf(text, sizeof text, "%s", value.c_str());
      if (!ImGui::InputText("##value", text, sizeof text)) return false;
      value = text;
      return true;
    };
    row(name, info, draw, value);
  }
  void field(const char* name, std::vector<int64_t>& value, const FieldInfo& info) override {
    row(name, info, [&](float width) {
      const std::string path = path_of(name), list = list_text(value);
      char text[1024];
      std::snprintf(text, sizeof text, "%s", list.c_str());
      const bool modes = path.ends_with("_modes");
      const auto chosen = form_.modes.find(path);
      const float extra = modes ? button_width("Auto", {}) + em(0.3f) : 0;
      ImGui::SetNextItemWidth(width - extra);
      const std::string hint = chosen == form_.modes.end() ? "chosen" : list_text(chosen->second);
      const bool typed =
          ImGui::InputTextWithHint("##value", hint.c_str(), text, sizeof text, ImGuiInputTextFlags_CallbackCharFilter, only_a_list);
      if (modes) {
        const bool there = chosen != form_.modes.end();
        ImGui::SameLine(0, em(0.3f));
        if (button("Auto",
                   {.enabled = there && value != chosen->second,
                    .tooltip = "Factorises this size into balanced modes",
                    .why_not = there ? "The modes are already balanced"
                                     : "The layers differ in size or there is none: leave it empty, and each layer gets its own modes"})) {
          value = chosen->second;
          return true;
        }
      }
      if (!typed) return false;
      value.clear();
      for (const char* at = text; *at;) {
        char* end = nullptr;
        const long long number = std::strtoll(at, &end, 10);
        if (end == at) {
          ++at;
          continue;
        }
        value.push_back(number);
        at = end;
      }
      return true;
    });
  }

  void finish() {
    end_top();
    // A group that was just opened needs a frame or two to reach its height.
    if (!form_.jump.empty() && --form_.jump_frames <= 0) form_.jump.clear();
    if (!changed.empty()) form_changed(ui_, changed);
    if (reset_ == kTargets[0].path)
      for (const Target& one : kTargets) reset_field(ui_, one.path);
    else if (!reset_.empty())
      reset_field(ui_, reset_);
    if (!nearest_.empty()) set_field(ui_, nearest_, nearest_value(form_.config, nearest_));
    if (new_seed_) new_seed(ui_);
  }

 private:
  void nested(const char* name, const GroupInfo& info, const std::function<void(FieldVisitor&)>& visit) override {
    const std::string outer = prefix_, path = path_of(name);
    const bool top = outer.empty(), searching = !form_.search.empty();
    if (searching && std::none_of(found_.begin(), found_.end(), [&](const std::string& at) { return inside(at, path); })) return;
    if (top) {
      end_top();
      begin_top(path.c_str(), info.title);
      prefix_ = path;
      visit(*this);
    } else if (header(path, info)) {
      prefix_ = path;
      const float indent = em(0.9f);
      ImGui::Indent(indent);
      visit(*this);
      ImGui::Unindent(indent);
    }
    prefix_ = outer;
  }

  // A card per top-level group, and one for fields outside any group. Cards are not child windows, so that fields out of sight are still
  // submitted and can be scrolled to.
  void begin_top(const char* name, const char* title) {
    in_card_ = true;
    ImDrawList* list = ImGui::GetWindowDrawList();
    list->ChannelsSplit(2);
    list->ChannelsSetCurrent(1);
    card_ = ImGui::GetCursorScreenPos();
    card_width_ = ImGui::GetContentRegionAvail().x;
    ImGui::PushID(name);
    ImGui::Dummy({0, em(0.25f)});
    ImGui::Indent(em(0.8f));
    card_title(title);
  }
  void end_top() {
    if (!std::exchange(in_card_, false)) return;
    ImGui::Unindent(em(0.8f));
    ImGui::PopID();
    ImDrawList* list = ImGui::GetWindowDrawList();
    list->ChannelsSetCurrent(0);
    const ImVec2 end(card_.x + card_width_, ImGui::GetCursorScreenPos().y);
    const float rounding = ImGui::GetStyle().ChildRounding;
    list->AddRectFilled(card_, end, theme().card, rounding);
    list->AddRect(card_, end, theme().border, rounding);
    list->ChannelsMerge();
    ImGui::Dummy({0, em(0.3f)});
  }
  // Remaining width of the line inside the card.
  float room() const { return card_.x + card_width_ - em(0.8f) - ImGui::GetCursorScreenPos().x; }

  // Header line of a group; true if the group is open.
  bool header(const std::string& path, const GroupInfo& info) {
    const auto found = form_.unused.find(path);
    const bool unused = found != form_.unused.end();
    const auto count = [&](const auto& all, auto path_of_one) {
      return std::count_if(all.begin(), all.end(), [&](const auto& one) { return inside(path_of_one(one), path); });
    };
    const auto edits = count(form_.changed, [](const std::string& at) { return at; });
    const auto wrong = count(form_.problems, [](const Problem& problem) { return problem.path; });
    if (!form_.search.empty() || inside(form_.jump, path))
      ImGui::SetNextItemOpen(true);
    else
      ImGui::SetNextItemOpen(info.main && !unused, ImGuiCond_Once);
    ImGui::PushStyleColor(ImGuiCol_Header, IM_COL32(0, 0, 0, 0));
    ImGui::PushStyleColor(ImGuiCol_Text, unused ? theme().dim : theme().text);
    ImGui::PushFont(edits > 0 ? fonts().bold : fonts().text, 0);
    const bool open = ImGui::TreeNodeEx((std::string(info.title) + "###" + path).c_str(),
                                        ImGuiTreeNodeFlags_NoTreePushOnOpen | ImGuiTreeNodeFlags_SpanAvailWidth |
                                            ImGuiTreeNodeFlags_FramePadding | ImGuiTreeNodeFlags_AllowOverlap);
    ImGui::PopFont();
    ImGui::PopStyleColor(2);
    const auto beside = [this](const std::string& text, ImU32 color, Icon icon) {
      ImGui::SameLine(0, em(0.6f));
      if (room() > chip_width(text.c_str(), icon))
        chip(text.c_str(), color, icon);
      else
        ImGui::NewLine();  // otherwise the next item would be on this line
    };
    if (wrong > 0) beside(std::to_string(wrong) + " wrong", theme().bad, Icon::warning);
    if (edits > 0) beside(std::to_string(edits) + " changed", theme().accent, Icon::dot);
    if (unused) {
      ImGui::SameLine(0, em(0.6f));
      ImGui::AlignTextToFramePadding();
      small_fit("not used: " + found->second);
    }
    return open;
  }

  void small_fit(const std::string& text) {
    push_small();
    text_fit(text, room(), theme().dim);
    ImGui::PopFont();
  }

  bool is_found(const std::string& path) const {
    return form_.search.empty() || std::find(found_.begin(), found_.end(), path) != found_.end();
  }

  // Place of a control: next to its label, aligned across all groups of a card, or below it.
  struct Place {
    float left, top, full, label, control, width;
    bool beside;
  };

  // Draws the label and moves to the place of the control. `told_path`: in the tooltip.
  Place begin_row(const std::string& title, const std::string& path, const std::string& told_path, bool edited) {
    Place at{ImGui::GetCursorPosX(), ImGui::GetCursorPosY(), room(), 0, 0, 0, false};
    const float sign = ImGui::GetFrameHeight() + em(0.2f), card = card_width_ - em(1.6f), indent = card - at.full, gap = em(0.8f);
    at.beside = card > em(24);
    at.label = at.beside ? std::clamp(card * 0.38f, em(10), em(15)) - indent : at.full;
    at.width = at.beside ? std::clamp(at.full - at.label - gap - sign, em(6), em(20)) : at.full - sign;
    at.control = at.beside ? at.left + at.label + gap : at.left;
    if (shows_sweep(form_)) draw_sweep_tick(form_, path);
    ImGui::AlignTextToFramePadding();
    ImGui::PushFont(edited ? fonts().bold : fonts().text, 0);
    text_fit(title, at.label - (ImGui::GetCursorPosX() - at.left), theme().text);
    ImGui::PopFont();
    told(told_path.c_str(), told_path);
    if (at.beside) ImGui::SetCursorPos({at.control, at.top});
    return at;
  }

  // Null: the setting of a row does not vary in the sweep. Three share the row of the size target.
  const VariedSetting* varied_at(const std::string& path) const {
    if (!shows_sweep(form_)) return nullptr;
    if (path != kTargets[0].path) return form_.sweep.find(path);
    for (const Target& one : kTargets)
      if (const VariedSetting* varied = form_.sweep.find(one.path)) return varied;
    return nullptr;
  }

  // Buttons next to the control, and the help text below, where no tooltip hides it.
  void end_row(const Place& at, float control_top, const std::string& path, const FieldInfo& info, bool edited, const char* help) {
    const float below = ImGui::GetCursorPosY(), after = at.control + at.width + em(0.2f);
    if (edited) {
      ImGui::SetCursorPos({after, control_top});
      ImGui::PushStyleColor(ImGuiCol_Button, IM_COL32(0, 0, 0, 0));
      if (button("###reset", {.icon = Icon::rewind, .tooltip = "Reset to the preset", .size = {ImGui::GetFrameHeight(), 0}})) reset_ = path;
      ImGui::PopStyleColor();
    }
    const float live = after + ImGui::GetFrameHeight() + em(0.4f);
    if (info.is_live() && live + em(2.2f) < at.left + at.full) {
      ImGui::SetCursorPos({live, control_top});
      ImGui::AlignTextToFramePadding();
      small_beside("live", theme().accent);
      told("live", "Can change while the run trains");
    }
    ImGui::SetCursorPos({at.left, below - em(0.2f)});
    if (const VariedSetting* varied = varied_at(path)) {
      push_small();
      text_fit("In the sweep: " + varied->text, at.full, theme().accent);
      ImGui::PopFont();
    } else if (!lower_case(info.title).starts_with(lower_case(help))) {  // else it says nothing new
      push_small();
      text_fit(help, at.full, theme().dim);
      ImGui::PopFont();
    }
    ImGui::Dummy({0, em(0.1f)});
  }

  // `chosen`: the value of a setting with choices.
  template <class Draw>
  void row(const char* name, const FieldInfo& info, Draw draw, const std::string& chosen = "") {
    const std::string path = path_of(name);
    if (!is_found(path)) return;
    if (prefix_.empty() && !in_card_) begin_top("run", "Run");
    const bool edited = form_.is_changed(path);
    ImGui::PushOverrideID(ImHashStr(path.c_str(), 0, window_));  // the same id for every place of the row
    const Place at = begin_row(title_with_unit(info), path, path, edited);
    const float top = ImGui::GetCursorPosY();
    ImGui::BeginGroup();
    if (path == form_.jump && form_.jump_frames == 1) ImGui::SetKeyboardFocusHere();
    if (draw(at.width)) changed = path;
    ImGui::EndGroup();
    if (path == form_.jump) ImGui::ScrollToItem(ImGuiScrollFlags_AlwaysCenterY);
    end_row(at, top, path, info, edited, info.help);
    choice_line(info, chosen);
    problems_at(path);
    if (path == "data.set") {
      ImGui::SetCursorPosY(ImGui::GetCursorPosY() - em(0.45f));  // close to the row above, which it belongs to
      draw_data_facts(form_, room());
      ImGui::Dummy({0, em(0.25f)});
    }
    ImGui::PopID();
  }

  // The size target in its three units: one is in effect, the others are computed from it and the forecast.
  void size_target(const FieldInfo& info) {
    if (std::none_of(std::begin(kTargets), std::end(kTargets), [&](const Target& one) { return is_found(one.path); })) return;
    const auto is_edited = [&](const Target& one) { return form_.is_changed(one.path); };
    const bool edited = std::any_of(std::begin(kTargets), std::end(kTargets), is_edited);
    ComeraConfig& comera = form_.config.method.comera;
    const SizeTarget shown = linked_target(comera, form_.forecast.get());
    const auto in_effect = std::find_if(std::begin(kTargets), std::end(kTargets), [&](const Target& one) { return comera.*one.value > 0; });
    const std::string swept = (in_effect == std::end(kTargets) ? std::begin(kTargets) : in_effect)->path;
    const Place at = begin_row("Size target", swept, "method.comera.target, target_mib or target_compression", edited);
    const float top = ImGui::GetCursorPosY(), gap = em(0.3f), width = std::floor((at.width - 2 * gap) / 3);
    for (const Target& one : kTargets) {
      ImGui::PushOverrideID(ImHashStr(one.path, 0, window_));
      double value = shown.*one.shown;
      const bool in_force = comera.*one.value > 0;
      if (&one != std::begin(kTargets)) ImGui::SameLine(0, gap);
      ImGui::SetNextItemWidth(width);
      ImGui::PushStyleColor(ImGuiCol_Text, in_force ? theme().text : theme().dim);
      if (form_.jump == one.path && form_.jump_frames == 1) ImGui::SetKeyboardFocusHere();
      const Range range{0, &one == std::begin(kTargets) ? info.range.high : 1e9};
      if (drag_number("##value", value, range, value > 0 ? one.format : "-")) {
        comera.*one.value = value;
        changed = one.path;
      }
      ImGui::PopStyleColor();
      if (form_.jump == one.path) ImGui::ScrollToItem(ImGuiScrollFlags_AlwaysCenterY);
      tooltip((std::string(one.help) + (in_force ? " In effect." : " Computed from the target in effect.")).c_str());
      ImGui::PopID();
    }
    ImGui::PushOverrideID(ImHashStr(kTargets[0].path, 0, window_));
    end_row(at, top, kTargets[0].path, info, edited,
            "late stage: fraction of its initial size, MiB of the tensor trains, or compression; 0 = none");
    ImGui::PopID();
    for (const Target& one : kTargets) {
      ImGui::PushID(one.path);
      problems_at(one.path);
      ImGui::PopID();
    }
  }

  // Help on the selected choice.
  void choice_line(const FieldInfo& info, const std::string& value) {
    for (const Choice& choice : info.choices) {
      if (value != choice.id || !*choice.about) continue;
      ImGui::SetCursorPosY(ImGui::GetCursorPosY() - em(0.45f));  // close to the row above, which it belongs to
      push_small();
      ImGui::PushTextWrapPos(ImGui::GetCursorPosX() + room());
      text_dim(value + ": " + choice.about);
      ImGui::PopTextWrapPos();
      ImGui::PopFont();
      ImGui::Dummy({0, em(0.25f)});
    }
  }

  // Problems of a setting, below it: each with its reason and advice.
  void problems_at(const std::string& path) {
    const Problem* first = nullptr;
    const auto show = [&](const std::vector<Problem>& problems) {
      for (const Problem& problem : problems) {
        if (problem.path != path) continue;
        if (!first) first = &problem;
        push_small();
        ImGui::PushTextWrapPos(ImGui::GetCursorPosX() + room());
        ImGui::PushStyleColor(ImGuiCol_Text, theme().bad);
        ImGui::TextUnformatted(problem.text.c_str());
        ImGui::PopStyleColor();
        name_item("problem:" + path);
        if (!problem.hint.empty()) text_dim("Try: " + problem.hint);
        ImGui::PopTextWrapPos();
        if (const std::string near = nearest_value(form_.config, path); !near.empty() && &problem == first) {
          std::string words = near;
          std::erase_if(words, [](char c) { return c == '[' || c == ']'; });
          if (button(("Use " + words + "###nearest").c_str(), {.icon = Icon::check, .tooltip = "The nearest valid value"})) nearest_ = path;
        }
        ImGui::PopFont();
      }
    };
    show(form_.problems);
    if (!in_misfit_card(form_, path)) show(form_.outlook_problems);
    if (path == "data.set" && !first)  // data that are not there cannot be read either
      if (const std::optional<Problem> problem = data_problem(form_)) show({*problem});
  }

  // A combo box; each choice has its help below.
  bool combo(std::string& value, const std::vector<Choice>& choices) {
    bool chosen = false;
    if (!ImGui::BeginCombo("##value", value.c_str(), ImGuiComboFlags_HeightLarge)) return false;
    for (const Choice& choice : choices) {
      if (ImGui::Selectable(choice.id, choice.id == value) && choice.id != value) {
        value = choice.id;
        chosen = true;
      }
      if (!*choice.about) continue;
      push_small();
      ImGui::PushTextWrapPos(ImGui::GetCursorPosX() + em(26));
      text_dim(choice.about);
      ImGui::PopTextWrapPos();
      ImGui::PopFont();
    }
    ImGui::EndCombo();
    return chosen;
  }

  UiState& ui_;
  NewRun& form_;
  const ImGuiID window_;
  std::vector<std::string> found_;
  std::string reset_, nearest_;
  bool new_seed_ = false, in_card_ = false;
  ImVec2 card_;  // upper left corner, in screen coordinates
  float card_width_ = 0;
};

}  // namespace

void draw_config_form(UiState& ui) {
  Form form(ui);
  if (form.empty()) {
    if (begin_card("card-nothing")) empty_state(Icon::search, "No match", "Clear the search to show all settings.");
    end_card();
    return;
  }
  ui.form.config.fields(form);
  form.finish();
}

}  // namespace comera::studio
