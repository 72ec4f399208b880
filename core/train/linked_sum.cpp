#include "core/train/linked_sum.h"

#include <algorithm>

#include "core/base/clock.h"

namespace comera {

LinkedSum::LinkedSum(const SharedGradients& shared, Ctx& ctx, int64_t round, Device* timed)
    : shared_(shared),
      ctx_(ctx),
      round_(round),
      processes_(shared.communicator_.processes()),
      me_(shared.communicator_.process()),
      timed_(timed) {
  CHECK(shared.linked(), "devices that are not linked");
  for (const Segment& segment : shared.segments_) missing_.push_back(segment.gradients);
}

void LinkedSum::complete(const Param& param) {
  const std::vector<Segment>& segments = shared_.segments_;
  const auto holds = [&](const Segment& segment) {
    return segment.of != SharedGradients::Of::states && segment.begin <= param.grad_place &&
           param.grad_place < segment.begin + segment.count;
  };
  const auto found = std::find_if(segments.begin(), segments.end(), holds);
  if (found == segments.end()) return;  // left out
  const auto segment = static_cast<size_t>(found - segments.begin());
  if (--missing_[segment] > 0) return;
  queue(segment);
  advance();
}

void LinkedSum::finish() {
  for (size_t segment = 0; segment < missing_.size(); ++segment)
    if (missing_[segment] >= 0) queue(segment);
  while (advance()) {
  }
}

void LinkedSum::queue(size_t segment) {
  missing_[segment] = -1;
  for (int64_t at = 0; at < shared_.segments_[segment].slice; at += shared_.piece_) next_.emplace_back(segment, at);
}

// A step of the pipeline; false: nothing was left to do.
bool LinkedSum::advance() {
  await();
  if (summed_ && summed_->sum) ctx_.ops.copy(summed_->own, summed_->sum);
  summed_.reset();
  if (traded_) {
    add(*traded_);
    if (round_ + 1 == shared_.rounds_) summed_ = std::move(traded_);
    traded_.reset();
  }
  if (!next_.empty()) {
    const auto [segment, at] = next_.front();
    next_.pop_front();
    begin(traded_.emplace(Message{&shared_.segments_[segment], at, {}, {}, {}}));
  }
  if (!traded_ && !summed_) return false;
  if (traded_) trade_parts(*traded_);
  if (summed_) trade_sums(*summed_);
  if (!ctx_.ops.dry) shared_.link_->start(sent_, received_);
  under_way_ = true;
  sent_.clear();
  received_.clear();
  return true;
}

void LinkedSum::await() {
  if (!std::exchange(under_way_, false) || ctx_.ops.dry) return;
  if (timed_) timed_->synchronize();
  const double begin = now_ms();
  shared_.link_->finish();
  if (!timed_) return;
  timed_->synchronize();
  waited_ms_ += now_ms() - begin;
}

// Of the slice that `process` sums; slices at the end may be shorter, or empty.
Tensor LinkedSum::piece_of(const Message& message, const Tensor& all, int64_t process) const {
  const Segment& segment = *message.segment;
  const int64_t first = std::min(process * segment.slice + message.at, segment.count);
  return all.rows(first, std::min({shared_.piece_, segment.slice - message.at, segment.count - first}));
}

Tensor LinkedSum::part_of(const Message& message, int64_t process, int64_t use) const {
  if (process == me_) return piece_of(message, use == 0 ? message.segment->first : message.segment->second, me_);
  return message.parts.rows((process < me_ ? process : process - 1) * (message.segment->second ? 2 : 1) + use, 1);
}

void LinkedSum::begin(Message& message) {
  message.own = piece_of(message, message.segment->first, me_);
  const int64_t mine = message.own.count(), uses = message.segment->second ? 2 : 1;
  if (mine == 0) return;
  message.parts = ctx_.temp({(processes_ - 1) * uses, mine}, shared_.dtype_, "gradients of other processes");
  message.sum = shared_.rounds_ > 1
                    ? Tensor(shared_.memory_, {shared_.kept_}, shared_.dtype_).rows(message.segment->kept + message.at, mine)
                    : ctx_.temp({mine}, shared_.dtype_, "sum of gradients");
}

void LinkedSum::add(Message& message) {
  if (!message.sum) return;
  const int64_t computed = std::min(processes_, shared_.parts_ - round_ * processes_);
  if (round_ == 0) ctx_.ops.fill(Mat(message.sum, 1, message.sum.count()), 0);
  for (int64_t p = 0; p < computed; ++p)
    for (int64_t use = 0; use < (message.segment->second ? 2 : 1); ++use) ctx_.ops.axpy(message.sum, 1, part_of(message, p, use));
  message.parts = {};
}

void LinkedSum::trade_parts(const Message& message) {
  const Segment& segment = *message.segment;
  for (int64_t p = 0; p < processes_; ++p)
    for (int64_t use = 0; p != me_ && use < (segment.second ? 2 : 1); ++use) {
      give(piece_of(message, use == 0 ? segment.first : segment.second, p), p);
      if (message.sum) take(part_of(message, p, use), p);
    }
}

void LinkedSum::trade_sums(const Message& message) {
  for (int64_t p = 0; p < processes_; ++p) {
    if (p == me_) continue;
    if (message.sum) give(message.sum, p);
    take(piece_of(message, message.segment->first, p), p);
  }
}

void LinkedSum::give(const Tensor& piece, int64_t process) { sent_.push_back({static_cast<int>(process), piece.raw(), piece.bytes()}); }

void LinkedSum::take(const Tensor& piece, int64_t process) { received_.push_back({static_cast<int>(process), piece.raw(), piece.bytes()}); }

}  // namespace comera
