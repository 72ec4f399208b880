#include "core/session/device_rates.h"

#include <algorithm>
#include <functional>
#include <random>

#include "core/ops/device.h"

namespace comera {
namespace {

// Best time of one call, in ms, by the clock of the device. Where calls are queued a round is some ms of them, one behind the
// other: else the way of a call to the device would be measured.
double best_ms(Device& device, int rounds, const std::function<void()>& call) {
  const auto clock = device.work_clock();
  const auto timed = [&](int calls) {
    clock->clear();
    clock->mark();
    for (int i = 0; i < calls; ++i) call();
    clock->mark();
    return clock->ms(0, 1) / calls;
  };
  double best = timed(1);  // in which libraries load and choose
  const int calls = device.captures() ? std::clamp(static_cast<int>(5 / std::max(1e-3, timed(1))), 1, 500) : 1;
  for (int i = 0; i < rounds; ++i) best = std::min(best, timed(calls));
  return best;
}

// What multiplying costs may depend on the values: all alike they would be a flattering case.
void fill_at_random(Device& device, const Tensor& x, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<float> values(-1, 1);
  std::vector<float> host(static_cast<size_t>(x.count()));
  for (float& value : host) value = values(random);
  device.upload(x.data<float>(), host.data(), static_cast<int64_t>(host.size() * sizeof(float)));
}

double time_copy(Device& device, Memory& memory, int64_t bytes) {
  Buffer from(memory, bytes, Purpose::data), to(memory, bytes, Purpose::data);
  const Tensor x(from.data(), {bytes / 4}, DType::f32), y(to.data(), {bytes / 4}, DType::f32);
  device.ops().fill(x, 0.5);
  return best_ms(device, 10, [&] { device.ops().copy(y, x); });
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
  fill_at_random(device, ta_tensor, 1);
  fill_at_random(device, tb_tensor, 2);
  const double flops = 2.0 * static_cast<double>(m) * static_cast<double>(k) * static_cast<double>(n);
  const int repeats = std::clamp(static_cast<int>(4e10 / flops), 5, 1000);  // about 0.2 s on two cores
  return best_ms(device, device.captures() ? 10 : repeats, [&] { device.ops().gemm(tc, ta_tensor, ta, tb_tensor, tb); });
}

DeviceRates measure_rates(Device& device) {
  // A GPU's cache holds tens of MiB: what is copied there is much more, where there is room.
  const int64_t bytes = device.free_bytes() > int64_t{4} << 30 ? int64_t{512} << 20 : int64_t{64} << 20;
  Memory memory(device);
  return {.sgemm_gflops = 2.0 * 2048 * 2048 * 2048 / time_gemm(device, memory, 2048, 2048, 2048, false, false) / 1e6,
          .copy_gbs = 2.0 * static_cast<double>(bytes) / time_copy(device, memory, bytes) / 1e6};
}

double gemm_share(double gflop, double ms, const DeviceRates& rates) {
  return ms > 0 && rates.sgemm_gflops > 0 ? gflop / ms * 1e3 / rates.sgemm_gflops : 0;
}

double share_of_rate(const OpTime& op, const DeviceRates& rates) {
  if (op.gflop > 0) return gemm_share(op.gflop, op.ms, rates);
  return op.ms > 0 && rates.copy_gbs > 0 ? op.gbyte / op.ms * 1e3 / rates.copy_gbs : 0;
}

double gflops_of(const OpTime& op) { return op.gflop > 0 && op.ms > 0 ? op.gflop / op.ms * 1e3 : 0; }
double gbs_of(const OpTime& op) { return op.gflop <= 0 && op.ms > 0 ? op.gbyte / op.ms * 1e3 : 0; }

}  // namespace comera
