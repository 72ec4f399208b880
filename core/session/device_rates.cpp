#include "core/session/device_rates.h"

#include <algorithm>
#include <chrono>

namespace comera {
namespace {

double now_ms() { return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Best of several copies of so many bytes, in ms.
double time_copy(Device& device, Memory& memory, int64_t bytes) {
  Buffer from(memory, bytes, Purpose::data), to(memory, bytes, Purpose::data);
  const Tensor x(from.data(), {bytes / 4}, DType::f32), y(to.data(), {bytes / 4}, DType::f32);
  device.ops().fill(x, 0.5);
  double best = 1e30;
  for (int i = 0; i < 10; ++i) {
    const double begin = now_ms();
    device.ops().copy(y, x);
    device.synchronize();
    best = std::min(best, now_ms() - begin);
  }
  return best;
}

}  // namespace

std::vector<OpTime> op_times(const OpProfile& profile, int64_t steps) {
  const auto count = static_cast<double>(steps);
  std::vector<OpTime> out;
  for (const auto& [name, entry] : profile.ops)
    out.push_back(
        {name, static_cast<double>(entry.calls) / count, entry.ms / count, entry.gemm_flops / 1e9 / count, entry.bytes / 1e9 / count});
  std::stable_sort(out.begin(), out.end(), [](const OpTime& a, const OpTime& b) { return a.ms > b.ms; });
  return out;
}

double time_gemm(Device& device, Memory& memory, int64_t m, int64_t k, int64_t n, bool ta, bool tb) {
  Buffer a(memory, m * k * 4, Purpose::data), b(memory, k * n * 4, Purpose::data), c(memory, m * n * 4, Purpose::data);
  const Tensor ta_tensor(a.data(), ta ? Shape{k, m} : Shape{m, k}, DType::f32),
      tb_tensor(b.data(), tb ? Shape{n, k} : Shape{k, n}, DType::f32), tc(c.data(), {m, n}, DType::f32);
  device.ops().fill(ta_tensor, 0.5);
  device.ops().fill(tb_tensor, 0.25);
  const double flops = 2.0 * static_cast<double>(m) * static_cast<double>(k) * static_cast<double>(n);
  const int repeats = std::clamp(static_cast<int>(4e10 / flops), 5, 1000);  // about 0.2 s on two cores
  double best = 1e30;
  for (int i = 0; i < repeats; ++i) {
    const double begin = now_ms();
    device.ops().gemm(tc, ta_tensor, ta, tb_tensor, tb);
    device.synchronize();
    best = std::min(best, now_ms() - begin);
  }
  return best;
}

DeviceRates measure_rates(Device& device) {
  constexpr int64_t kBytes = int64_t{64} << 20;
  Memory memory(device);
  return {.sgemm_gflops = 2.0 * 2048 * 2048 * 2048 / time_gemm(device, memory, 2048, 2048, 2048, false, false) / 1e6,
          .copy_gbs = 2.0 * static_cast<double>(kBytes) / time_copy(device, memory, kBytes) / 1e6};
}

double share_of_rate(const OpTime& op, const DeviceRates& rates) {
  if (op.ms <= 0) return 0;
  const double best = op.gflop > 0 ? rates.sgemm_gflops : rates.copy_gbs;
  return best > 0 ? (op.gflop > 0 ? op.gflop : op.gbyte) / op.ms * 1e3 / best : 0;
}

double gflops_of(const OpTime& op) { return op.gflop > 0 && op.ms > 0 ? op.gflop / op.ms * 1e3 : 0; }
double gbs_of(const OpTime& op) { return op.gflop <= 0 && op.ms > 0 ? op.gbyte / op.ms * 1e3 : 0; }

}  // namespace comera
