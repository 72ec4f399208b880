// Rates of the CPU kernels at the shapes of the paper's encoder (8 x 128 tokens, 768 features, rank 30), one JSON
// line a kernel: op, shape, ms (least of many), rate and its unit. Products also carry their share of the 2048^3
// rate, measured just before and after: the machine may be shared. With one thread its processor time is taken,
// which does not count what other programs do; with more it is the time on the wall.
//   kernel_rates [threads] [seconds a kernel]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/ops/device.h"
#include "core/ops/step_block.h"

using namespace comera;

namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double processor_time() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

class Bench {
 public:
  Bench(int threads, double seconds) : device_(open_cpu_device(threads)), ops_(device_->ops()), seconds_(seconds), clock_(threads == 1 ? processor_time : now) {
    scalars_.seed = 1;
    scalars_.step = 1;
    std::printf("{\"device\": \"%s\", \"blas\": \"%s\"}\n", device_->name().c_str(), blas_name().c_str());
  }
  ~Bench() {
    for (void* data : taken_) device_->release(data);
  }

  Ops& ops() { return ops_; }
  Tensor step() { return Tensor(&scalars_, {int64_t{sizeof scalars_}}, DType::u8); }
  Tensor tensor(Shape shape, DType dtype = DType::f32) {
    taken_.push_back(device_->allocate(shape.count() * static_cast<int64_t>(size_of(dtype))));
    Tensor t(taken_.back(), shape, dtype);
    if (dtype == DType::f32)
      for (int64_t i = 0; i < t.count(); ++i) t.data<float>()[i] = static_cast<float>(static_cast<double>(i * 7919 % 2003) / 1001.5 - 1);
    return t;
  }
  Tensor indices(std::vector<int> values) {
    Tensor t = tensor({static_cast<int64_t>(values.size())}, DType::i32);
    std::copy(values.begin(), values.end(), t.data<int>());
    return t;
  }

  // Least time of one call, in seconds.
  double time(const std::function<void()>& body) const {
    double best = 1e9;
    const double until = now() + seconds_;
    for (int i = 0; i < 3 || now() < until; ++i) {
      const double begin = clock_();
      body();
      best = std::min(best, clock_() - begin);
    }
    return best;
  }

  void measure_peak() {
    if (!peak_a_) peak_a_ = tensor({2048, 2048}), peak_b_ = tensor({2048, 2048}), peak_c_ = tensor({2048, 2048});
    const double s = time([&] { ops_.gemm(peak_c_, peak_a_, false, peak_b_, false); });
    peak_ = 2.0 * 2048 * 2048 * 2048 / s * 1e-9;
    std::printf("{\"op\": \"gemm\", \"shape\": \"2048x2048x2048\", \"ms\": %.4f, \"gflops\": %.1f}\n", s * 1e3, peak_);
  }
  void gemm(const char* what, int64_t m, int64_t n, int64_t k, bool ta, bool tb, int64_t ld_extra = 0) {
    const Tensor a = tensor({ta ? k : m, (ta ? m : k) + ld_extra}), b = tensor({tb ? n : k, tb ? k : n}), c = tensor({m, n});
    const double s = time([&] { ops_.gemm(c, Mat(a).columns(0, ta ? m : k), ta, b, tb); });
    const double rate = 2.0 * static_cast<double>(m * n * k) / s * 1e-9;
    std::printf("{\"op\": \"gemm\", \"what\": \"%s\", \"shape\": \"%ldx%ldx%ld %c%c\", \"ms\": %.4f, \"gflops\": %.1f, \"share\": %.2f}\n", what,
                static_cast<long>(m), static_cast<long>(k), static_cast<long>(n), ta ? 'T' : 'N', tb ? 'T' : 'N', s * 1e3, rate, rate / peak_);
    std::fflush(stdout);
  }
  // `amount` of `unit` a call; 1e9 of them a second are 1.
  void op(const char* name, const char* shape, const char* unit, double amount, const std::function<void()>& body) {
    const double s = time(body);
    std::printf("{\"op\": \"%s\", \"shape\": \"%s\", \"ms\": %.4f, \"%s\": %.2f}\n", name, shape, s * 1e3, unit, amount / s * 1e-9);
    std::fflush(stdout);
  }

 private:
  std::unique_ptr<Device> device_;
  Ops& ops_;
  StepScalars scalars_;
  double seconds_;
  double (*clock_)();
  std::vector<void*> taken_;
  Tensor peak_a_, peak_b_, peak_c_;
  double peak_ = 0;
};

void products(Bench& b) {
  b.measure_peak();
  b.gemm("dense 768-768", 1024, 768, 768, false, true);
  b.gemm("dense 768-3072", 1024, 3072, 768, false, true);
  b.gemm("dense 3072-768", 1024, 768, 3072, false, true);
  b.gemm("dense dW 768-768", 768, 768, 1024, true, false);
  for (int64_t rank : {30, 31, 32}) b.gemm("T1 = X L", 1024, rank, 768, false, false);
  b.gemm("T1 = X L, 3072", 1024, 30, 3072, false, false);
  for (int64_t rank : {30, 31, 32}) b.gemm("Y = T1 R", 1024, 768, rank, false, false, 32 - rank);
  b.gemm("Y = T1 R, ld 31", 1024, 768, 30, false, false, 1);
  b.gemm("Y = T1 R, 3072", 1024, 3072, 31, false, false, 1);
  b.gemm("U1 = dY R^T", 1024, 30, 768, false, true);
  b.gemm("U1 = dY R^T, 3072", 1024, 30, 3072, false, true);
  b.gemm("dX = U1 L^T", 1024, 768, 30, false, true);
  b.gemm("dX = U1 L^T, 3072", 1024, 3072, 30, false, true);
  for (int64_t rank : {30, 31, 32}) b.gemm("T2 = T1^T dY", rank, 768, 1024, true, false, 32 - rank);
  b.gemm("T2 = T1^T dY, 3072", 31, 3072, 1024, true, false, 1);
  b.gemm("V = X^T U1", 768, 30, 1024, true, false);
  b.gemm("V = X^T U1, 3072", 3072, 30, 1024, true, false);
  b.gemm("rank 12", 1024, 768, 12, false, false);
  b.gemm("rank 64", 1024, 64, 768, false, false);
  b.gemm("chain L3", 96, 240, 30, false, false);
  b.gemm("chain dE", 30, 240, 96, true, false);
  b.measure_peak();
}

void pointwise(Bench& b) {
  Ops& ops = b.ops();
  const Tensor x = b.tensor({1024, 3072}), y = b.tensor({1024, 3072}), z = b.tensor({1024, 3072}), step = b.step();
  const double bytes = static_cast<double>(x.bytes());
  b.op("copy", "1024x3072", "GB/s", 2 * bytes, [&] { ops.copy(y, x); });
  b.op("add", "1024x3072", "GB/s", 3 * bytes, [&] { ops.add(z, x, y); });
  b.op("gelu forward", "1024x3072", "GB/s", 2 * bytes, [&] { ops.activation_forward(Activation::gelu, y, x); });
  b.op("gelu backward", "1024x3072", "GB/s", 3 * bytes, [&] { ops.activation_backward(Activation::gelu, z, y, x); });
  b.op("tanh forward", "1024x3072", "GB/s", 2 * bytes, [&] { ops.activation_forward(Activation::tanh, y, x); });
  const Tensor row = b.tensor({3072});
  b.op("column_sum", "1024x3072", "GB/s", bytes, [&] { ops.column_sum(row, x); });
  const Tensor p = b.tensor({16, 64, 30, 30}), q = b.tensor({30, 16, 30, 64});
  b.op("permute", "16x64x30x30", "GB/s", 2 * static_cast<double>(p.bytes()), [&] { ops.permute(q, p, {3, 0, 2, 1}); });

  const Tensor h = b.tensor({1024, 768}), branch = b.tensor({1024, 768}), sum = b.tensor({1024, 768}), out = b.tensor({1024, 768}),
               mean = b.tensor({1024}), rstd = b.tensor({1024}), gamma = b.tensor({768}), beta = b.tensor({768}), dgamma = b.tensor({768}),
               dbeta = b.tensor({768}), none;
  const double words = static_cast<double>(h.count()), h_bytes = static_cast<double>(h.bytes());
  const Dropout dropout{0.1, 3};
  b.op("dropout", "1024x768", "Gword/s", words, [&] { ops.dropout(out, h, dropout, step); });
  b.op("norm forward", "1024x768", "GB/s", 2 * h_bytes, [&] { ops.norm_forward(out, none, mean, rstd, h, none, gamma, beta, 1e-12, {}, step); });
  b.op("norm forward + residual", "1024x768", "GB/s", 4 * h_bytes,
       [&] { ops.norm_forward(out, sum, mean, rstd, h, branch, gamma, beta, 1e-12, {}, step); });
  b.op("norm forward + residual + dropout", "1024x768", "GB/s", 4 * h_bytes,
       [&] { ops.norm_forward(out, sum, mean, rstd, h, branch, gamma, beta, 1e-12, dropout, step); });
  b.op("norm backward", "1024x768", "GB/s", 3 * h_bytes,
       [&] { ops.norm_backward(out, none, dgamma, dbeta, h, sum, mean, rstd, gamma, {}, step); });
  b.op("norm backward + dropout", "1024x768", "GB/s", 4 * h_bytes,
       [&] { ops.norm_backward(out, branch, dgamma, dbeta, h, sum, mean, rstd, gamma, dropout, step); });
}

void attention(Bench& b) {
  Ops& ops = b.ops();
  const int64_t tokens = 1024, width = 768, heads = 12, longest = 128, count = tokens / longest;
  std::vector<int> starts, lengths(static_cast<size_t>(count), static_cast<int>(longest));
  for (int64_t s = 0; s < count; ++s) starts.push_back(static_cast<int>(s * longest));
  const Sequences sequences{b.indices(starts), b.indices(lengths), longest};
  const Tensor q = b.tensor({tokens, width}), k = b.tensor({tokens, width}), v = b.tensor({tokens, width}), out = b.tensor({tokens, width}),
               dq = b.tensor({tokens, width}), dk = b.tensor({tokens, width}), dv = b.tensor({tokens, width}), lse = b.tensor({heads, tokens}),
               probs = b.tensor({count, heads, longest, longest}), none, step = b.step();
  const double product = 2.0 * static_cast<double>(count * heads * longest * longest * (width / heads));
  for (double p : {0.0, 0.1})
    for (bool keep : {false, true}) {
      const Dropout dropout{p, 4};
      const Tensor& kept = keep ? probs : none;
      const std::string kind = std::string(p > 0 ? " + dropout" : "") + (keep ? " + probs" : "");
      b.op(("attention forward" + kind).c_str(), "8x128, 12 heads", "gflops", 2 * product,
           [&] { ops.attention_forward(out, lse, kept, q, k, v, sequences, heads, dropout, step); });
      b.op(("attention backward" + kind).c_str(), "8x128, 12 heads", "gflops", (keep ? 4 : 5) * product,
           [&] { ops.attention_backward(dq, dk, dv, out, lse, kept, q, k, v, sequences, heads, dropout, step); });
    }
}

}  // namespace

int main(int argc, char** argv) {
  Bench bench(argc > 1 ? std::atoi(argv[1]) : 0, argc > 2 ? std::atof(argv[2]) : 0.5);
  products(bench);
  pointwise(bench);
  attention(bench);
}
