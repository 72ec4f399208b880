// The optimizers: the settings of each, and what menus and checks have to know of it. Free of layer types, so that configs and forms can
// be had without the training core, where the rule of each is (core/optim).
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/fields.h"

namespace comera {

class Optimizer;
struct OptimizerSettings;

struct OptimizerInfo {
  Choice choice;                // of method.optimizer
  const char* group = nullptr;  // name of its settings, where it is not the id
  std::vector<When> used = {};  // other choices that use its settings
  bool adam = false;            // betas and eps are those of method.adam
  double eps = 1e-8;            // that Adam was published with here
  bool by_rows = false;         // can step some rows of a table alone: its states have a row for each
  const char* update = "after";
  const char* weight_format = "full";
};

struct AdamConfig {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool decay_vectors = true;  // weight decay also of biases and norms
  OptimizerInfo info() const;
  void fields(FieldVisitor& v);
  std::unique_ptr<Optimizer> make(const OptimizerSettings& all) const;
};
struct Adam8bitConfig {
  int64_t min_size = 4096;  // smaller tensors keep plain moments: they gain nothing and lose accuracy (bitsandbytes)
  bool embeddings = false;  // false: tables keep plain moments
  bool floor = true;        // false: small second moments become 0, as published (METHODS.md 13)
  OptimizerInfo info() const;
  void fields(FieldVisitor& v);
  std::unique_ptr<Optimizer> make(const OptimizerSettings& all) const;
};
struct GaloreConfig {
  int64_t rank = 128, gap = 200;
  double scale = 0.25;
  std::string rule = "adam";               // adam | adam8bit | adafactor: the rule inside, with the settings of its own group
  std::string side = "shorter";            // shorter | longer | left | right | both
  std::string refresh = "staggered";       // staggered | together
  std::string sums = "full";               // full | projected: of gradients over micro-batches
  std::string decomposition = "subspace";  // exact | subspace: how projections are computed
  int64_t passes = 1;                      // of subspace iteration
  OptimizerInfo info() const;
  void fields(FieldVisitor& v);
  std::unique_ptr<Optimizer> make(const OptimizerSettings& all) const;
};
struct QGaloreConfig {
  int64_t rank = 128, gap = 200;
  double scale = 0.25;
  bool lazy = true;  // refreshes of a projection that moves little become rarer
  double threshold = 0.4;
  std::string refresh = "staggered";       // staggered | together
  std::string decomposition = "subspace";  // as GaLore's
  int64_t passes = 1;
  OptimizerInfo info() const;
  void fields(FieldVisitor& v);
  std::unique_ptr<Optimizer> make(const OptimizerSettings& all) const;
};
struct CoapConfig {
  int64_t rank = 128;
  double rank_ratio = 0;              // above 0: rank = shorter side / ratio
  int64_t gap = 32, reset_every = 5;  // steps between refreshes; refreshes from one reset to the next
  double scale = 1;
  std::string rule = "adam";  // adam | adam8bit | adafactor | adafactor8bit: as GaLore's
  bool restore = false, normalised = false;
  std::string refresh = "staggered";    // staggered | together
  std::string sums = "full";            // as GaLore's
  std::string convolutions = "tucker";  // tucker | matrix
  OptimizerInfo info() const;
  void fields(FieldVisitor& v);
  std::unique_ptr<Optimizer> make(const OptimizerSettings& all) const;
};
struct GrassConfig {
  int64_t rank = 128, gap = 200;
  std::string selection = "top";  // top | norm | norm2 | uniform
  bool replacement = true;        // of draws
  double scale = 0.25;
  int64_t warmup = 0;  // steps behind each refresh but the first
  OptimizerInfo info() const;
  void fields(FieldVisitor& v);
  std::unique_ptr<Optimizer> make(const OptimizerSettings& all) const;
};
struct ApolloConfig {
  int64_t rank = 128, gap = 200;
  std::string scaling = "channel";  // channel | tensor
  double alpha = 1, growth = 1.01;  // update times sqrt(alpha); largest growth of its norm from step to step
  bool alpha_first = false;         // growth is looked at behind alpha
  OptimizerInfo info() const;
  void fields(FieldVisitor& v);
  std::unique_ptr<Optimizer> make(const OptimizerSettings& all) const;
};
struct FloraConfig {  // with the settings of Adafactor, but for its first moment
  int64_t rank = 128, gap = 1000;
  double beta1 = 0.9;                    // 0: no momentum
  std::string momentum_format = "full";  // full | int8, with the settings of 8-bit Adam
  std::string sums = "full";             // full | projected: of gradients over micro-batches
  OptimizerInfo info() const;
  void fields(FieldVisitor& v);
  std::unique_ptr<Optimizer> make(const OptimizerSettings& all) const;
};
struct AdafactorConfig {
  double beta1 = 0, decay_exponent = 0.8, clip = 1, eps = 1e-30;
  bool scale_parameter = false;  // so that rates mean what they do for AdamW
  double least_rms = 1e-3;
  bool relative_step = false, warmup_init = false;
  OptimizerInfo info() const;
  void fields(FieldVisitor& v);
  std::unique_ptr<Optimizer> make(const OptimizerSettings& all) const;
};
struct AdalomoConfig {
  double clip = 1, least_rms = 1e-3;
  OptimizerInfo info() const;
  void fields(FieldVisitor& v);
  std::unique_ptr<Optimizer> make(const OptimizerSettings& all) const;
};
struct LomoConfig {
  double clip_value = 0;  // largest absolute value of an entry of a gradient; 0: no limit
  OptimizerInfo info() const;
  void fields(FieldVisitor& v);
  std::unique_ptr<Optimizer> make(const OptimizerSettings& all) const;
};
struct AdagradConfig {
  double eps = 1e-10;   // added to the root of the sum
  bool rowwise = true;  // tables keep one sum for each row
  OptimizerInfo info() const;
  void fields(FieldVisitor& v);
  std::unique_ptr<Optimizer> make(const OptimizerSettings& all) const;
};
struct CameConfig {
  double beta1 = 0.9, beta2 = 0.999, beta3 = 0.9999, clip = 1;
  double eps = 1e-30, residual_eps = 1e-16;  // of squares
  bool correct_residual = false;
  OptimizerInfo info() const;
  void fields(FieldVisitor& v);
  std::unique_ptr<Optimizer> make(const OptimizerSettings& all) const;
};

// Which optimizer a run has, and the settings of all.
struct OptimizerSettings {
  std::string optimizer = "adamw";
  std::string update = "after";  // after | backward
  AdamConfig adam = {};          // its decay is that of every optimizer
  Adam8bitConfig adam8bit = {};
  GaloreConfig galore = {};
  QGaloreConfig q_galore = {};
  CoapConfig coap = {};
  GrassConfig grass = {};
  ApolloConfig apollo = {};
  FloraConfig flora = {};
  AdafactorConfig adafactor = {};
  AdalomoConfig adalomo = {};
  LomoConfig lomo = {};
  AdagradConfig adagrad = {};
  CameConfig came = {};

  // f(settings) for each, in the order of menus.
  static void each(auto& all, auto&& f) {
    f(all.adam);
    f(all.adam8bit);
    f(all.galore);
    f(all.q_galore);
    f(all.coap);
    f(all.grass);
    f(all.apollo);
    f(all.flora);
    f(all.adafactor);
    f(all.adalomo);
    f(all.lomo);
    f(all.adagrad);
    f(all.came);
  }

  void fields(FieldVisitor& v);
  std::string inner_rule() const;                            // of an optimizer that is around another one: its setting `rule`; else ""
  OptimizerInfo chosen() const;                              // of `optimizer`; an empty one where there is none of that name
  double weight_decay() const { return adam.weight_decay; }  // this and the next: of every optimizer
  bool decay_vectors() const { return adam.decay_vectors; }
};

}  // namespace comera
