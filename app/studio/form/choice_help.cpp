#include "app/studio/form/choice_help.h"

namespace comera::studio {

std::string about_choice(const std::string& path, const std::string& choice) {
  struct About {
    const char *path, *choice, *text;
  };
  constexpr About kAll[] = {
      {"method.comera.mode", "reference", "As the published code: every rank entry is pushed alike."},
      {"method.comera.mode", "selective",
       "Only entries below the mean of their bond are pushed, each by what the network would save without it; the others keep the scale."},
      {"method.comera.mode", "paper", "As the published formulas, with the weights gamma, beta, w1 and w2."},
      {"method.weights", "tt", "Tensor trains whose ranks are trained."},
      {"method.weights", "dense", "Plain matrices, to compare with."},
      {"method.stash", "exact", "Backward keeps activations as they are."},
      {"method.stash", "bf16", "Backward keeps activations in 16 bits: half the memory, a rounding of 0.4 % at most."},
      {"method.stash", "int8", "Backward keeps 8-bit codes of activations: less memory, a small error."},
      {"method.optimizer", "adamw", "Two moments a value."},
      {"method.optimizer", "adam8bit", "Two moments a value, in 8 bits each."},
      {"method.optimizer", "galore", "Moments of a low-rank projection of each gradient."},
  };
  for (const About& about : kAll)
    if (path == about.path && choice == about.choice) return about.text;
  return "";
}

}  // namespace comera::studio
