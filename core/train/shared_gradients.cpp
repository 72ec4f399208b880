#include "core/train/shared_gradients.h"

#include <algorithm>

namespace comera {
namespace {
constexpr int64_t kPiece = int64_t{1} << 16;  // numbers of a message to a process: large enough that its latency is small in its time
}

SharedGradients::SharedGradients(Communicator& communicator, int64_t parts)
    : communicator_(communicator), parts_(parts), rounds_((parts + communicator.processes() - 1) / communicator.processes()) {}

void SharedGradients::plan(int64_t count, DType dtype, const std::vector<Twice>& twice, const std::vector<Range>& left_out) {
  const int64_t processes = communicator_.processes(), size = static_cast<int64_t>(size_of(dtype));
  segments_.clear();
  int64_t begin = 0, kept = 0;
  sent_bytes_ = 0;
  const auto add = [&](int64_t end, bool is_twice) {
    if (begin == end) return;
    const int64_t slice = slice_of(end - begin);
    segments_.push_back({begin, end - begin, is_twice, slice, kept});
    sent_bytes_ += (rounds_ * (is_twice ? 2 : 1) + 1) * (processes - 1) * slice * size;  // parts, then the sum
    kept += slice;
    begin = end;
  };
  auto range = left_out.begin();
  const auto add_until = [&](int64_t end) {
    for (; range != left_out.end() && range->begin < end; ++range) {
      add(range->begin, false);
      begin = range->end;
    }
    add(end, false);
  };
  for (const Twice& param : twice) {
    add_until(param.place);
    add(param.place + param.count, true);
  }
  add_until(count);
  any_twice_ = !twice.empty();
  piece_ = std::min(slice_of(count), kPiece);
  piece_bytes_ = piece_ * size;
  // Own pieces, those of all, those of second uses, and sums.
  bytes_ = ((any_twice_ ? 3 : 2) * processes * piece_ + (rounds_ > 1 ? kept : piece_)) * size;
}

void SharedGradients::attach(void* memory, const Tensor& grads, const std::vector<Twice>& twice) {
  memory_ = static_cast<char*>(memory);
  auto next = twice.begin();
  for (Segment& segment : segments_) {
    segment.first = grads.rows(segment.begin, segment.count);
    if (segment.twice) segment.second = (next++)->second;
  }
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

void SharedGradients::collect(Device& device, const Tensor& all) {
  CHECK(all.size(0) % parts_ == 0, all.size(0) << " rows in " << parts_ << " blocks");
  const int64_t processes = communicator_.processes(), block = all.bytes() / parts_;
  char *values = static_cast<char*>(all.raw()), *mine = memory_, *theirs = memory_ + piece_bytes_;
  for (int64_t first = 0; first < parts_; first += processes)
    for (int64_t at = 0; at < block; at += piece_bytes_) {
      const int64_t piece = std::min(piece_bytes_, block - at);
      const int64_t own = first + communicator_.process();
      if (own < parts_) device.download(mine, values + own * block + at, piece);
      communicator_.gather(mine, theirs, piece);
      for (int64_t p = 0; p < processes && first + p < parts_; ++p)
        if (first + p != own) device.upload(values + (first + p) * block + at, theirs + p * piece, piece);
    }
}

// In slices as gradients; sums in the order of the processes.
template <class T>
void SharedGradients::average_of(Device& device, const Tensor& values) {
  const int64_t processes = communicator_.processes(), size = static_cast<int64_t>(sizeof(T)), slice = slice_of(values.count());
  T *mine = reinterpret_cast<T*>(memory_), *all = mine + processes * piece_;
  for (int64_t at = 0; at < slice; at += piece_) {
    const int64_t piece = std::min(piece_, slice - at);
    const auto each_piece = [&](auto visit) {  // (place in the messages, place in the values, numbers)
      for (int64_t p = 0; p < processes; ++p) {
        const int64_t first = p * slice + at, count = std::min(piece, values.count() - first);
        if (count > 0) visit(p * piece, first, count);
      }
    };
    each_piece([&](int64_t place, int64_t first, int64_t count) { device.download(mine + place, values.data<T>() + first, count * size); });
    communicator_.trade(mine, all, piece * size);
    for (int64_t i = 0; i < piece; ++i) {
      T sum = 0;
      for (int64_t p = 0; p < processes; ++p) sum += all[p * piece + i];
      mine[i] = sum / static_cast<T>(processes);
    }
    communicator_.gather(mine, all, piece * size);
    each_piece([&](int64_t place, int64_t first, int64_t count) { device.upload(values.data<T>() + first, all + place, count * size); });
  }
}

void SharedGradients::average(Device& device, const Tensor& values) {
  values.dtype() == DType::f32 ? average_of<float>(device, values) : average_of<double>(device, values);
}

void SharedGradients::spread(Device& device, const Tensor& values) {
  char* bytes = static_cast<char*>(values.raw());
  for (int64_t at = 0; at < values.bytes(); at += piece_bytes_) {
    const int64_t piece = std::min(piece_bytes_, values.bytes() - at);
    if (communicator_.process() == 0) device.download(memory_, bytes + at, piece);
    communicator_.spread(memory_, piece);
    if (communicator_.process() > 0) device.upload(bytes + at, memory_, piece);
  }
}

void SharedGradients::add(Device& device, int64_t round) {
  for (const Segment& segment : segments_)
    segment.first.dtype() == DType::f32 ? add_segment<float>(device, segment, round) : add_segment<double>(device, segment, round);
}

}  // namespace comera
