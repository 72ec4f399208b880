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

void check_matrix(const char* op, const char* what, const Mat& m, int64_t rows, int64_t cols, DType dtype) {
  check_inside(op, what, m);
  CHECK(m.rows == rows && m.cols == cols && m.tensor.dtype() == dtype,
        op << ": " << what << " is " << m.rows << " x " << m.cols << " of " << text(m.tensor) << ", expected " << rows << " x " << cols);
}

void check_gradients(const char* op, const Mat& dt, const Mat& dr, const Mat& t, const Mat& r) {
  CHECK(dt.cols <= t.cols, op << ": dt has " << dt.cols << " columns, t has " << t.cols);
  check_matrix(op, "dt", dt, t.rows, dt.cols, t.tensor.dtype());
  check_matrix(op, "dr", dr, r.rows, r.cols, t.tensor.dtype());
}

double flops(int64_t tokens, int64_t wide, int64_t thin) {
  return 2.0 * static_cast<double>(tokens) * static_cast<double>(wide) * static_cast<double>(thin);
}

}  // namespace

void WaistActivation::check() const {
  check_sides(name, y, t, r, l);
  if (gate) {
    check_gated(name, kind);
    check_sides(name, y, gate->t, gate->r, l);
  }
  if (!bias) return;
  check_shape(name, "bias", bias, {y.cols}, y.tensor.dtype());
  CHECK(y.offset == 0 && y.rows * y.cols == y.tensor.count(), name << ": y is a part of its tensor, and there is a bias");
}
Work WaistActivation::work(double bytes) const { return {flops(y.rows, r.cols, r.rows + l.cols + (gate ? gate->r.rows : 0)), bytes, 0}; }

void WaistActivationBackward::check() const {
  check_sides(name, dy, t, r, l);
  check_gradients(name, dt, dr, t, r);
  check_matrix(name, "dl", dl, l.rows, l.cols, dy.tensor.dtype());
  if (!gate) return;
  check_gated(name, kind);
  check_sides(name, dy, gate->t, gate->r, l);
  check_gradients(name, gate->dt, gate->dr, gate->t, gate->r);
}
Work WaistActivationBackward::work(double bytes) const {
  const int64_t of_gate = gate ? 2 * gate->r.rows + gate->dt.cols : 0;
  return {flops(dy.rows, r.cols, 2 * r.rows + dt.cols + of_gate + 2 * l.cols), bytes, 0};
}

}  // namespace comera::op
