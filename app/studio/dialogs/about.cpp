// Program, machine and licences; the facts can be copied into a report.
#include <imgui.h>
#include <implot.h>

#include <algorithm>
#include <thread>

#include "app/format.h"
#include "app/studio/actions.h"
#include "app/studio/dialogs.h"
#include "app/studio/parts/cards.h"
#include "app/studio/parts/inputs.h"
#include "app/studio/parts/texts.h"
#include "app/studio/ui_state.h"
#include "core/config/config.h"
#include "core/ops/device.h"
#include "core/session/version.h"
#include "core/train/forecast.h"

// The text of LICENSE; see cmake/window.cmake.
extern "C" {
extern const char comera_license_begin[], comera_license_end[];
}

namespace comera::studio {
namespace {

// Runs on a separate thread: querying the GPU driver takes long.
Facts look_around(const int&) {
  const CudaStatus cuda = cuda_status();
  const int64_t memory = available_memory();
  return {
      {"CoMERA Studio", version_number()},
      {"commit", version_commit()},
      {"Dear ImGui", IMGUI_VERSION},
      {"ImPlot", IMPLOT_VERSION},
#ifdef __clang__
      {"compiler", __VERSION__},
#else
      {"compiler", "GCC " __VERSION__},
#endif
      {"CUDA", !cuda.built            ? "not built in: " + cuda.reason
               : cuda.devices.empty() ? "built in (" + cuda.toolkit + "), no device: " + cuda.reason
                                      : "built in (" + cuda.toolkit + "), " + cuda.devices.front()},
      {"BLAS", blas_name()},
      {"threads", std::to_string(std::thread::hardware_concurrency())},
      {"free memory", mebibytes(static_cast<double>(memory))},
      {"assets", assets_folder()},
  };
}

Facts facts_of(const UiState& ui) {
  Facts all;
  if (const auto answer = ui.dialogs.facts ? ui.dialogs.facts->latest() : nullptr) all = answer->answer;
  if (all.empty()) return all;
  all.push_back({"graphics", ui.renderer.empty() ? "none" : ui.renderer});
  all.push_back({"scale", "monitor " + significant(ui.settings.monitor_scale, 3) + ", text " + significant(ui.settings.user_scale, 3)});
  all.push_back({"store", ui.store ? ui.store->path() : "none"});
  return all;
}

}  // namespace

void draw_about(UiState& ui) {
  Dialogs& state = ui.dialogs;
  if (!state.facts) {
    state.facts = std::make_unique<Background<int, Facts>>(look_around, ui.wake);
    state.facts->ask(0);
  }
  const Facts all = facts_of(ui);
  text_dim("Trains networks as tensor trains with trainable ranks.");
  ImGui::Dummy({0, em(0.2f)});
  ImGui::PushStyleVar(ImGuiStyleVar_CellPadding, ImVec2(em(0.3f), em(0.1f)));
  const bool table = ImGui::BeginTable("facts", 2, ImGuiTableFlags_SizingFixedFit);
  ImGui::PopStyleVar();
  if (table) {
    ImGui::TableSetupColumn("name", 0, em(9));
    ImGui::TableSetupColumn("value", ImGuiTableColumnFlags_WidthStretch);
    for (const auto& [what, value] : all) {
      ImGui::TableNextRow();
      ImGui::TableNextColumn();
      text_dim(what);
      ImGui::TableNextColumn();
      ImGui::PushTextWrapPos(0);
      ImGui::TextUnformatted(value.c_str());
      ImGui::PopTextWrapPos();
    }
    ImGui::EndTable();
  }
  if (all.empty()) text_dim("Reading system information ...");
  if (button("Copy diagnostics", {.enabled = !all.empty(), .tooltip = "Copies this page as text, for a bug report"})) {
    std::string text;
    for (const auto& [what, value] : all) text += what + ": " + value + "\n";
    ImGui::SetClipboardText(text.c_str());
    toast(ui, Level::good, "Diagnostics copied");
  }
  ImGui::Dummy({0, em(0.2f)});
  if (begin_card("licence")) {
    ImGui::PushFont(fonts().numbers, ImGui::GetStyle().FontSizeBase * 0.8f);
    ImGui::PushTextWrapPos(0);
    ImGui::TextUnformatted(comera_license_begin, comera_license_end);
    ImGui::PopTextWrapPos();
    ImGui::PopFont();
  }
  end_card();
}

}  // namespace comera::studio
