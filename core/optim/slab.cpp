#include "core/optim/slab.h"

#include <algorithm>

#include "core/base/pieces.h"
#include "core/ops/quant_math.h"

namespace comera {
namespace {

bool is_codes(const Slot& slot) { return slot.format == SlotFormat::signed_codes || slot.format == SlotFormat::unsigned_codes; }

int64_t bytes_of(const Slot& slot, DType dtype) { return slot.shape.count() * static_cast<int64_t>(size_of(slot.dtype(dtype))); }

}  // namespace

void declare_moments(Slots& slots, const Shape& shape, bool eight_bit) {
  if (!eight_bit) {
    slots.push_back({"m", shape});
    slots.push_back({"v", shape});
    return;
  }
  const Shape blocks{pieces_of(shape.count(), kQuantBlock)};
  slots.push_back({"m8", shape, SlotFormat::signed_codes});
  slots.push_back({"absmax_m", blocks, SlotFormat::absmax});
  slots.push_back({"v8", shape, SlotFormat::unsigned_codes});
  slots.push_back({"absmax_v", blocks, SlotFormat::absmax});
}

void SlabOptimizer::attach(Param& param) {
  const auto [place, is_new] = index_.try_emplace(&param, slots_.size());
  if (is_new) slots_.emplace_back();
  slots_[place->second] = declare(param);
}

MemoryByPurpose SlabOptimizer::planned(DType dtype) const {
  MemoryByPurpose bytes;
  for (const Slots& slots : slots_)
    for (const Slot& slot : slots) bytes[Purpose::optimizer] += Arena::aligned(bytes_of(slot, dtype));
  return bytes;
}

void SlabOptimizer::place(char* base, DType dtype) {
  for (Slots& slots : slots_)
    for (Slot& slot : slots) {
      slot.tensor = Tensor(base, slot.shape, slot.dtype(dtype));
      if (base) base += Arena::aligned(bytes_of(slot, dtype));
    }
}

void SlabOptimizer::allocate(Device& device, Memory& memory, DType dtype) {
  CHECK(buffer_.bytes() == 0, "the optimizer's state is allocated already");
  memory_ = &memory;
  const int64_t bytes = planned(dtype)[Purpose::optimizer];
  buffer_ = Buffer(memory, bytes, Purpose::optimizer);
  char* base = static_cast<char*>(buffer_.data());
  place(base, dtype);
  // The start of every kind of state is zero bytes: 8-bit codes 0 with absmax 0 are the number 0 too.
  const std::vector<char> zeros(static_cast<size_t>(std::min<int64_t>(bytes, 1 << 20)), 0);
  const int64_t chunk = static_cast<int64_t>(zeros.size());
  for (int64_t done = 0; done < bytes; done += chunk) device.upload(base + done, zeros.data(), std::min(chunk, bytes - done));
}

void SlabOptimizer::release() {
  for (Slots& slots : slots_)
    for (Slot& slot : slots) slot.tensor = {};
  Buffer gone = std::move(buffer_);
}

Slots& SlabOptimizer::slots_of(const Param& param) {
  const auto found = index_.find(&param);
  CHECK(found != index_.end(), "'" << param.name << "' was not attached to the optimizer");
  return slots_[found->second];
}

void SlabOptimizer::states(Param& param, const std::function<void(const std::string& name, Tensor& value)>& visit) {
  for (Slot& slot : slots_of(param)) visit(slot.name, slot.tensor);
}

Tensor SlabOptimizer::scratch(int64_t count, Buffer& buffer) const {
  buffer = Buffer(*memory_, count * static_cast<int64_t>(size_of(DType::f32)), Purpose::workspace);
  return Tensor(buffer.data(), Shape{count}, DType::f32);
}

std::vector<std::vector<double>> SlabOptimizer::capture(Device& device, Ctx& ctx, Param& param) {
  std::vector<std::vector<double>> values;
  const Slots& slots = slots_of(param);
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].format == SlotFormat::real) values.push_back(to_host(device, slots[i].tensor));
    if (!is_codes(slots[i])) continue;
    Buffer buffer;
    const Tensor plain = scratch(slots[i].shape.count(), buffer);
    ctx.ops.dequantise8bit(plain, slots[i].tensor.view(plain.shape()), slots[i + 1].tensor, slots[i].format == SlotFormat::signed_codes);
    values.push_back(to_host(device, plain));
  }
  return values;
}

void SlabOptimizer::restore(Device& device, Ctx& ctx, Param& param, const std::vector<std::vector<double>>& elementwise) {
  size_t next = 0;
  const Slots& slots = slots_of(param);
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].format == SlotFormat::absmax) continue;
    CHECK(next < elementwise.size() && static_cast<int64_t>(elementwise[next].size()) == slots[i].shape.count(),
          "state " << slots[i].name << " of '" << param.name << "' is " << slots[i].shape.text());
    const std::vector<double>& values = elementwise[next++];
    if (slots[i].format == SlotFormat::real) {
      from_host(device, slots[i].tensor, values);
      continue;
    }
    Buffer buffer;
    const Tensor plain = scratch(slots[i].shape.count(), buffer);
    from_host(device, plain, values);
    ctx.ops.quantise8bit(slots[i].tensor.view(plain.shape()), slots[i + 1].tensor, plain, slots[i].format == SlotFormat::signed_codes);
    device.synchronize();  // the scratch goes now
  }
  CHECK(next == elementwise.size(), elementwise.size() << " state tensors for '" << param.name << "', which has " << next);
}

void SlabOptimizer::enlist(const Param& param) {
  const Slots& slots = slots_of(param);
  if (slots[0].format == SlotFormat::real)
    enlisted_.push_back({param.value, param.grad, slots[0].tensor, slots[1].tensor, param.group});
  else
    enlisted_8bit_.push_back({param.value, param.grad, slots[0].tensor, slots[2].tensor, slots[1].tensor, slots[3].tensor, param.group});
}

void SlabOptimizer::step_enlisted(Ctx& ctx, const AdamRule& rule) {
  ctx.ops.adam(enlisted_, rule, ctx.step);
  ctx.ops.adam8bit(enlisted_8bit_, rule, ctx.step);
  enlisted_.clear();  // their memory stays, so that a steady step allocates nothing
  enlisted_8bit_.clear();
}

}  // namespace comera
