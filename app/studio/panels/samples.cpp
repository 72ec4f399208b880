// Texts that the language model of the shown run writes, one for each checkpoint, so that one can read what it has learned.
#include "app/studio/shown_run/samples.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "app/format.h"
#include "app/studio/form/new_run.h"
#include "app/studio/panels.h"
#include "app/studio/parts/cards.h"
#include "app/studio/parts/icons.h"
#include "app/studio/parts/inputs.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/texts.h"

namespace comera::studio {
namespace {

// A line break as \n, so that a prompt is one line of input.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '\n' ? "\\n" : std::string(1, c);
  return out;
}

std::string unescaped(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool line_break = text[i] == '\\' && i + 1 < text.size() && text[i + 1] == 'n';
    out += line_break ? '\n' : text[i];
    i += line_break;
  }
  return out;
}

// True when the text is to be written again.
bool toolbar(SamplesView& samples) {
  char prompt[400];
  if (!samples.editing) samples.typed = escaped(samples.prompt);
  std::snprintf(prompt, sizeof prompt, "%s", samples.typed.c_str());
  const ButtonLook look{
      .enabled = samples.number == 0, .tooltip = "Writes another text from the last checkpoint", .why_not = "A text is being written"};
  ImGui::SetNextItemWidth(
      std::max(em(8), ImGui::GetContentRegionAvail().x - em(10) - button_width("Write", look) - 2 * ImGui::GetStyle().ItemSpacing.x));
  if (ImGui::InputTextWithHint("##prompt", "Prompt; \\n is a line break", prompt, sizeof prompt)) samples.typed = prompt;
  samples.editing = ImGui::IsItemActive();
  if (ImGui::IsItemDeactivatedAfterEdit()) samples.prompt = unescaped(samples.typed);
  name_item("prompt");
  tooltip("The text that the model continues. \\n is a line break.");
  ImGui::SameLine();
  ImGui::SetNextItemWidth(em(10));
  auto temperature = static_cast<float>(samples.temperature);
  if (ImGui::SliderFloat("##temperature", &temperature, 0, 2, "temperature %.2f") && std::isfinite(temperature))
    samples.temperature = temperature;
  name_item("temperature");
  tooltip("Logits are divided by it; 0: always the most likely token.");
  ImGui::SameLine();
  return button("Write###write-sample", look);
}

void draw_sample(const Sample& sample) {
  text_dim("step " + thousands(static_cast<double>(sample.question.step)));
  if (!sample.problem.empty()) {
    banner(Level::warning, sample.problem);
    return;
  }
  ImGui::PushTextWrapPos(0);
  ImGui::PushStyleColor(ImGuiCol_Text, theme().dim);
  if (!sample.question.prompt.empty() && sample.question.prompt != "\n") ImGui::TextUnformatted(sample.question.prompt.c_str());
  ImGui::PopStyleColor();
  ImGui::TextUnformatted(sample.text.c_str());
  ImGui::PopTextWrapPos();
  name_item("sample:" + std::to_string(sample.question.step));
  copy_menu({{"Copy text", sample.question.prompt + sample.text}});
}

}  // namespace

void draw_samples(UiState& ui) {
  if (!begin_card("samples-card")) return end_card();
  card_title("Samples", "Texts that the model writes behind the prompt, one for each checkpoint, while this panel is open");
  SamplesView& samples = ui.samples;
  if (!writes_text(ui)) {
    if (empty_state(Icon::none, "No text", "A model that predicts the next token (task language) writes samples here while it trains.",
                    "New language model", Icon::plus))
      open_form(ui, "llama-10m");
    return end_card();
  }
  const bool again = toolbar(samples);
  tick_samples(ui, again);
  ImGui::BeginChild("samples", {0, 0});
  if (samples.number != 0) text_dim("Writing from the checkpoint of step " + thousands(static_cast<double>(samples.asked.step)) + " ...");
  for (auto sample = samples.written.rbegin(); sample != samples.written.rend(); ++sample) {
    ImGui::PushID(static_cast<int>(sample - samples.written.rbegin()));
    draw_sample(*sample);
    ImGui::PopID();
    ImGui::Spacing();
  }
  if (samples.written.empty() && samples.number == 0)
    empty_state(Icon::none, "No checkpoint yet", "The first text appears with the first checkpoint (Ctrl+S writes one now).");
  ImGui::EndChild();
  end_card();
}

}  // namespace comera::studio
