#include "core/ops/optimizers.h"

#include <algorithm>

#include "core/base/rounding.h"
#include "core/ops/check.h"
#include "core/ops/quant_math.h"

namespace comera::op {

using namespace ops_check;

namespace {

void check_adam(const char* op, const Tensor& w, const Tensor& g, const Tensor& m, const Tensor& v, ParamGroup group, const Tensor& step) {
  check_float(op, "w", w);
  check_count(op, "g", g, w.count(), w.dtype());
  check_count(op, "m", m, w.count(), w.dtype());
  check_count(op, "v", v, w.count(), w.dtype());
  check_group(op, group);
  check_step(op, step);
}

void check_scale(const char* op, const Tensor& scale, const Tensor& x, Channels channels) {
  check_float(op, "the gradient", x, 2);
  CHECK(channels == Channels::rows || channels == Channels::columns || channels == Channels::all,
        op << ": channels " << static_cast<int>(channels));
  check_count(op, "scale", scale, channels == Channels::all ? 1 : x.size(channels == Channels::rows ? 0 : 1), x.dtype());
}

void check_codes(const char* op, const Tensor& x, const Tensor& codes, const Tensor& absmax) {
  check_float(op, "x", x);
  check_count(op, "codes", codes, x.count(), DType::u8);
  check_shape(op, "absmax", absmax, {ceil_div(x.count(), kQuantBlock)}, DType::f32);
}

void check_factored(const char* op, const Tensor& row, const Tensor& column, const Tensor& g) {
  check_float(op, "g", g);
  CHECK(row && row.count() > 0, op << ": row is " << text(row));
  if (column) check_count(op, "column", column, g.count() / row.count(), g.dtype());
  check_count(op, "row", row, column ? g.count() / std::max<int64_t>(1, column.count()) : g.count(), g.dtype());
}

}  // namespace

void Adam::check() const {
  for (const AdamTensors& p : all) {
    check_adam(name, p.w, p.g, p.m, p.v, p.group, step);
    check_same_type(name, "w", p.w, all[0].w);
  }
}

void AdamUpdate::check() const { check_adam(name, u, g, m, v, group, step); }

void WeightDecay::check() const {
  check_float(name, "w", w);
  check_group(name, group);
  check_step(name, step);
}

void ApolloScales::check() const {
  check_scale(name, scale, r, channels);
  check_shape(name, "m", m, r.shape(), r.dtype());
  check_shape(name, "v", v, r.shape(), r.dtype());
}

void ApolloStep::check() const {
  check_scale(name, scale, g, rule.channels);
  check_shape(name, "w", w, g.shape(), g.dtype());
  check_count(name, "norm", norm, 1, g.dtype());
  CHECK(rule.alpha > 0 && rule.growth >= 1, name << ": alpha " << rule.alpha << ", growth " << rule.growth);
  check_group(name, group);
  check_step(name, step);
}

void Adam8bit::check() const {
  check_step(name, step);
  for (const Adam8bitTensors& p : all) {
    check_codes(name, p.w, p.m8, p.absmax_m);
    check_codes(name, p.w, p.v8, p.absmax_v);
    check_count(name, "g", p.g, p.w.count(), p.w.dtype());
    check_group(name, p.group);
    check_same_type(name, "w", p.w, all[0].w);
  }
}

void Sgd::check() const {
  CHECK(limit > 0, name << ": limit " << limit);
  check_step(name, step);
  for (const SgdTensors& p : all) {
    check_float(name, "w", p.w);
    check_count(name, "g", p.g, p.w.count(), p.w.dtype());
    check_group(name, p.group);
    check_same_type(name, "w", p.w, all[0].w);
  }
}

void Adagrad::check() const {
  CHECK(eps > 0, name << ": eps " << eps);
  check_step(name, step);
  for (const AdagradTensors& p : all) {
    check_float(name, "w", p.w);
    check_count(name, "g", p.g, p.w.count(), p.w.dtype());
    check_count(name, "sum", p.sum, p.w.count(), p.w.dtype());
    check_group(name, p.group);
    check_same_type(name, "w", p.w, all[0].w);
  }
}

void AdagradRows::check() const {
  CHECK(eps > 0, name << ": eps " << eps);
  check_float(name, "w", w, 2);
  check_shape(name, "g", g, w.shape(), w.dtype());
  check_count(name, "sum", sum, w.size(0), w.dtype());
  check_group(name, group);
  check_step(name, step);
}

void FactoredMoments::check() const {
  check_factored(name, row, column, g);
  check_step(name, step);
}

void FactoredUpdate::check() const {
  check_factored(name, row, column, g);
  check_count(name, "u", u, g.count(), g.dtype());
}

void ClippedMoment::check() const {
  check_float(name, "u", u);
  check_count(name, "m", m, u.count(), u.dtype());
}

void AdafactorUpdate::check() const {
  check_float(name, "u", u);
  check_float(name, "w", w);
  CHECK(w.dtype() == u.dtype(), name << ": w is " << text(w) << ", u is " << text(u));
  if (m || rule.beta1 > 0) check_count(name, "m", m, u.count(), u.dtype());
  check_group(name, group);
  check_step(name, step);
}

void FloraHistory::check() const {
  check_float(name, "u", u, 2);
  check_float(name, "c", c, 2);
  check_shape(name, "sum", sum, u.shape(), u.dtype());
  CHECK(c.dtype() == u.dtype() && (c.size(0) == u.size(0) || c.size(1) == u.size(1)), name << ": c is " << text(c) << ", u is " << text(u));
  CHECK(beta1 >= 0 && beta1 < 1 && gap >= 1, name << ": beta1 " << beta1 << ", draws of " << gap << " steps");
  check_step(name, step);
}

void Dequantise8bit::check() const { check_codes(name, x, codes, absmax); }
void Quantise8bit::check() const { check_codes(name, x, codes, absmax); }

}  // namespace comera::op
