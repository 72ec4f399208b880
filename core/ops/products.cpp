#include "core/ops/products.h"

#include "core/ops/check.h"

namespace comera {

using namespace ops_check;

void GemmArgs::check() const {
  check_inside("gemm", "C", c);
  check_inside("gemm", "A", a);
  check_inside("gemm", "B", b);
  check_float("gemm", "C", c.tensor);
  CHECK(a.tensor.dtype() == c.tensor.dtype() && b.tensor.dtype() == c.tensor.dtype(),
        "gemm: C " << text(c.tensor) << ", A " << text(a.tensor) << ", B " << text(b.tensor) << " are of different types");
  const int64_t m = transpose_a ? a.cols : a.rows, k = terms();
  const int64_t kb = transpose_b ? b.cols : b.rows, n = transpose_b ? b.rows : b.cols;
  CHECK(c.rows == m && c.cols == n && k == kb,
        "gemm: C " << c.rows << " x " << c.cols << " from op(A) " << m << " x " << k << " and op(B) " << kb << " x " << n);
}

void ThinProduct::check(const char* op, const Tensor& like) const {
  for (const Mat* m : {&t, &r}) {
    check_inside(op, m == &t ? "t" : "r", *m);
    CHECK(m->tensor.dtype() == like.dtype(),
          op << ": " << (m == &t ? "t" : "r") << " is " << text(m->tensor) << ", expected " << name_of(like.dtype()));
  }
  const int64_t terms = transpose_r ? r.cols : r.rows, columns = transpose_r ? r.rows : r.cols;
  CHECK(t.rows == like.size(0) && t.cols == terms && columns == like.size(1),
        op << ": a product of " << t.rows << " x " << t.cols << " and " << terms << " x " << columns << ", expected " << text(like));
}

namespace op {

void Gemms::check() const {
  for (const GemmArgs& p : all) {
    p.check();
    check_same_type(name, "C", p.c.tensor, all[0].c.tensor);
  }
}
Work Gemms::work(double bytes) const {
  double flops = 0;
  for (const GemmArgs& p : all) flops += p.flops();
  return {flops, bytes, 0};
}

void Linear::check() const {
  check_float(name, "w", w, 2);
  check_float(name, "x", x, 2);
  const int64_t in = w.size(transpose_w ? 1 : 0), out = w.size(transpose_w ? 0 : 1);
  check_shape(name, "x", x, {x.size(0), in}, w.dtype());
  check_shape(name, "y", y, {x.size(0), out}, w.dtype());
  check_shape(name, "b", b, {out}, w.dtype());
}
Work Linear::work(double) const {
  return {2.0 * static_cast<double>(y.count()) * static_cast<double>(x.size(1)), static_cast<double>(x.bytes() + w.bytes() + y.bytes()),
          static_cast<double>(y.bytes() + b.bytes())};
}

void LinearBackward::check() const {
  check_float(name, "dy", dy, 2);
  check_float(name, "x", x, 2);
  check_shape(name, "x", x, {dy.size(0), x.size(1)}, dy.dtype());
  check_shape(name, "dw", dw, {dy.size(1), x.size(1)}, dy.dtype());
  check_shape(name, "db", db, {dy.size(1)}, dy.dtype());
}
Work LinearBackward::work(double) const {
  return {2.0 * static_cast<double>(dw.count()) * static_cast<double>(dy.size(0)), static_cast<double>(dy.bytes() + x.bytes() + dw.bytes()),
          static_cast<double>(db.bytes() + dy.bytes())};
}

}  // namespace op
}  // namespace comera
