#include "tests/train/recording_device.h"

#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

#include "core/base/error.h"

namespace comera::test {
namespace {

// What is added to an address of the CPU. The sum is no address that a process can have here.
constexpr uintptr_t kAway = uintptr_t{1} << 47;

// Hands every call to the device, its arguments as the CPU's ops want them.
class RecordingOps final : public Ops {
 public:
  explicit RecordingOps(RecordingDevice& device) : device_(device) {}

  bool gathers() const override { return true; }

 private:
  // Without the lease on a block of the arena: a kept one would count as a temporary that is still held.
  Tensor on_cpu(const char* op, const Tensor& t) {
    return t ? Tensor(device_.on_cpu(t.raw(), t.bytes(), op), t.shape(), t.dtype()) : Tensor();
  }
  Mat on_cpu(const char* op, Mat m) {
    m.tensor = on_cpu(op, m.tensor);
    return m;
  }
  Sequences on_cpu(const char* op, const Sequences& s) { return {on_cpu(op, s.starts), on_cpu(op, s.lengths), s.longest}; }
  RankTable on_cpu(const char* op, const RankTable& t) {
    return {on_cpu(op, t.ranks), on_cpu(op, t.bond_begin), on_cpu(op, t.layer_bond), on_cpu(op, t.mode_sizes), on_cpu(op, t.layer_weight)};
  }
  template <class T>
  T on_cpu(const char*, const T& value) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_same_v<T, Dropout> || std::is_same_v<T, AdamRule> ||
                      std::is_same_v<T, AxisOrder>,
                  "does it hold tensors?");
    return value;
  }

  template <class... Params, class... Args>
  void call(const char* op, void (Ops::*method)(Params...), const Args&... args) {
    std::tuple<Args...> kept{on_cpu(op, args)...};
    device_.make(op,
                 [method, kept = std::move(kept)](Ops& cpu) { std::apply([&](const Args&... each) { (cpu.*method)(each...); }, kept); });
  }

  void do_gemm(const Mat& c, const Mat& a, bool ta, const Mat& b, bool tb, double alpha, double beta) override {
    call<const Mat&, const Mat&, bool, const Mat&, bool, double, double>("gemm", &Ops::gemm, c, a, ta, b, tb, alpha, beta);
  }
  void do_linear(const Tensor& y, const Tensor& x, const Tensor& w, const Tensor& b, bool transpose_w) override {
    call("linear", &Ops::linear, y, x, w, b, transpose_w);
  }
  void do_linear_backward(const Tensor& dw, const Tensor& db, const Tensor& dy, const Tensor& x) override {
    call("linear_backward", &Ops::linear_backward, dw, db, dy, x);
  }
  void do_gemms(std::span<const Product> all) override {
    std::vector<Product> kept;
    for (const Product& p : all)
      kept.push_back({on_cpu("gemm", p.c), on_cpu("gemm", p.a), p.transpose_a, on_cpu("gemm", p.b), p.transpose_b, p.alpha, p.beta});
    device_.make("gemm", [kept](Ops& cpu) { cpu.gemm(kept); });
  }
  void do_copies(std::span<const Copying> all) override {
    std::vector<Copying> kept;
    for (const Copying& p : all) kept.push_back({on_cpu("copy", p.y), on_cpu("copy", p.x)});
    device_.make("copy", [kept](Ops& cpu) { cpu.copy(kept); });
  }
  void do_rank_masks(std::span<const RankMask> all, const Tensor& step) override {
    std::vector<RankMask> kept;
    for (const RankMask& p : all) kept.push_back({on_cpu("rank_mask", p.e), on_cpu("rank_mask", p.u), on_cpu("rank_mask", p.d)});
    device_.make("rank_mask", [kept, step = on_cpu("rank_mask", step)](Ops& cpu) { cpu.rank_mask(kept, step); });
  }
  void do_rank_masks_backward(std::span<const RankMaskGradient> all, const Tensor& step) override {
    const char* op = "rank_mask_backward";
    std::vector<RankMaskGradient> kept;
    for (const RankMaskGradient& p : all)
      kept.push_back({on_cpu(op, p.du), on_cpu(op, p.dd), on_cpu(op, p.de), on_cpu(op, p.u), on_cpu(op, p.d)});
    device_.make(op, [kept, step = on_cpu(op, step)](Ops& cpu) { cpu.rank_mask_backward(kept, step); });
  }
  void do_fill(const Mat& y, double value) override { call("fill", &Ops::fill, y, value); }
  void do_copy(const Tensor& y, const Tensor& x) override { call<const Tensor&, const Tensor&>("copy", &Ops::copy, y, x); }
  void do_add(const Tensor& y, const Tensor& a, const Tensor& b) override { call("add", &Ops::add, y, a, b); }
  void do_scale(const Tensor& y, const Tensor& x, double factor) override { call("scale", &Ops::scale, y, x, factor); }
  void do_axpy(const Tensor& y, double factor, const Tensor& x) override { call("axpy", &Ops::axpy, y, factor, x); }
  void do_permute(const Tensor& y, const Tensor& x, const AxisOrder& axes) override { call("permute", &Ops::permute, y, x, axes); }
  void do_broadcast_rows(const Tensor& y, const Tensor& row) override { call("broadcast_rows", &Ops::broadcast_rows, y, row); }
  void do_column_sum(const Tensor& sum, const Tensor& x) override { call("column_sum", &Ops::column_sum, sum, x); }
  void do_activation_forward(Activation kind, const Tensor& y, const Tensor& x) override {
    call("activation_forward", &Ops::activation_forward, kind, y, x);
  }
  void do_activation_backward(Activation kind, const Tensor& dx, const Tensor& dy, const Tensor& saved) override {
    call("activation_backward", &Ops::activation_backward, kind, dx, dy, saved);
  }
  void do_dropout(const Tensor& y, const Tensor& x, Dropout dropout, const Tensor& step) override {
    call("dropout", &Ops::dropout, y, x, dropout, step);
  }
  void do_norm_forward(const Tensor& y, const Tensor& sum, const Tensor& mean, const Tensor& rstd, const Tensor& x, const Tensor& branch,
                       const Tensor& gamma, const Tensor& beta, double eps, Dropout dropout, const Tensor& step) override {
    call("norm_forward", &Ops::norm_forward, y, sum, mean, rstd, x, branch, gamma, beta, eps, dropout, step);
  }
  void do_norm_backward(const Tensor& dsum, const Tensor& dbranch, const Tensor& dgamma, const Tensor& dbeta, const Tensor& dy,
                        const Tensor& sum, const Tensor& mean, const Tensor& rstd, const Tensor& gamma, Dropout dropout,
                        const Tensor& step) override {
    call("norm_backward", &Ops::norm_backward, dsum, dbranch, dgamma, dbeta, dy, sum, mean, rstd, gamma, dropout, step);
  }
  void do_attention_forward(const Tensor& out, const Tensor& lse, const Tensor& probs, const Tensor& q, const Tensor& k, const Tensor& v,
                            const Sequences& sequences, int64_t heads, Dropout dropout, const Tensor& step) override {
    call("attention_forward", &Ops::attention_forward, out, lse, probs, q, k, v, sequences, heads, dropout, step);
  }
  void do_attention_backward(const Tensor& dq, const Tensor& dk, const Tensor& dv, const Tensor& dout, const Tensor& lse,
                             const Tensor& probs, const Tensor& q, const Tensor& k, const Tensor& v, const Sequences& sequences,
                             int64_t heads, Dropout dropout, const Tensor& step) override {
    call("attention_backward", &Ops::attention_backward, dq, dk, dv, dout, lse, probs, q, k, v, sequences, heads, dropout, step);
  }
  void do_gather_rows(const Tensor& y, const Tensor& table, const Tensor& ids, bool accumulate) override {
    call("gather_rows", &Ops::gather_rows, y, table, ids, accumulate);
  }
  void do_scatter_rows(const Tensor& dtable, const Tensor& dy, const Tensor& ids) override {
    call("scatter_rows", &Ops::scatter_rows, dtable, dy, ids);
  }
  void do_first_tokens(const Tensor& y, const Tensor& x, const Sequences& sequences) override {
    call("first_tokens", &Ops::first_tokens, y, x, sequences);
  }
  void do_first_tokens_backward(const Tensor& dx, const Tensor& dy, const Sequences& sequences) override {
    call("first_tokens_backward", &Ops::first_tokens_backward, dx, dy, sequences);
  }
  void do_ttm_lookup(const Tensor& y, const Tensor& p, const Tensor& q, const Tensor& ids) override {
    call("ttm_lookup", &Ops::ttm_lookup, y, p, q, ids);
  }
  void do_ttm_lookup_backward(const Tensor& dp, const Tensor& dq, const Tensor& dy, const Tensor& p, const Tensor& q,
                              const Tensor& ids) override {
    call("ttm_lookup_backward", &Ops::ttm_lookup_backward, dp, dq, dy, p, q, ids);
  }
  void do_rank_mask(const Tensor& e, const Tensor& u, const Tensor& d, const Tensor& step) override {
    call<const Tensor&, const Tensor&, const Tensor&, const Tensor&>("rank_mask", &Ops::rank_mask, e, u, d, step);
  }
  void do_rank_mask_backward(const Tensor& du, const Tensor& dd, const Tensor& de, const Tensor& u, const Tensor& d,
                             const Tensor& step) override {
    call<const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&>(
        "rank_mask_backward", &Ops::rank_mask_backward, du, dd, de, u, d, step);
  }
  void do_rank_objective(const Tensor& results, const RankTable& table, const Tensor& step) override {
    call("rank_objective", &Ops::rank_objective, results, table, step);
  }
  void do_rank_objective_backward(const Tensor& dranks, const RankTable& table, const Tensor& results, const Tensor& step) override {
    call("rank_objective_backward", &Ops::rank_objective_backward, dranks, table, results, step);
  }
  void do_sum_of_squares(const Tensor& results, const Tensor& x) override { call("sum_of_squares", &Ops::sum_of_squares, results, x); }
  void do_core_penalty_backward(const Tensor& dw, const Tensor& w, const Tensor& step) override {
    call("core_penalty_backward", &Ops::core_penalty_backward, dw, w, step);
  }
  void do_cross_entropy(const Tensor& results, const Tensor& dlogits, const Tensor& row_loss, const Tensor& logits,
                        const Tensor& labels) override {
    call("cross_entropy", &Ops::cross_entropy, results, dlogits, row_loss, logits, labels);
  }
  void do_binary_cross_entropy(const Tensor& results, const Tensor& dlogits, const Tensor& row_loss, const Tensor& logits,
                               const Tensor& labels) override {
    call("binary_cross_entropy", &Ops::binary_cross_entropy, results, dlogits, row_loss, logits, labels);
  }
  void do_scale_by_ce_weight(const Tensor& y, const Tensor& results) override {
    call("scale_by_ce_weight", &Ops::scale_by_ce_weight, y, results);
  }
  void do_adam(std::span<const AdamTensors> all, AdamRule rule, const Tensor& step) override {
    std::vector<AdamTensors> kept;
    for (const AdamTensors& p : all)
      kept.push_back({on_cpu("adam", p.w), on_cpu("adam", p.g), on_cpu("adam", p.m), on_cpu("adam", p.v), p.group});
    device_.make("adam", [kept, rule, step = on_cpu("adam", step)](Ops& cpu) { cpu.adam(kept, rule, step); });
  }
  void do_adam_update(const Tensor& u, const Tensor& g, const Tensor& m, const Tensor& v, AdamRule rule, ParamGroup group,
                      const Tensor& step) override {
    call("adam_update", &Ops::adam_update, u, g, m, v, rule, group, step);
  }
  void do_weight_decay(const Tensor& w, ParamGroup group, const Tensor& step) override {
    call("weight_decay", &Ops::weight_decay, w, group, step);
  }
  void do_adam8bit(std::span<const Adam8bitTensors> all, AdamRule rule, const Tensor& step) override {
    const char* op = "adam8bit";
    std::vector<Adam8bitTensors> kept;
    for (const Adam8bitTensors& p : all)
      kept.push_back(
          {on_cpu(op, p.w), on_cpu(op, p.g), on_cpu(op, p.m8), on_cpu(op, p.v8), on_cpu(op, p.absmax_m), on_cpu(op, p.absmax_v), p.group});
    device_.make(op, [kept, rule, step = on_cpu(op, step)](Ops& cpu) { cpu.adam8bit(kept, rule, step); });
  }
  void do_dequantise8bit(const Tensor& x, const Tensor& codes, const Tensor& absmax, bool is_signed) override {
    call("dequantise8bit", &Ops::dequantise8bit, x, codes, absmax, is_signed);
  }
  void do_quantise8bit(const Tensor& codes, const Tensor& absmax, const Tensor& x, bool is_signed) override {
    call("quantise8bit", &Ops::quantise8bit, codes, absmax, x, is_signed);
  }
  void do_int8_keep(const Tensor& codes, const Tensor& used, const Tensor& range, const Tensor& x, int64_t groups, double decay,
                    uint32_t site, const Tensor& step) override {
    call("int8_keep", &Ops::int8_keep, codes, used, range, x, groups, decay, site, step);
  }
  void do_int8_load(const Tensor& x, const Tensor& codes, const Tensor& used, int64_t groups) override {
    call("int8_load", &Ops::int8_load, x, codes, used, groups);
  }
  void do_bf16_keep(const Tensor& codes, const Tensor& x) override { call("bf16_keep", &Ops::bf16_keep, codes, x); }
  void do_bf16_load(const Tensor& x, const Tensor& codes) override { call("bf16_load", &Ops::bf16_load, x, codes); }
  void do_singular_basis(const Tensor& basis, const Tensor& g, bool left) override {
    device_.outside_capture("singular_basis");
    call("singular_basis", &Ops::singular_basis, basis, g, left);
  }

  RecordingDevice& device_;
};

class RecordedProgram final : public CapturedProgram {
 public:
  RecordedProgram(RecordingDevice& device, RecordingDevice::Recording recording) : device_(device), recording_(std::move(recording)) {}
  void launch() override { device_.launch(recording_); }

 private:
  RecordingDevice& device_;
  const RecordingDevice::Recording recording_;
};

}  // namespace

RecordingDevice::RecordingDevice(int threads) : cpu_(open_cpu_device(threads)), ops_(std::make_unique<RecordingOps>(*this)) {}

// ---- memory -------------------------------------------------------------------------------------------------------

void* RecordingDevice::allocate(int64_t bytes) {
  outside_capture("allocate");
  void* data = cpu_->allocate(bytes);
  std::memset(data, 0xff, static_cast<size_t>(bytes));
  const auto address = reinterpret_cast<uintptr_t>(data);
  pieces_[address] = {next_piece_++, bytes};
  return reinterpret_cast<void*>(address + kAway);
}

void RecordingDevice::release(void* data) noexcept {
  if (capturing_ && !released_after_) released_after_ = last_op_;  // end_capture() tells: this call must not throw
  const uintptr_t address = reinterpret_cast<uintptr_t>(data) - kAway;
  pieces_.erase(address);
  cpu_->release(reinterpret_cast<void*>(address));
}

void* RecordingDevice::on_cpu(const void* address, int64_t bytes, const char* what) {
  if (bytes == 0) return nullptr;
  const uintptr_t begin = reinterpret_cast<uintptr_t>(address) - kAway;
  auto piece = pieces_.upper_bound(begin);
  CHECK(piece != pieces_.begin(), what << " names memory that is not the device's");
  --piece;
  const uintptr_t end = begin + static_cast<uintptr_t>(bytes), piece_end = piece->first + static_cast<uintptr_t>(piece->second.bytes);
  CHECK(end <= piece_end, what << " names memory that is not the device's");
  if (capturing_) recording_.pieces.insert(piece->second.id);
  return reinterpret_cast<void*>(begin);
}

void RecordingDevice::upload(void* device, const void* host, int64_t bytes) {
  outside_capture("upload");
  cpu_->upload(on_cpu(device, bytes, "upload"), host, bytes);
}

void RecordingDevice::download(void* host, const void* device, int64_t bytes) {
  outside_capture("download");
  cpu_->download(host, on_cpu(device, bytes, "download"), bytes);
}

// ---- capture ------------------------------------------------------------------------------------------------------

void RecordingDevice::outside_capture(const char* what) const {
  CHECK(!capturing_, what << " inside of a capture, after op '" << last_op_ << "'");
}

void RecordingDevice::make(const char* op, Call call) {
  last_op_ = op;
  if (capturing_) return recording_.calls.push_back(std::move(call));
  ++eager_calls;
  call(cpu_->ops());
}

void RecordingDevice::begin_capture() {
  outside_capture("begin_capture");
  recording_ = {};
  last_op_ = "none";
  released_after_ = nullptr;
  capturing_ = true;
}

std::unique_ptr<CapturedProgram> RecordingDevice::end_capture() {
  CHECK(capturing_, "end_capture without a beginning");
  capturing_ = false;
  CHECK(!released_after_, "release inside of a capture, after op '" << released_after_ << "'");
  ++captured;
  return std::make_unique<RecordedProgram>(*this, std::exchange(recording_, {}));
}

void RecordingDevice::abandon_capture() noexcept {
  capturing_ = false;
  recording_ = {};
}

void RecordingDevice::launch(const Recording& recording) {
  outside_capture("launch");
  std::set<int64_t> there;
  for (const auto& [address, piece] : pieces_) there.insert(piece.id);
  for (const int64_t id : recording.pieces) CHECK(there.count(id) == 1, "a program is launched after memory it names was given back");
  ++launches;
  for (const Call& call : recording.calls) call(cpu_->ops());
}

}  // namespace comera::test
