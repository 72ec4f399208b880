// Ops::run: arguments are checked, work is counted, then the body follows.
#include <array>

#include "core/ops/check.h"
#include "core/ops/ops.h"

namespace comera {
namespace {

// Goes through the tensors of a call: adds up its traffic and, in a real call, looks at addresses.
class Traffic : public SeesTensors<Traffic> {
 public:
  Traffic(const char* op, bool dry) : op_(op), dry_(dry) {}
  double bytes = 0;

  void see(const Tensor& t, Role role) {
    if (t) see(t, role, 0, t.bytes(), true);
  }
  void see(const Mat& m, Role role) {
    const int64_t size = static_cast<int64_t>(size_of(m.tensor.dtype()));
    see(m.tensor, role, m.offset * size, m.rows * m.cols * size, m.rows <= 1 || m.ld == m.cols);
  }
  // Items are compared each by itself: a list may be long, and none of its items waits for another.
  template <class T>
  void items(const Items<T>& all) {
    for (const T& item : all) {
      count_ = 0;
      T::tensors(item, *this);
    }
    count_ = 0;
  }

 private:
  struct Use {
    const Tensor* tensor;
    const char *begin, *end;
    Role role;
    bool writes() const { return role == Role::out || role == Role::inout || role == Role::in_place; }
  };

  void see(const Tensor& t, Role role, int64_t offset, int64_t size, bool contiguous) {
    if (role != Role::step) bytes += (role == Role::inout ? 2 : 1) * static_cast<double>(size);
    if (dry_) return;
    CHECK(t.raw() || t.count() == 0, op_ << ": a tensor " << ops_check::text(t) << " of a dry run in a real one");
    if (size == 0 || !contiguous) return;  // columns of one matrix may lie between those of another
    const char* begin = static_cast<const char*>(t.raw()) + offset;
    CHECK(count_ < uses_.size(), op_ << ": more than " << uses_.size() << " tensors");
    uses_[count_] = {&t, begin, begin + size, role};
    for (size_t i = 0; i < count_; ++i) check_no_alias(uses_[i], uses_[count_]);
    ++count_;
  }
  // Else the result would depend on the order of the loops.
  void check_no_alias(const Use& a, const Use& b) const {
    if (a.end <= b.begin || b.end <= a.begin || !(a.writes() || b.writes())) return;
    const Use &y = a.writes() ? a : b, &x = a.writes() ? b : a;
    if (y.role == Role::in_place && !x.writes() && y.begin == x.begin && y.end == x.end) return;
    CHECK(false, op_ << ": output " << ops_check::text(*y.tensor) << " overlaps " << (x.writes() ? "output " : "input ")
                     << ops_check::text(*x.tensor));
  }

  const char* op_;
  const bool dry_;
  std::array<Use, 16> uses_;
  size_t count_ = 0;
};

}  // namespace

template <class Op>
void Ops::run(const Op& op) {
  if constexpr (requires { op.all; })
    if (op.all.empty()) return;
  op.check();
  Traffic traffic(Op::name, dry);
  Op::tensors(op, traffic);
  if constexpr (requires { op.work(0.0); })
    work += op.work(traffic.bytes);
  else
    work.other_bytes += traffic.bytes;
  if (dry) {
    if (!notes_workspace(requires { Op::large_workspace; })) return;
  } else if (profile) {
    profile->enter(Op::name, work.gemm_flops, work.other_bytes);
  }
  body(op);
}

#define COMERA_RUN(Op) template void Ops::run(const op::Op& op);
COMERA_OPS(COMERA_RUN)
#undef COMERA_RUN

op::Gemm Ops::product_of(const op::Linear& args) { return {{args.y, args.x, false, args.w, args.transpose_w, 1, 1}}; }

op::Gemm Ops::product_of(const op::LinearBackward& args) {
  const Tensor &dy = args.dy, &x = args.x;
  return {{args.dw, Mat(dy, dy.size(0), dy.size(1)), true, Mat(x, x.size(0), x.size(1)), false, 1, 0}};  // also of no rows
}

void Ops::linear_in_two(const op::Linear& args) {
  body(op::BroadcastRows{args.y, args.b});
  body(product_of(args));
}

void Ops::linear_backward_in_two(const op::LinearBackward& args) {
  body(product_of(args));
  body(op::ColumnSum{args.db, args.dy});
}

}  // namespace comera
