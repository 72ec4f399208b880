#include "app/studio/panels.h"

namespace comera::studio {

// In the order of the menu, which is the order of the tabs.
std::span<const Panel> panels() {
  static constexpr Panel kPanels[] = {
      {"metrics", "Metrics", draw_metrics, Place::main},         {"ranks", "Ranks", draw_ranks, Place::below_left},
      {"memory", "Memory", draw_memory, Place::below_right},     {"log", "Log", draw_log, Place::below_right},
      {"controls", "Live controls", draw_controls, Place::side},
  };
  return kPanels;
}

}  // namespace comera::studio
