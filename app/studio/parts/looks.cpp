#include "app/studio/parts/looks.h"

#include <algorithm>
#include <cstring>

#include "app/format.h"
#include "app/studio/parts/icons.h"
#include "app/studio/parts/texts.h"
#include "app/studio/theme.h"

namespace comera::studio {

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

}  // namespace comera::studio
