#include "app/studio/form/misfit_card.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <vector>

#include "app/format.h"
#include "app/studio/actions.h"
#include "app/studio/parts/cards.h"
#include "app/studio/parts/icons.h"
#include "app/studio/parts/inputs.h"
#include "app/studio/parts/looks.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/texts.h"
#include "app/studio/ui_state.h"

namespace comera::studio {
namespace {

std::string needed_text(int64_t bytes) { return mebibytes(static_cast<double>(bytes)); }

std::vector<Purpose> largest_first(const MemoryByPurpose& memory) {
  std::vector<Purpose> order;
  for (int i = 0; i < kPurposes; ++i) order.push_back(static_cast<Purpose>(i));
  std::stable_sort(order.begin(), order.end(), [&](Purpose a, Purpose b) { return memory[a] > memory[b]; });
  std::erase_if(order, [&](Purpose purpose) { return memory[purpose] <= 0; });
  return order;
}

std::string why_text(const MemoryByPurpose& memory) {
  const std::vector<Purpose> order = largest_first(memory);
  if (order.empty()) return "";
  std::string text = "Most of it: " + std::string(look_of(order[0]).title) + " " + needed_text(memory[order[0]]);
  if (order.size() > 1) text += ", " + std::string(look_of(order[1]).title) + " " + needed_text(memory[order[1]]);
  return text;
}

const char* hint_text(const MemoryMisfit& misfit) {
  const auto fitting = std::count_if(misfit.remedies.begin(), misfit.remedies.end(), [](const Remedy& remedy) { return remedy.fits; });
  if (misfit.remedies.empty()) return "Use a smaller model or free memory: batch size, length and ranks do not suffice";
  return fitting == 0   ? "No single change suffices; these help most"
         : fitting == 1 ? "This change makes it fit"
                        : "Each of these changes makes it fit";
}

void line(std::string text, ImU32 color) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  ImGui::PushStyleColor(ImGuiCol_Text, color);
  ImGui::PushTextWrapPos(0);
  ImGui::TextUnformatted(text.c_str());
  ImGui::PopTextWrapPos();
  ImGui::PopStyleColor();
  name_item("says:" + text);
}

// The plan as a bar with a line at the end of free memory; below it the names of the largest parts.
void breakdown(const MemoryByPurpose& planned, int64_t available) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x, height = em(0.9f);
  const auto total = static_cast<double>(planned.total());
  purpose_bar(planned, total, height);
  if (available > 0 && total > 0) {
    const float x = at.x + std::max(em(0.1f), width * static_cast<float>(static_cast<double>(available) / total));
    ImGui::GetWindowDrawList()->AddLine({x, at.y - em(0.15f)}, {x, at.y + height + em(0.15f)}, theme().text, std::max(1.0f, em(0.14f)));
  }
  const float column = std::max(em(11), width / 2), left = ImGui::GetCursorPosX();
  int shown = 0;
  for (const Purpose purpose : largest_first(planned)) {
    const PurposeLook look = look_of(purpose);
    if (shown % 2 == 1 && width >= 2 * em(11)) ImGui::SameLine(left + column);
    color_mark(look.color);
    text_dim(std::string(look.title) + " " + needed_text(planned[purpose]));
    if (++shown == 6) break;  // the rest is small
  }
}

// The remedy whose button was pressed; null = none.
const Remedy* buttons(const MemoryMisfit& misfit) {
  const Remedy* pressed = nullptr;
  for (const Remedy& remedy : misfit.remedies) {
    const std::string count = thousands(static_cast<double>(remedy.to));
    const std::string words = remedy.title + " " + count + " instead of " + thousands(static_cast<double>(remedy.from));
    const std::string needs = needed_text(remedy.bytes) + (remedy.fits ? ", fits" : ", still too much");
    const bool first = &remedy == misfit.remedies.data() && remedy.fits;
    const ButtonLook look{.icon = remedy.fits ? Icon::check : Icon::warning, .primary = first, .tooltip = "Sets this value in the form"};
    std::string label = words;
    if (button_width(label.c_str(), look) > ImGui::GetContentRegionAvail().x) label = remedy.title + " " + count;
    if (button((label + "###remedy:" + remedy.path).c_str(), look)) pressed = &remedy;
    beside_or_below(ImGui::CalcTextSize(needs.c_str()).x);
    ImGui::AlignTextToFramePadding();
    text_dim(needs);
  }
  return pressed;
}

// Buttons that retry at once; returns the choice.
std::optional<Retry> retry_buttons(int64_t batch, const char* no_half, bool offers_cpu) {
  std::optional<Retry> pressed;
  const std::string tip = "Starts again with batch size " + thousands(static_cast<double>(batch / 2));
  const ButtonLook half{.icon = Icon::play, .enabled = no_half == nullptr, .tooltip = tip.c_str(), .why_not = no_half};
  if (button("Halve batch and retry###retry-half", half)) pressed = Retry::half_batch;
  const ButtonLook cpu{.icon = Icon::play, .tooltip = "Starts again on the CPU, in the memory of this machine"};
  if (offers_cpu) {
    beside_or_below(button_width("Train on CPU", cpu));
    if (button("Train on CPU###retry-cpu", cpu)) pressed = Retry::on_cpu;
  }
  beside_or_below(button_width("Change settings", {}));
  return pressed;
}

}  // namespace

void draw_form_misfit(UiState& ui) {
  const std::shared_ptr<const MemoryMisfit> misfit = ui.form.misfit;
  if (!misfit) return;
  const Remedy* pressed = nullptr;
  if (begin_card("card-misfit", {0, 0}, ImGuiChildFlags_AutoResizeY)) {
    ImGui::PushStyleColor(ImGuiCol_Text, theme().bad);
    card_title("Does not fit into memory");
    ImGui::PopStyleColor();
    push_small();
    line("The run needs " + needed_text(misfit->planned.total()) + ", and " + needed_text(misfit->available) + " are free", theme().text);
    line(why_text(misfit->planned), theme().dim);
    breakdown(misfit->planned, misfit->available);
    ImGui::Dummy({0, em(0.1f)});
    line(hint_text(*misfit), theme().text);
    pressed = buttons(*misfit);
    ImGui::PopFont();
  }
  end_card();
  if (pressed) set_field(ui, pressed->path, std::to_string(pressed->to));
}

void draw_failed_misfit(UiState& ui) {
  const RunView& view = ui.shown();
  const Snapshot& s = *view.snapshot;
  NoRoom& room = ui.no_room;
  if (!room.finder)
    room.finder = std::make_unique<Background<RunConfig, std::shared_ptr<const MemoryMisfit>>>(
        [](const RunConfig& config) { return find_misfit(config); }, ui.wake);
  if (room.of != &view) {
    room.of = &view;
    room.number = room.finder->ask(view.config);
  }
  const auto answer = room.finder->latest();
  const bool looked = answer && answer->number == room.number;
  const std::shared_ptr<const MemoryMisfit> misfit = looked ? answer->answer : nullptr;
  const Remedy* pressed = nullptr;
  std::optional<Retry> retry;
  RunConfig config = view.config;
  const bool newest = ui.live && &ui.live->view() == &view;
  const bool stored = !newest && !s.run.empty() && !view.store.empty() && no_writing(ui).empty();
  if (begin_card("card-misfit", {0, 0}, ImGuiChildFlags_AutoResizeY)) {
    ImGui::PushStyleColor(ImGuiCol_Text, theme().bad);
    card_title("Out of memory");
    ImGui::PopStyleColor();
    line(s.message.empty() ? "The run did not fit into memory" : s.message, theme().text);
    push_small();
    if (!s.error_why.empty()) line(s.error_why, theme().dim);
    if (s.memory_planned.total() > 0) breakdown(s.memory_planned, misfit ? misfit->available : 0);
    ImGui::Dummy({0, em(0.1f)});
    if (misfit) {
      line(hint_text(*misfit), theme().text);
      pressed = buttons(*misfit);
    } else {
      line(!looked                ? "Looking for settings that fit"
           : s.error_hint.empty() ? "It would fit now: start again"
                                  : "Try: " + s.error_hint,
           theme().text);
    }
    if (newest)
      retry = retry_buttons(ui.last_start.config.train.batch, no_half_batch(ui), device_of_start(ui).starts_with("cuda"));
    else if (stored)
      retry =
          retry_buttons(config.train.batch, config.train.batch < 2 ? "The batch size is already 1" : nullptr, !s.device.starts_with("CPU"));
    if (button("Change settings###change-settings", {.tooltip = "Opens the form of a new run with these settings"}))
      open_form_with(ui, config);
    ImGui::PopFont();
  }
  end_card();
  if (retry && stored) return retry_run(ui, s.run, *retry, view.store);
  if (retry) return *retry == Retry::half_batch ? start_with_half_batch(ui) : start_on_cpu(ui);
  if (!pressed) return;
  try {
    set_config(config, {pressed->path + "=" + std::to_string(pressed->to)});
    open_form_with(ui, config);
  } catch (const std::exception& error) {
    toast(ui, Level::error, error.what());
  }
}

}  // namespace comera::studio
