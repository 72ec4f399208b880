// Losses: count rows with a label, one block a row, one block for the sum. A label outside the classes makes its row's loss
// and gradient NaN.
#pragma once
#include "gpu/gpu_ops.h"

namespace comera::gpu {

struct CountExamples {
  int64_t rows;
  const int* label;
  StepResults* results;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    double count = 0;
    for (int64_t s = g.thread(); s < rows; s += g.threads()) count += label[s] >= 0;
    count = g.reduce(count, Sum{});
    if (g.thread() == 0) results->examples = count;
  }
};

// Common to the row kernels: loss and correct (S) are scratch, row_loss (S) may be null.
template <class T>
struct LossRows {
  int64_t rows, classes;
  const T* logits;
  const int* label;
  T *dlogits, *row_loss;
  const StepResults* results;
  double *loss, *correct;

  KERNEL T factor() const { return static_cast<T>(1.0 / (results->examples > 1 ? results->examples : 1.0)); }
  KERNEL void keep(int64_t s, double value, bool is_correct) const {
    loss[s] = value;
    correct[s] = is_correct;
    if (row_loss) row_loss[s] = static_cast<T>(value);
  }
};

template <class T>
struct CrossEntropyRows : LossRows<T> {
  template <class Group>
  KERNEL void operator()(Group& g) const {
    const T factor = this->factor();
    const int64_t classes = this->classes;
    for (int64_t s = g.block(); s < this->rows; s += g.blocks()) {
      const T* in = this->logits + s * classes;
      T* out = this->dlogits + s * classes;
      const int label = this->label[s];
      if (label < 0 || label >= classes) {
        const T value = label < 0 ? T(0) : T(NAN);
        for (int64_t c = g.thread(); c < classes; c += g.threads()) out[c] = value;
        if (g.thread() == 0) this->keep(s, static_cast<double>(value), false);
        continue;
      }
      T largest = -static_cast<T>(INFINITY), sum = 0;
      for (int64_t c = g.thread(); c < classes; c += g.threads()) largest = Largest{}(largest, in[c]);
      largest = g.reduce(largest, Largest{});
      int64_t best = classes;  // on a tie the first class
      for (int64_t c = g.thread(); c < classes; c += g.threads()) {
        sum += out[c] = fast::exp(in[c] - largest);
        if (in[c] == largest && c < best) best = c;
      }
      sum = g.reduce(sum, Sum{});
      best = g.reduce(best, Smallest{});
      const T scale = factor / sum;
      for (int64_t c = g.thread(); c < classes; c += g.threads()) out[c] = out[c] * scale - (c == label ? factor : T(0));
      if (g.thread() == 0)
        this->keep(s, std::log(static_cast<double>(sum)) + static_cast<double>(largest) - static_cast<double>(in[label]), best == label);
    }
  }
};

template <class T>
struct BinaryRows : LossRows<T> {
  template <class Group>
  KERNEL void operator()(Group& g) const {
    const T factor = this->factor();
    for (int64_t s = first_element(g); s < this->rows; s += all_threads(g)) {
      const int label = this->label[s];
      if (label < 0 || label > 1) {
        const T value = label < 0 ? T(0) : T(NAN);
        this->dlogits[s] = value;
        this->keep(s, static_cast<double>(value), false);
        continue;
      }
      const double z = static_cast<double>(this->logits[s]), tail = std::exp(-std::fabs(z));
      const double sigmoid = z >= 0 ? 1 / (1 + tail) : tail / (1 + tail);
      this->dlogits[s] = static_cast<T>(sigmoid - label) * factor;
      this->keep(s, (z < 0 ? 0.0 : z) - z * label + std::log1p(tail), (z > 0) == (label > 0) && z == z);
    }
  }
};

struct SumRows {
  int64_t rows;
  const double *loss, *correct;
  StepResults* results;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    double sum = 0, right = 0;
    for (int64_t s = g.thread(); s < rows; s += g.threads()) {
      sum += loss[s];
      right += correct[s];
    }
    sum = g.reduce(sum, Sum{});
    right = g.reduce(right, Sum{});
    if (g.thread() != 0) return;
    results->ce = results->examples > 0 ? sum / results->examples : 0;
    results->correct = right;
  }
};

template <class T>
struct ScaleByCeWeight {
  T* y;
  const StepResults* results;
  KERNEL void operator()(int64_t i) const { y[i] *= static_cast<T>(results->ce_weight); }
};

// Fills in the members of `rows` that are not set yet.
template <class M>
template <class Rows>
void GpuOps<M>::sum_rows(const Tensor& results, const Tensor& labels, Rows rows, LaunchShape shape) {
  StepResults* to = results_in(results);
  rows.results = to;
  rows.label = labels.data<int>();
  rows.loss = machine_.template scratch<double>(rows.rows);
  rows.correct = machine_.template scratch<double>(rows.rows);
  machine_.launch({1, kBlock}, CountExamples{rows.rows, rows.label, to});
  machine_.launch(shape, rows);
  machine_.launch({1, kBlock}, SumRows{rows.rows, rows.loss, rows.correct, to});
}

template <class M>
void GpuOps<M>::body(const op::CrossEntropy& args) {
  begin(args, args.logits.shape());
  by_float_type(args.logits, [&](auto type) {
    using T = decltype(type);
    const int64_t rows = args.logits.size(0), classes = args.logits.size(1);
    sum_rows(args.results, args.labels,
             CrossEntropyRows<T>{{rows, classes, args.logits.data<T>(), nullptr, args.dlogits.data<T>(),
                                  args.row_loss ? args.row_loss.data<T>() : nullptr, nullptr, nullptr, nullptr}},
             over_items(rows, classes));
  });
}

template <class M>
void GpuOps<M>::body(const op::BinaryCrossEntropy& args) {
  begin(args, args.logits.shape());
  by_float_type(args.logits, [&](auto type) {
    using T = decltype(type);
    const int64_t rows = args.logits.size(0);
    sum_rows(args.results, args.labels,
             BinaryRows<T>{{rows, 1, args.logits.data<T>(), nullptr, args.dlogits.data<T>(),
                            args.row_loss ? args.row_loss.data<T>() : nullptr, nullptr, nullptr, nullptr}},
             over_elements(rows));
  });
}

template <class M>
void GpuOps<M>::body(const op::ScaleByCeWeight& args) {
  begin(args, args.y.shape());
  by_float_type(args.y, [&](auto type) {
    using T = decltype(type);
    each(args.y.count(), ScaleByCeWeight<T>{args.y.data<T>(), results_in(args.results)});
  });
}

}  // namespace comera::gpu
