// The CPU bodies of the ops, for f32 and f64 (double is the reference that gradient checks use). One .cpp for each family.
#pragma once
#include "core/cpu/thread_pool.h"
#include "core/ops/ops.h"

namespace comera {

class CpuOps final : public Ops {
 public:
  explicit CpuOps(int threads);
  bool notes_workspace(bool large) const override { return large; }
  ThreadPool& pool() { return pool_; }

 private:
#define COMERA_BODY(Op) void body(const op::Op& args) override;
  COMERA_OPS(COMERA_BODY)
#undef COMERA_BODY
  struct WaistCalls;                       // waist.cpp
  void multiply(const GemmArgs& product);  // gemm.cpp: with operands as they are

  ThreadPool pool_;
};

}  // namespace comera
