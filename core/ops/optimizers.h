// Steps of optimizers, and 8-bit moments.
#pragma once
#include "core/base/hd.h"
#include "core/ops/op.h"
#include "core/ops/quant_math.h"

namespace comera {

// Adam's three published flavours (METHODS.md 0.2).
enum class AdamFlavour : int { torch, huggingface, bitsandbytes };
// Moments that begin at 0 again at steps 1 + every, 1 + 2 every, ...: steps are counted from there. In the first `warmup` of them updates
// grow to their length.
struct AdamRestarts {
  int64_t every = 0, warmup = 0;  // 0: never
};
struct AdamRule {
  AdamFlavour flavour = AdamFlavour::torch;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  AdamRestarts restarts = {};
};

// What Adam steps: a parameter, its gradient, its moments, all of one count.
struct AdamTensors {
  Tensor w, g, m, v;
  ParamGroup group = ParamGroup::rest;
  static void tensors(auto& p, auto& see) {
    see.inout(p.w, p.m, p.v);
    see.in(p.g);
  }
};
// The same with 8-bit moments in blocks of 256 (METHODS.md 13): m8, v8 u8 of w's count; absmax_m, absmax_v
// (ceil(count/256)) f32.
struct Adam8bitTensors {
  Tensor w, g, m8, v8, absmax_m, absmax_v;
  ParamGroup group = ParamGroup::rest;
  static void tensors(auto& p, auto& see) {
    see.inout(p.w, p.m8, p.v8, p.absmax_m, p.absmax_v);
    see.in(p.g);
  }
};

// What plain gradient descent steps: a parameter and its gradient, of one count.
struct SgdTensors {
  Tensor w, g;
  ParamGroup group = ParamGroup::rest;
  static void tensors(auto& p, auto& see) {
    see.inout(p.w);
    see.in(p.g);
  }
};
// One element of it (METHODS.md 9.1). An entry that is not a number passes the limit.
template <class T>
struct SgdMath {
  T rate, keep, limit;
  HD T apply(T w, T g) const { return keep * w - rate * (g > limit ? limit : g < -limit ? -limit : g); }
};
template <class T>
HD SgdMath<T> sgd_math(double limit, ParamGroup group, const StepScalars& step) {
  const double rate = rate_of(step, group);
  return {.rate = static_cast<T>(rate), .keep = static_cast<T>(1 - rate * decay_of(step, group)), .limit = static_cast<T>(limit)};
}

// What Adagrad steps: a parameter, its gradient and the sums of its squares, of one count.
struct AdagradTensors {
  Tensor w, g, sum;
  ParamGroup group = ParamGroup::rest;
  static void tensors(auto& p, auto& see) {
    see.inout(p.w, p.sum);
    see.in(p.g);
  }
};

// Decay of second moments: beta = 1 - t^-exponent at step t (METHODS.md 0.3); exponent 0: the constant `beta` (METHODS.md 10).
struct MomentDecay {
  double exponent = 0, beta = 0;
  bool corrected = false;  // of a constant beta: gives the moments divided by 1 - beta^t
};

// Adafactor's step, once u is there (METHODS.md 0.3).
struct AdafactorRule {
  double beta1 = 0;         // 0: no first moment
  double clip = 1;          // largest rms of u; infinite: no clipping
  double least_rms = 1e-3;  // of w, where it scales the step
  bool scale_parameter = true, relative_step = false, warmup_init = false;
};

// APOLLO's step (METHODS.md 6): one scale for each row or column of a gradient, or for all of it.
enum class Channels : int { rows, columns, all };
struct ApolloRule {
  Channels channels = Channels::rows;
  double alpha = 1, growth = 1.01;  // update times sqrt(alpha); largest growth of its norm
  bool alpha_first = false;         // in the norm that is limited
};

namespace op {

// One step of every parameter of a list, whose float tensors are all of one dtype: one kernel for hundreds of small
// tensors. Learning rates of their groups, decay and bias corrections from the step block.
struct Adam {
  static constexpr const char* name = "adam";
  Items<AdamTensors> all;
  AdamRule rule = {};
  Tensor step;
  static void tensors(auto& a, auto& see) {
    see.items(a.all);
    see.step(a.step);
  }
  void check() const;
};
// The same moments, but only the update (added to w it is the step, without decay) goes to u.
struct AdamUpdate {
  static constexpr const char* name = "adam_update";
  Tensor u, g, m, v;
  AdamRule rule = {};
  ParamGroup group = ParamGroup::rest;
  Tensor step;
  static void tensors(auto& a, auto& see) {
    see.out(a.u);
    see.inout(a.m, a.v);
    see.in(a.g);
    see.step(a.step);
  }
  void check() const;
};
struct WeightDecay {  // w *= 1 - learning rate * decay
  static constexpr const char* name = "weight_decay";
  Tensor w;
  ParamGroup group = ParamGroup::rest;
  Tensor step;
  static void tensors(auto& a, auto& see) {
    see.inout(a.w);
    see.step(a.step);
  }
  void check() const;
};
// Updates the moments m, v of r (p, q), a projected gradient; scale (p), (q) or (1) = ||u|| / ||r|| of each channel, with
// u = m / (sqrt(v) + eps).
struct ApolloScales {
  static constexpr const char* name = "apollo_scales";
  Tensor scale, r, m, v;
  AdamRule rule = {};
  Channels channels = Channels::rows;
  static void tensors(auto& a, auto& see) {
    see.out(a.scale);
    see.inout(a.m, a.v);
    see.in(a.r);
  }
  void check() const;
};
// w -= Adam's step size times d, then weight decay. d is g (p, q) times the scale of each channel, limited to `growth` times `norm`, the
// norm of the step before (0: no limit). `norm` becomes the norm of d.
struct ApolloStep {
  static constexpr const char* name = "apollo_step";
  Tensor w, norm, g, scale;  // norm: one number
  AdamRule adam = {};
  ApolloRule rule = {};
  ParamGroup group = ParamGroup::rest;
  Tensor step;
  static void tensors(auto& a, auto& see) {
    see.inout(a.w, a.norm);
    see.in(a.g, a.scale);
    see.step(a.step);
  }
  void check() const;
};
struct Adam8bit {
  static constexpr const char* name = "adam8bit";
  Items<Adam8bitTensors> all;
  AdamRule rule = {};
  Tensor step;
  NeverZero second = NeverZero::none;  // positive: a second moment above 0 never gets the code of 0
  static void tensors(auto& a, auto& see) {
    see.items(a.all);
    see.step(a.step);
  }
  void check() const;
};
// Plain gradient descent, w = (1 - learning rate * decay) w - learning rate * g, of every parameter of a list, whose float tensors are
// all of one dtype. Entries of g are limited to [-limit, limit]; infinite: no limit.
struct Sgd {
  static constexpr const char* name = "sgd";
  Items<SgdTensors> all;
  double limit = 0;
  Tensor step;
  static void tensors(auto& a, auto& see) {
    see.items(a.all);
    see.step(a.step);
  }
  void check() const;
};
// Adagrad of every parameter of a list, whose float tensors are all of one dtype (METHODS.md 9.2): sum += g^2,
// w = (1 - learning rate * decay) w - learning rate * g / (sqrt(sum) + eps).
struct Adagrad {
  static constexpr const char* name = "adagrad";
  Items<AdagradTensors> all;
  double eps = 0;
  Tensor step;
  static void tensors(auto& a, auto& see) {
    see.items(a.all);
    see.step(a.step);
  }
  void check() const;
};
// The same of a table w (V, D) with one sum for each row: sum (V) += mean over the row of g^2.
struct AdagradRows {
  static constexpr const char* name = "adagrad_rows";
  Tensor w, g, sum;
  double eps = 0;
  ParamGroup group = ParamGroup::rest;
  Tensor step;
  static void tensors(auto& a, auto& see) {
    see.inout(a.w, a.sum);
    see.in(a.g);
    see.step(a.step);
  }
  void check() const;
};
// Second moments of the rows and columns of g (p, q): row (p) and column (q) move to the means of g^2 + eps. `column` empty: row
// is of g's count, a second moment an element.
struct FactoredMoments {
  static constexpr const char* name = "factored_moments";
  Tensor row, column, g;
  MomentDecay decay = {};
  double eps = 0;
  Tensor step;
  static void tensors(auto& a, auto& see) {
    see.inout(a.row, a.column);
    see.in(a.g);
    see.step(a.step);
  }
  void check() const;
};
// u = g / sqrt(row / mean(row) * column), or g / sqrt(row). Moments must not be 0.
struct FactoredUpdate {
  static constexpr const char* name = "factored_update";
  Tensor u, g, row, column;
  static void tensors(auto& a, auto& see) {
    see.out(a.u);
    see.in(a.g, a.row, a.column);
  }
  void check() const;
};
// CAME's first moment: u is clipped at the rms `clip`, m (of u's count) moves towards it, and u becomes the residual u - m.
struct ClippedMoment {
  static constexpr const char* name = "clipped_moment";
  Tensor u, m;
  double beta = 0, clip = 1;
  static void tensors(auto& a, auto& see) { see.inout(a.u, a.m); }
  void check() const;
};
// Adafactor's step: u is clipped, becomes the amount to add to w (through m, where there is one, of u's count), and w decays. w may have
// another count than u.
struct AdafactorUpdate {
  static constexpr const char* name = "adafactor_update";
  Tensor u, w, m;
  AdafactorRule rule = {};
  ParamGroup group = ParamGroup::rest;
  Tensor step;
  static void tensors(auto& a, auto& see) {
    see.inout(a.u, a.w, a.m);
    see.step(a.step);
  }
  void check() const;
};
// Flora's momentum (METHODS.md 5). If the next step has the same projection: u *= 1 - beta1, c *= beta1. In the last step before a new
// one, which is read from the step block: u = sum, which contains the history, and c = 0. c is u (p, q) projected to (p, r) or (r, q).
struct FloraHistory {
  static constexpr const char* name = "flora_history";
  Tensor u, c, sum;
  double beta1 = 0;
  int64_t gap = 1;
  Tensor step;
  static void tensors(auto& a, auto& see) {
    see.inout(a.u, a.c);
    see.in(a.sum);
    see.step(a.step);
  }
  void check() const;
};
// x = the stored moment in plain numbers and back: when ranks are cut, and in tests. is_signed: m's map, else v's.
struct Dequantise8bit {
  static constexpr const char* name = "dequantise8bit";
  Tensor x, codes, absmax;
  bool is_signed = false;
  static void tensors(auto& a, auto& see) {
    see.out(a.x);
    see.in(a.codes, a.absmax);
  }
  void check() const;
};
struct Quantise8bit {
  static constexpr const char* name = "quantise8bit";
  Tensor codes, absmax, x;
  bool is_signed = false;
  NeverZero never = NeverZero::none;
  static void tensors(auto& a, auto& see) {
    see.out(a.codes, a.absmax);
    see.in(a.x);
  }
  void check() const;
};

}  // namespace op

// clang-format off
#define COMERA_OPTIMIZER_OPS(OP)                                                              \
  OP(Adam) OP(AdamUpdate) OP(WeightDecay) OP(ApolloScales) OP(ApolloStep) OP(Adam8bit)        \
  OP(FactoredMoments) OP(FactoredUpdate) OP(ClippedMoment) OP(AdafactorUpdate)                \
  OP(FloraHistory) OP(Sgd) OP(Adagrad) OP(AdagradRows) OP(Dequantise8bit) OP(Quantise8bit)
// clang-format on

}  // namespace comera
