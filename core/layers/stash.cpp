#include "core/layers/stash.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/config/method.h"
#include "core/layers/layer.h"

namespace comera {
namespace {

class ExactStash final : public Stash {
 public:
  StashSlot slot(ParamSet&, const char*, int64_t, uint32_t site) override { return {site, nullptr, 1}; }
  Kept keep(Ctx&, const StashSlot&, const Tensor& x, Use) override {
    Kept kept;
    kept.exact = x;
    return kept;
  }
  Tensor load(Ctx&, const StashSlot&, const Kept& kept) override { return kept.exact; }
};

class WaistStash final : public Stash {
 public:
  explicit WaistStash(std::unique_ptr<Stash> below) : below_(std::move(below)) {}

  StashSlot slot(ParamSet& params, const char* owner, int64_t features, uint32_t site) override {
    return below_->slot(params, owner, features, site);
  }
  Kept keep(Ctx& ctx, const StashSlot& slot, const Tensor& x, Use use) override {
    Kept kept;
    kept.maker = maker(x);
    return kept ? kept : below_->keep(ctx, slot, x, use);
  }
  Tensor load(Ctx& ctx, const StashSlot& slot, const Kept& kept) override {
    return kept.maker ? kept.maker->remake(ctx) : below_->load(ctx, slot, kept);
  }
  bool exact() const override { return below_->exact(); }
  void offer(const Tensor& y, Remake& maker) override {
    if (y.lease()) offers_.push_back({y.lease().block(), y.count(), &maker});
  }
  Remake* maker(const Tensor& x) const override {
    if (!x.lease()) return nullptr;
    for (size_t i = offers_.size(); i-- > 0;)
      if (offers_[i].block == x.lease().block() && offers_[i].count == x.count()) return offers_[i].maker;
    return nullptr;
  }
  void overwritten(const Tensor& x) override {
    if (x.lease()) std::erase_if(offers_, [&](const Offer& offer) { return offer.block == x.lease().block(); });
    below_->overwritten(x);
  }
  void forget() override {
    offers_.clear();
    below_->forget();
  }

 private:
  struct Offer {
    int64_t block, count;  // of the arena; entries, since a part of a block is another tensor
    Remake* maker;
  };
  std::vector<Offer> offers_;  // of one pass: a few dozen
  const std::unique_ptr<Stash> below_;
};

// One sample serves all that keep the same tensor one after another: queries, keys and values.
class SampledStash final : public Stash {
 public:
  SampledStash(const WtaConfig& config, std::unique_ptr<Stash> below) : config_(config), below_(std::move(below)) {}

  StashSlot slot(ParamSet& params, const char* owner, int64_t features, uint32_t site) override {
    return below_->slot(params, owner, features, site);
  }
  Kept keep(Ctx& ctx, const StashSlot& slot, const Tensor& x, Use use) override {
    const int64_t rows = x.size(0), kept = config_.rows_of(rows);
    if (use != Use::product || kept >= rows) return below_->keep(ctx, slot, x, use);
    if (x.lease() && last_ && last_arena_ == x.lease().arena() && last_block_ == x.lease().block() && last_shape_ == x.shape())
      return last_;
    const Tensor index = ctx.temp({kept}, DType::i32, "sampled rows"), weight = ctx.temp({kept}, "weights of sampled rows");
    ctx.ops.run(op::SampleRows{index, weight, x, config_.certain_of(kept), slot.site, ctx.step});
    const Tensor sampled = ctx.temp({kept, x.size(1)}, "sampled x");
    ctx.ops.run(op::PickRows{sampled, x, index, {}});
    last_ = below_->keep(ctx, slot, sampled, use);
    last_.index = index;
    last_.weight = weight;
    last_arena_ = x.lease().arena();
    last_block_ = x.lease().block();
    last_shape_ = x.shape();
    return last_;
  }
  Tensor load(Ctx& ctx, const StashSlot& slot, const Kept& kept) override { return below_->load(ctx, slot, kept); }
  bool exact() const override { return below_->exact(); }
  void overwritten(const Tensor& x) override {
    if (last_arena_ == x.lease().arena() && last_block_ == x.lease().block()) last_ = {};
    below_->overwritten(x);
  }
  void forget() override {
    last_ = {};
    below_->forget();
  }

 private:
  const WtaConfig config_;
  const std::unique_ptr<Stash> below_;
  const Arena* last_arena_ = nullptr;
  int64_t last_block_ = 0;
  Shape last_shape_;
  Kept last_;
};

// Of a tensor only its codes stay. Queries, keys and values keep the same tensor one after another: it is coded once.
class CodedStash : public Stash {
 public:
  Kept keep(Ctx& ctx, const StashSlot& slot, const Tensor& x, Use) override {
    const Shape rows{x.size(0), x.count() / std::max<int64_t>(1, x.size(0))};
    // Blocks are numbered anew each step, so the memory of the last one must not outlive the forward pass (forget).
    const bool same_block = x.lease() && last_arena_ == x.lease().arena() && last_block_ == x.lease().block();
    if (same_block && last_.codes.shape() == rows && fits(last_, slot)) return last_;
    last_ = code(ctx, slot, x.view(rows));
    last_arena_ = x.lease().arena();
    last_block_ = x.lease().block();
    return last_;
  }

  bool exact() const override { return false; }
  void overwritten(const Tensor& x) override {
    if (last_arena_ == x.lease().arena() && last_block_ == x.lease().block()) forget();
  }
  void forget() override {
    last_arena_ = nullptr;
    last_ = {};
  }

 private:
  virtual Kept code(Ctx& ctx, const StashSlot& slot, const Tensor& x) = 0;  // x by rows
  virtual bool fits(const Kept&, const StashSlot&) const { return true; }   // may what is coded already be this slot's too?

  const Arena* last_arena_ = nullptr;
  int64_t last_block_ = 0;
  Kept last_;
};

class Bf16Stash final : public CodedStash {
 public:
  StashSlot slot(ParamSet&, const char*, int64_t, uint32_t site) override { return {site, nullptr, 1}; }

  Tensor load(Ctx& ctx, const StashSlot&, const Kept& kept) override {
    Tensor x = ctx.temp(kept.codes.shape(), "bf16 restored");
    ctx.ops.bf16_load(x, kept.codes);
    return x;
  }

 private:
  Kept code(Ctx& ctx, const StashSlot&, const Tensor& x) override {
    Kept kept;
    kept.codes = ctx.temp(x.shape(), DType::bf16, "bf16 codes");
    ctx.ops.bf16_keep(kept.codes, x);
    return kept;
  }
};

class Int8Stash final : public CodedStash {
 public:
  Int8Stash(int64_t groups, double decay) : groups_(groups), decay_(decay) {}

  StashSlot slot(ParamSet& params, const char* owner, int64_t features, uint32_t site) override {
    int64_t groups = std::clamp<int64_t>(groups_, 1, features);
    while (features % groups != 0) --groups;
    // A width below 0 says that the range has not been used yet.
    State& state = params.add_state(std::string(owner) + ".range", {groups, 2}, -1);
    return {site, &state.value, groups};
  }

  Tensor load(Ctx& ctx, const StashSlot&, const Kept& kept) override {
    Tensor x = ctx.temp(kept.codes.shape(), "int8 restored");
    ctx.ops.int8_load(x, kept.codes, kept.used, kept.used.size(0));
    return x;
  }

 private:
  Kept code(Ctx& ctx, const StashSlot& slot, const Tensor& x) override {
    Kept kept;
    kept.codes = ctx.temp(x.shape(), DType::u8, "int8 codes");
    kept.used = ctx.temp({slot.groups, 2}, "int8 range");
    ctx.ops.int8_keep(kept.codes, kept.used, *slot.range, x, slot.groups, decay_, slot.site, ctx.step);
    return kept;
  }
  bool fits(const Kept& kept, const StashSlot& slot) const override { return kept.used.size(0) == slot.groups; }

  const int64_t groups_;
  const double decay_;
};

}  // namespace

Tensor rows_for(Ctx& ctx, const Kept& kept, const Tensor& d) {
  if (!kept.index) return d;
  Tensor rows = ctx.temp({kept.index.count(), d.size(1)}, "rows of a gradient");
  ctx.ops.run(op::PickRows{rows, d, kept.index, kept.weight});
  return rows;
}

std::unique_ptr<Stash> make_exact_stash() { return std::make_unique<ExactStash>(); }
std::unique_ptr<Stash> make_waist_stash(std::unique_ptr<Stash> below) { return std::make_unique<WaistStash>(std::move(below)); }
std::unique_ptr<Stash> make_bf16_stash() { return std::make_unique<Bf16Stash>(); }
std::unique_ptr<Stash> make_int8_stash(int64_t groups, double decay) { return std::make_unique<Int8Stash>(groups, decay); }
std::unique_ptr<Stash> make_sampled_stash(const WtaConfig& config, std::unique_ptr<Stash> below) {
  return std::make_unique<SampledStash>(config, std::move(below));
}

}  // namespace comera
