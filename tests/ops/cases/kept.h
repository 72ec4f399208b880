// Calls of ops, kept with copies of their arguments: to be made later, on another device, or with arguments that are wrong.
#pragma once
#include <functional>
#include <memory>
#include <utility>

#include "core/ops/ops.h"

namespace comera::test {

struct ArgumentTensor {
  Tensor& tensor;
  Mat* mat;  // whose tensor it is, or null
  Role role;
  int item;  // of a list; else 0
};

class KeptCall {
 public:
  virtual ~KeptCall() = default;
  virtual const char* op() const = 0;    // its struct
  virtual const char* name() const = 0;  // as in messages
  virtual bool never_captured() const = 0;
  virtual void make(Ops& ops) const = 0;
  virtual std::shared_ptr<KeptCall> copy() const = 0;
  // The tensors of its own copy of the arguments.
  virtual void each_tensor(const std::function<void(const ArgumentTensor&)>& visit) = 0;
};

// Ops that compute nothing: each call, once checked and counted, goes to `keep`.
class KeptOps final : public Ops {
 public:
  using Keep = std::function<void(std::shared_ptr<KeptCall>)>;
  explicit KeptOps(Keep keep) : keep_(std::move(keep)) {}
  bool batches_small_calls() const override { return true; }

 private:
  template <class Op>
  class KeptOp final : public KeptCall {
   public:
    KeptOp(const char* op, const Op& args) : op_(op), args_(args) {}
    const char* op() const override { return op_; }
    const char* name() const override { return Op::name; }
    bool never_captured() const override {
      return requires { Op::never_captured; };
    }
    void make(Ops& ops) const override { ops.run(args_); }
    std::shared_ptr<KeptCall> copy() const override { return std::make_shared<KeptOp>(*this); }
    void each_tensor(const std::function<void(const ArgumentTensor&)>& visit) override {
      Visitor visitor{visit};
      Op::tensors(args_, visitor);
    }

   private:
    const char* op_;
    Op args_;
  };
  struct Visitor : SeesTensors<Visitor> {
    explicit Visitor(const std::function<void(const ArgumentTensor&)>& visit) : visit_(visit) {}
    void see(Tensor& t, Role role) { visit_({t, nullptr, role, item_}); }
    void see(Mat& m, Role role) { visit_({m.tensor, &m, role, item_}); }
    template <class T>
    void items(Items<T>& list) {
      for (T& item : list.own()) {
        T::tensors(item, *this);
        ++item_;
      }
    }

   private:
    const std::function<void(const ArgumentTensor&)>& visit_;
    int item_ = 0;
  };

#define COMERA_BODY(Op) \
  void body(const op::Op& args) override { keep(#Op, args); }
  COMERA_OPS(COMERA_BODY)
#undef COMERA_BODY

  template <class Op>
  void keep(const char* op, const Op& args) {
    auto call = std::make_shared<KeptOp<Op>>(op, args);
    call->each_tensor([](const ArgumentTensor&) {});  // a list becomes its own
    keep_(std::move(call));
  }

  Keep keep_;
};

}  // namespace comera::test
