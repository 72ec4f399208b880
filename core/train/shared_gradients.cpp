#include "core/train/shared_gradients.h"

#include <algorithm>

namespace comera {
namespace {
constexpr int64_t kPiece = int64_t{1} << 16;  // numbers of a message to a process: large enough that its latency is small in its time
}

SharedGradients::SharedGradients(Communicator& communicator, int64_t parts)
    : communicator_(communicator), parts_(parts), rounds_((parts + communicator.processes() - 1) / communicator.processes()) {}

void SharedGradients::plan(int64_t count, DType dtype, size_t twice) {
  const int64_t processes = communicator_.processes();
  any_twice_ = twice > 0;
  piece_ = std::min(slice_of(count), kPiece);
  // A run that is cut into segments has a number more a segment in its slices.
  const int64_t kept = rounds_ > 1 ? slice_of(count) + 2 * static_cast<int64_t>(twice) : piece_;
  // Own pieces, those of all, those of second uses, and sums.
  bytes_ = ((any_twice_ ? 3 : 2) * processes * piece_ + kept) * static_cast<int64_t>(size_of(dtype));
}

void SharedGradients::attach(void* memory, const Tensor& grads, std::vector<Twice> twice) {
  memory_ = static_cast<char*>(memory);
  segments_.clear();
  int64_t begin = 0, kept = 0;
  const auto add = [&](int64_t end, const Tensor& second) {
    if (begin == end) return;
    const int64_t slice = slice_of(end - begin);
    segments_.push_back({grads.rows(begin, end - begin), second, slice, kept});
    kept += slice;
    begin = end;
  };
  std::sort(twice.begin(), twice.end(), [](const Twice& a, const Twice& b) { return a.first.raw() < b.first.raw(); });
  for (const auto& [first, second] : twice) {
    const auto bytes = static_cast<const char*>(first.raw()) - static_cast<const char*>(grads.raw());
    const int64_t at = bytes / static_cast<int64_t>(size_of(grads.dtype()));
    add(at, {});
    add(at + first.count(), second);
  }
  add(grads.count(), {});
}

template <class T>
void SharedGradients::add_segment(Device& device, const Segment& segment, int64_t round) {
  const int64_t processes = communicator_.processes(), size = static_cast<int64_t>(sizeof(T));
  const int64_t computed = std::min(processes, parts_ - round * processes);
  T *mine = reinterpret_cast<T*>(memory_), *all = mine + processes * piece_, *seconds = all + processes * piece_;
  T* sums = any_twice_ ? seconds + processes * piece_ : seconds;
  for (int64_t at = 0; at < segment.slice; at += piece_) {
    const int64_t piece = std::min(piece_, segment.slice - at);
    const auto each_piece = [&](auto visit) {  // (place in the messages, place in the segment, numbers)
      for (int64_t p = 0; p < processes; ++p) {
        const int64_t first = p * segment.slice + at, count = std::min(piece, segment.first.count() - first);
        if (count > 0) visit(p * piece, first, count);
      }
    };
    const auto trade = [&](const Tensor& from, T* to) {
      each_piece([&](int64_t place, int64_t first, int64_t count) { device.download(mine + place, from.data<T>() + first, count * size); });
      communicator_.trade(mine, to, piece * size);
    };
    trade(segment.first, all);
    if (segment.second) trade(segment.second, seconds);
    T* sum = rounds_ > 1 ? sums + segment.kept + at : sums;
    if (round == 0) std::fill(sum, sum + piece, T(0));
    for (int64_t p = 0; p < computed; ++p)
      for (const T* part : {all, segment.second ? seconds : nullptr})
        for (int64_t i = 0; part && i < piece; ++i) sum[i] += part[p * piece + i];
    if (round + 1 < rounds_) continue;
    communicator_.gather(sum, mine, piece * size);
    each_piece(
        [&](int64_t place, int64_t first, int64_t count) { device.upload(segment.first.data<T>() + first, mine + place, count * size); });
  }
}

void SharedGradients::add(Device& device, int64_t round) {
  for (const Segment& segment : segments_)
    segment.first.dtype() == DType::f32 ? add_segment<float>(device, segment, round) : add_segment<double>(device, segment, round);
}

}  // namespace comera
