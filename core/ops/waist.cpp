#include "core/ops/waist.h"

#include "core/ops/check.h"

namespace comera::op {

using namespace ops_check;

namespace {

void check_sides(const char* op, const Mat& y, const Mat& t, const Mat& r, const Mat& l) {
  const auto check = [&](const char* name, const Mat& m) {
    check_inside(op, name, m);
    check_float(op, name, m.tensor);
    CHECK(m.tensor.dtype() == y.tensor.dtype(), op << ": " << name << " is " << text(m.tensor) << ", y is " << text(y.tensor));
  };
  check("y", y);
  check("t", t);
  check("r", r);
  check("l", l);
  CHECK(y.rows == t.rows && t.cols == r.rows && r.cols == l.rows && l.cols == y.cols,
        op << ": y " << y.rows << " x " << y.cols << " from t " << t.rows << " x " << t.cols << ", r " << r.rows << " x " << r.cols
           << " and l " << l.rows << " x " << l.cols);
}

double flops(int64_t tokens, int64_t wide, int64_t thin) {
  return 2.0 * static_cast<double>(tokens) * static_cast<double>(wide) * static_cast<double>(thin);
}

}  // namespace

void WaistActivation::check() const {
  check_sides(name, y, t, r, l);
  if (!bias) return;
  check_shape(name, "bias", bias, {y.cols}, y.tensor.dtype());
  CHECK(y.offset == 0 && y.rows * y.cols == y.tensor.count(), name << ": y is a part of its tensor, and there is a bias");
}
Work WaistActivation::work(double bytes) const { return {flops(y.rows, r.cols, r.rows + l.cols), bytes, 0}; }

void WaistActivationBackward::check() const {
  check_sides(name, dy, t, r, l);
  const auto check = [&](const char* what, const Mat& m, int64_t rows, int64_t cols) {
    check_inside(name, what, m);
    CHECK(m.rows == rows && m.cols == cols && m.tensor.dtype() == dy.tensor.dtype(), name << ": " << what << " is " << m.rows << " x "
                                                                                          << m.cols << " of " << text(m.tensor)
                                                                                          << ", expected " << rows << " x " << cols);
  };
  CHECK(dt.cols <= t.cols, name << ": dt has " << dt.cols << " columns, t has " << t.cols);
  check("dt", dt, t.rows, dt.cols);
  check("dr", dr, r.rows, r.cols);
  check("dl", dl, l.rows, l.cols);
}
Work WaistActivationBackward::work(double bytes) const { return {flops(dy.rows, r.cols, 2 * r.rows + dt.cols + 2 * l.cols), bytes, 0}; }

}  // namespace comera::op
