#include "app/studio/form/choice_help.h"

namespace comera::studio {

std::string about_choice(const std::string& path, const std::string& choice) {
  struct About {
    const char *path, *choice, *text;
  };
  constexpr About kAll[] = {
      {"method.comera.mode", "reference", "As in the published code: the rank penalty treats all entries alike."},
      {"method.comera.mode", "selective",
       "The rank penalty acts only on entries below the mean of their bond, each weighted by the size that its removal saves."},
      {"method.comera.mode", "paper", "As in the published formulas, with the weights gamma, beta, w1 and w2."},
      {"method.weights", "tt", "Tensor trains whose ranks are trained."},
      {"method.weights", "dense", "Dense matrices, for comparison."},
      {"method.stash", "exact", "Stores activations unchanged for backward."},
      {"method.stash", "bf16", "Stores activations in 16 bits: half the memory, rounding error of at most 0.4 %."},
      {"method.stash", "int8", "Stores activations as 8-bit codes: least memory, small error."},
      {"method.optimizer", "adamw", "Two moments per parameter."},
      {"method.optimizer", "adam8bit", "Two moments per parameter, 8 bits each."},
      {"method.optimizer", "galore", "Moments of a low-rank projection of each gradient."},
  };
  for (const About& about : kAll)
    if (path == about.path && choice == about.choice) return about.text;
  return "";
}

}  // namespace comera::studio
