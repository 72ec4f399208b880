// Settings of the optimizers, free of layer types, so that configs and forms can be had without the training core.
#pragma once
#include <cstdint>
#include <string>

#include "core/base/fields.h"

namespace comera {

struct AdamConfig {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  void fields(FieldVisitor& v);
};
struct Adam8bitConfig {
  int64_t min_size = 4096;  // smaller tensors keep plain moments: they gain nothing and lose accuracy (bitsandbytes)
  bool embeddings = false;  // false: tables keep plain moments
  void fields(FieldVisitor& v);
};
struct GaloreConfig {
  int64_t rank = 128, gap = 200;
  double scale = 0.25;
  std::string rule = "adam";          // adam | adam8bit | adafactor: the rule inside, with the settings of its own group
  std::string side = "shorter";       // shorter | longer | left | right | both
  std::string refresh = "staggered";  // staggered | together
  void fields(FieldVisitor& v);
};
struct CoapConfig {
  int64_t rank = 128;
  double rank_ratio = 0;              // above 0: rank = shorter side / ratio
  int64_t gap = 32, reset_every = 5;  // steps between refreshes; refreshes from one reset to the next
  double scale = 1;
  std::string rule = "adam";  // adam | adam8bit | adafactor | adafactor8bit: as GaLore's
  bool restore = false, normalised = false;
  std::string refresh = "staggered";  // staggered | together
  void fields(FieldVisitor& v);
};
struct ApolloConfig {
  int64_t rank = 128, gap = 200;
  std::string scaling = "channel";  // channel | tensor
  double alpha = 1, growth = 1.01;  // update times sqrt(alpha); largest growth of its norm from step to step
  bool alpha_first = false;         // growth is looked at behind alpha
  void fields(FieldVisitor& v);
};
struct FloraConfig {  // with the settings of Adafactor, but for its first moment
  int64_t rank = 128, gap = 1000;
  double beta1 = 0.9;  // 0: no momentum
  void fields(FieldVisitor& v);
};
struct AdafactorConfig {
  double beta1 = 0, decay_exponent = 0.8, clip = 1, eps = 1e-30;
  bool scale_parameter = false;  // so that rates mean what they do for AdamW
  double least_rms = 1e-3;
  bool relative_step = false, warmup_init = false;
  void fields(FieldVisitor& v);
};
struct AdalomoConfig {
  double clip = 1, least_rms = 1e-3;
  void fields(FieldVisitor& v);
};
struct CameConfig {
  double beta1 = 0.9, beta2 = 0.999, beta3 = 0.9999, clip = 1;
  double eps = 1e-30, residual_eps = 1e-16;  // of squares
  bool correct_residual = false;
  void fields(FieldVisitor& v);
};

}  // namespace comera
