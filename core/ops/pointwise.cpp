#include "core/ops/pointwise.h"

#include "core/ops/check.h"

namespace comera::op {

using namespace ops_check;

void Fill::check() const {
  check_inside(name, "y", y);
  check_float(name, "y", y.tensor);
}

void Copy::check() const {
  CHECK(x, "copy: x is empty");
  check_count(name, "y", y, x.count(), x.dtype());
}

void Copies::check() const {
  for (const CopyArgs& p : all) {
    check_inside(name, "y", p.y);
    check_inside(name, "x", p.x);
    check_float(name, "x", p.x.tensor);
    check_same_type(name, "y", p.y.tensor, all[0].x.tensor);
    check_same_type(name, "x", p.x.tensor, all[0].x.tensor);
    CHECK(p.y.rows == p.x.rows && p.y.cols == p.x.cols,
          "copy: y is " << p.y.rows << " x " << p.y.cols << ", x is " << p.x.rows << " x " << p.x.cols);
  }
}

void Add::check() const {
  check_float(name, "y", y);
  check_count(name, "a", a, y.count(), y.dtype());
  check_count(name, "b", b, y.count(), y.dtype());
}

void Scale::check() const {
  check_float(name, "y", y);
  check_count(name, "x", x, y.count(), y.dtype());
}

void Axpy::check() const {
  check_float(name, "y", y);
  check_count(name, "x", x, y.count(), y.dtype());
}

void Permute::check() const {
  check_float(name, "x", x, static_cast<int>(axes.size()));
  unsigned seen = 0;
  Shape shape;
  for (int axis : axes) {
    CHECK(axis >= 0 && axis < x.shape().rank() && !(seen >> axis & 1u),
          "permute: axis " << axis << " of " << text(x) << " is wrong or named twice");
    seen |= 1u << axis;
    shape.push_back(x.size(axis));
  }
  check_shape(name, "y", y, shape, x.dtype());
}

void BroadcastRows::check() const {
  check_float(name, "y", y, 2);
  check_shape(name, "row", row, {y.size(1)}, y.dtype());
}

void ColumnSum::check() const {
  check_float(name, "x", x, 2);
  check_shape(name, "sum", sum, {x.size(1)}, x.dtype());
}

void ActivationForward::check() const {
  check_float(name, "y", y);
  check_count(name, "x", x, y.count(), y.dtype());
}

void ActivationBackward::check() const {
  check_float(name, "dx", dx);
  check_count(name, "dy", dy, dx.count(), dx.dtype());
  check_count(name, "saved", saved, dx.count(), dx.dtype());
}

void check_gated(const char* name, Activation kind) {
  CHECK(kind != Activation::tanh, name << ": backward of tanh reads its output, which a gate does not keep");
}

void GatedForward::check() const {
  check_gated(name, kind);
  check_float(name, "y", y);
  check_count(name, "x", x, y.count(), y.dtype());
  check_count(name, "gate", gate, y.count(), y.dtype());
}

void GatedBackward::check() const {
  check_gated(name, kind);
  check_float(name, "dx", dx);
  for (const auto& [what, tensor] : {std::pair{"dgate", &dgate}, {"dy", &dy}, {"x", &x}, {"gate", &gate}})
    check_count(name, what, *tensor, dx.count(), dx.dtype());
}

void ApplyDropout::check() const {
  check_float(name, "y", y);
  check_count(name, "x", x, y.count(), y.dtype());
  check_dropout(name, dropout, step);
}

void Square::check() const {
  check_float(name, "y", y);
  check_count(name, "x", x, y.count(), y.dtype());
}

void Normal::check() const {
  check_float(name, "y", y);
  CHECK(gap >= 1 && ahead >= 0, name << ": draws of " << gap << " steps, " << ahead << " ahead");
  check_step(name, step);
}

}  // namespace comera::op
