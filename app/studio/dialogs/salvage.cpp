// Salvages a damaged database: copies readable rows into a new one, on a separate thread.
#include <algorithm>

#include "app/format.h"
#include "app/studio/actions.h"
#include "app/studio/dialogs.h"
#include "app/studio/parts/cards.h"
#include "app/studio/parts/icons.h"
#include "app/studio/parts/inputs.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/texts.h"
#include "app/studio/ui_state.h"

namespace comera::studio {
namespace {

SalvageAnswer salvage(const std::string& path) {
  SalvageAnswer answer;
  try {
    answer.saved = salvage_store(path);
  } catch (const Error& error) {
    answer.problem = std::string(error.what()) + (error.why().empty() ? "" : ": " + error.why());
  } catch (const std::exception& error) {
    answer.problem = error.what();
  }
  return answer;
}

std::string found_text(const Salvaged& saved) {
  return thousands(static_cast<double>(saved.runs)) + (saved.runs == 1 ? " run" : " runs") + " with " +
         thousands(static_cast<double>(saved.rows)) + " rows were read" +
         (saved.gaps.empty() ? "; no rows are missing." : ". Some rows are lost:");
}

}  // namespace

void draw_salvage(UiState& ui) {
  Dialogs& state = ui.dialogs;
  const std::string path = ui.store ? ui.store->path() : "";
  if (state.appearing) state.salvage_number = 0;
  const auto latest = state.salvager ? state.salvager->latest() : nullptr;
  const SalvageAnswer* answer = latest && state.salvage_number != 0 && latest->number == state.salvage_number ? &latest->answer : nullptr;
  ImGui::PushTextWrapPos(0);
  text_dim(path);
  if (state.salvage_number == 0) {
    ImGui::TextUnformatted(
        "Pages of this database are damaged, for example by a failing disk or a system crash. Salvaging copies all readable rows into a "
        "new database in the same folder. The damaged file is not changed; checkpoints stay in place.");
    text_dim("An earlier backup, if you have one, is more complete.");
  } else if (!answer) {
    ImGui::TextUnformatted("Reading all readable pages ...");
  } else if (!answer->problem.empty()) {
    banner(Level::error, answer->problem);
  } else {
    const Salvaged& saved = answer->saved;
    banner(saved.gaps.empty() ? Level::good : Level::warning, found_text(saved));
    constexpr size_t kMost = 6;
    for (size_t i = 0; i < std::min(saved.gaps.size(), kMost); ++i) text_dim(saved.gaps[i]);
    if (saved.gaps.size() > kMost) text_dim("and " + std::to_string(saved.gaps.size() - kMost) + " more");
    text_dim("in " + saved.path);
  }
  ImGui::PopTextWrapPos();
  ImGui::Dummy({0, em(0.3f)});
  const bool done = answer && answer->problem.empty();
  if (done) {
    if (button("Open the copy", {.icon = Icon::chart, .primary = true})) {
      close_dialog(ui);
      return open_store(ui, answer->saved.path);
    }
  } else if (button("Salvage into a copy", {.icon = Icon::save,
                                            .primary = true,
                                            .enabled = (state.salvage_number == 0 || answer) && !path.empty(),
                                            .why_not = "Still reading"})) {
    if (!state.salvager) state.salvager = std::make_unique<Background<std::string, SalvageAnswer>>(salvage, ui.wake);
    state.salvage_number = state.salvager->ask(path);
  }
  ImGui::SameLine();
  if (button("Close###close-salvage")) close_dialog(ui);
}

}  // namespace comera::studio
