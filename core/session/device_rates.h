// What the ops of a step take and move, and what the device can do at best, measured on it: for `comera bench` and for the
// profile of a run alike.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace comera {

class Device;
class Memory;
class OpProfile;

struct OpTime {
  std::string op;
  double calls = 0;  // a step
  double ms = 0;     // a step
  double gflop = 0;  // of GEMM work a step
  double gbyte = 0;  // read and written by what is no GEMM, a step
};
// Of so many steps, the most ms first.
std::vector<OpTime> op_times(const OpProfile& profile, int64_t steps);

// 0 = not known.
struct DeviceRates {
  double sgemm_gflops = 0;  // 2048^3
  double copy_gbs = 0;      // read and written by a copy of 64 MiB, on a GPU of 512 MiB
};
inline constexpr int64_t kRatesBytes = int64_t{128} << 20;  // that must be free; more is taken only where 4 GiB are
// About a second on two cores. Throws Error(memory) and Error(device).
DeviceRates measure_rates(Device& device);

// GEMM work of `gflop` in `ms`, by the rate of the device; 0 where it is not known.
double gemm_share(double gflop, double ms, const DeviceRates& rates);
// Of the rate of the device that suits the op: of products where it has any, else of copies. 0 where nothing is known.
double share_of_rate(const OpTime& op, const DeviceRates& rates);
double gflops_of(const OpTime& op);  // of its products; 0 = it has none
double gbs_of(const OpTime& op);     // of what is no product; 0 = not known

// Best of several timings of one product, in ms.
double time_gemm(Device& device, Memory& memory, int64_t m, int64_t k, int64_t n, bool ta, bool tb);

}  // namespace comera
