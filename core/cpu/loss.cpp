// Losses: each row by itself, then one sum over the rows in their order.
#include <cmath>
#include <string>

#include "core/cpu/chunks.h"
#include "core/cpu/cpu_ops.h"
#include "core/cpu/lanes.h"
#include "core/cpu/typed.h"

namespace comera {
namespace {

// Rows with a label; throws where one is outside the classes.
int64_t count_examples(const Tensor& labels, int64_t classes) {
  const int* label = labels.data<int>();
  int64_t examples = 0;
  for (int64_t s = 0; s < labels.count(); ++s) {
    if (label[s] >= classes)
      throw Error(ErrorCode::config, "label " + std::to_string(label[s]) + " in a task of " + std::to_string(classes) + " classes",
                  "row " + std::to_string(s) + " of the batch", "the data set does not fit the model's number of classes");
    examples += label[s] >= 0;
  }
  return examples;
}

struct RowLoss {
  double loss = 0;
  bool correct = false;
};

// dlogits = (softmax - label) * factor.
template <class T>
RowLoss cross_entropy_row(T* dlogits, const T* logits, int64_t classes, int64_t label, T factor) {
  const T largest = row_max(classes, logits);
#pragma GCC ivdep
  for (int64_t c = 0; c < classes; ++c) dlogits[c] = fast::exp(logits[c] - largest);
  const T sum = row_sum<T>(classes, [&](auto v, int64_t c) { return at<decltype(v)>(dlogits + c); });
  const T scale = factor / sum;
#pragma GCC ivdep
  for (int64_t c = 0; c < classes; ++c) dlogits[c] *= scale;
  dlogits[label] -= factor;
  int64_t best = 0;  // the first of equals
  while (best < classes && !(logits[best] == largest)) ++best;
  return {std::log(static_cast<double>(sum)) + static_cast<double>(largest) - static_cast<double>(logits[label]), best == label};
}

template <class T>
RowLoss binary_row(T* dlogit, T logit, int label, T factor) {
  const double z = static_cast<double>(logit), tail = std::exp(-std::fabs(z));
  const double sigmoid = z >= 0 ? 1 / (1 + tail) : tail / (1 + tail);
  *dlogit = static_cast<T>(sigmoid - label) * factor;
  // max(z, 0) - z label + log(1 + exp(-|z|)), which does not overflow
  return {(z < 0 ? 0.0 : z) - z * label + std::log1p(tail), (z > 0) == (label > 0) && z == z};
}

// Runs `row(s, label, factor)` for the rows with a label and sums up in their order; other rows of dlogits become 0.
template <class T, class Body>
void all_rows(ThreadPool& pool, StepResults& results, const Tensor& dlogits, const Tensor& row_loss, const Tensor& labels, int64_t classes,
              int64_t label_values, const Body& row) {
  const int64_t rows = labels.count(), examples = count_examples(labels, label_values);
  const T factor = static_cast<T>(1.0 / static_cast<double>(std::max<int64_t>(examples, 1)));
  const int* label = labels.data<int>();
  T *d = dlogits.data<T>(), *losses = row_loss ? row_loss.data<T>() : nullptr;
  RowLoss* each = pool.scratch_of<RowLoss>(std::max<int64_t>(rows, 1));
  pool.parallel_for(rows, kElementGrain / 4 / std::max<int64_t>(classes, 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s) {
      each[s] = RowLoss{};
      if (label[s] < 0)
        std::fill(d + s * classes, d + (s + 1) * classes, T(0));
      else
        each[s] = row(s, label[s], factor);
      if (losses) losses[s] = static_cast<T>(each[s].loss);
    }
  });
  double sum = 0, correct = 0;
  for (int64_t s = 0; s < rows; ++s) {
    sum += each[s].loss;
    correct += each[s].correct ? 1 : 0;
  }
  results.ce = examples > 0 ? sum / static_cast<double>(examples) : 0;
  results.examples = static_cast<double>(examples);
  results.correct = correct;
}

}  // namespace

void CpuOps::body(const op::CrossEntropy& args) {
  const int64_t classes = args.logits.size(1);
  by_float_type(args.logits, [&](auto type) {
    using T = decltype(type);
    const T* from = args.logits.data<T>();
    T* to = args.dlogits.data<T>();
    all_rows<T>(
        pool_, results_in(args.results), args.dlogits, args.row_loss, args.labels, classes, classes,
        [&](int64_t s, int label, T factor) { return cross_entropy_row(to + s * classes, from + s * classes, classes, label, factor); });
  });
}

void CpuOps::body(const op::BinaryCrossEntropy& args) {
  by_float_type(args.logits, [&](auto type) {
    using T = decltype(type);
    const T* from = args.logits.data<T>();
    T* to = args.dlogits.data<T>();
    all_rows<T>(pool_, results_in(args.results), args.dlogits, args.row_loss, args.labels, 1, 2,
                [&](int64_t s, int label, T factor) { return binary_row(to + s, from[s], label, factor); });
  });
}

void CpuOps::body(const op::ScaleByCeWeight& args) {
  const double weight = results_in(args.results).ce_weight;
  if (weight == 1) return;
  body(op::Scale{args.y, args.y, weight});
}

}  // namespace comera
