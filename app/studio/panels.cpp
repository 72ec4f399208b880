#include "app/studio/panels.h"

#include "app/studio/form/forecast_chart.h"
#include "app/studio/runs/run_list_chart.h"

namespace comera::studio {

// In the order of the menu and of the tabs.
std::span<const Panel> panels() {
  static constexpr Panel kPanels[] = {
      {"metrics", "Metrics", draw_metrics, Place::main, metrics_charts},
      {"tt", "Tensor trains", draw_tt, Place::main, tt_charts},
      {"profile", "Profile", draw_profile, Place::main, profile_charts},
      {"samples", "Samples", draw_samples, Place::main},
      {"compare", "Compare", draw_compare, Place::main, compare_charts, false},
      {"ranks", "Ranks", draw_ranks, Place::below_left, ranks_charts},
      {"memory", "Memory", draw_memory, Place::below_right, memory_charts},
      {"log", "Log", draw_log, Place::below_end},
      {"controls", "Live controls", draw_controls, Place::side},
  };
  return kPanels;
}

std::span<const Panel> pages() {
  static constexpr Panel kPages[] = {
      {"runs", "Runs", nullptr, Place::main, run_list_charts, false},
      {"form", "New run", nullptr, Place::main, forecast_charts, false},
  };
  return kPages;
}

std::string window_name(const Panel& panel) { return std::string(panel.title) + "###" + panel.id; }

}  // namespace comera::studio
