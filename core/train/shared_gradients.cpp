#include "core/train/shared_gradients.h"

#include <algorithm>
#include <utility>

namespace comera {
namespace {
// Numbers of a message to a process at most: so many that its latency is small in its time, through hosts and between devices.
constexpr int64_t kPiece = int64_t{1} << 16, kLinkedPiece = int64_t{1} << 20;
}  // namespace

SharedGradients::SharedGradients(Communicator& communicator, int64_t parts, DeviceLink* link)
    : communicator_(communicator), link_(link), parts_(parts), rounds_((parts + communicator.processes() - 1) / communicator.processes()) {}

void SharedGradients::plan(const std::vector<Gradient>& gradients, int64_t count, DType dtype, int64_t states, int64_t least) {
  const int64_t processes = communicator_.processes(), size = static_cast<int64_t>(size_of(dtype));
  segments_.clear();
  dtype_ = dtype;
  kept_ = sent_bytes_ = 0;
  any_twice_ = false;
  int64_t begin = 0, in_segment = 0, largest = 0;
  const auto end_segment = [&](int64_t end, Of of) {
    if (begin == end) return;
    const int64_t slice = slice_of(end - begin);
    segments_.push_back({begin, end - begin, of, slice, kept_, std::exchange(in_segment, 0)});
    // Parts, then the sum. Hosts fill the last slice up, devices send it as it is.
    const int64_t own = std::clamp(end - begin - communicator_.process() * slice, int64_t{0}, slice);
    const int64_t to_sum = link_ ? end - begin - own : (processes - 1) * slice, summed = (processes - 1) * (link_ ? own : slice);
    sent_bytes_ += (rounds_ * (of == Of::used_twice ? 2 : 1) * to_sum + summed) * size;
    kept_ += slice;
    largest = std::max(largest, slice);
    begin = end;
  };
  for (const Gradient& gradient : gradients) {
    const bool twice = static_cast<bool>(gradient.second);
    any_twice_ |= twice;
    if (twice || gradient.left_out) end_segment(gradient.begin, Of::gradients);
    if (gradient.left_out)
      begin = gradient.end;
    else if (++in_segment; twice || gradient.end - begin >= least)
      end_segment(gradient.end, twice ? Of::used_twice : Of::gradients);
  }
  end_segment(count, Of::gradients);
  begin = 0;
  end_segment(states, Of::states);
  host_piece_ = std::min(slice_of(std::max(count, states)), kPiece);
  piece_ = link_ ? std::min(largest, kLinkedPiece) : host_piece_;
  // Own pieces, those of all, those of second uses, and sums. Linked, all but sums between rounds is in the arena.
  const int64_t messages = (any_twice_ ? 3 : 2) * processes * piece_ + (rounds_ > 1 ? 0 : piece_);
  bytes_ = ((link_ ? 0 : messages) + (rounds_ > 1 ? kept_ : 0)) * size;
}

void SharedGradients::attach(void* memory, const Tensor& grads, const std::vector<Gradient>& gradients, const Tensor& states) {
  memory_ = static_cast<char*>(memory);
  auto next = gradients.begin();
  for (Segment& segment : segments_) {
    segment.first = (segment.of == Of::states ? states : grads).rows(segment.begin, segment.count);
    if (segment.of != Of::used_twice) continue;
    next = std::find_if(next, gradients.end(), [](const Gradient& gradient) { return static_cast<bool>(gradient.second); });
    segment.second = (next++)->second.view({segment.count});
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

char* SharedGradients::host_memory() {
  if (!link_) return memory_;
  host_.resize(static_cast<size_t>(2 * communicator_.processes() * piece_bytes()));
  return host_.data();
}

void SharedGradients::collect(Device& device, const Tensor& all) {
  CHECK(all.size(0) % parts_ == 0, all.size(0) << " rows in " << parts_ << " blocks");
  const int64_t processes = communicator_.processes(), block = all.bytes() / parts_;
  char *values = static_cast<char*>(all.raw()), *mine = host_memory(), *theirs = mine + piece_bytes();
  for (int64_t first = 0; first < parts_; first += processes)
    for (int64_t at = 0; at < block; at += piece_bytes()) {
      const int64_t piece = std::min(piece_bytes(), block - at);
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
  T *mine = reinterpret_cast<T*>(host_memory()), *all = mine + processes * host_piece_;
  for (int64_t at = 0; at < slice; at += host_piece_) {
    const int64_t piece = std::min(host_piece_, slice - at);
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
  char *bytes = static_cast<char*>(values.raw()), *piece_memory = host_memory();
  for (int64_t at = 0; at < values.bytes(); at += piece_bytes()) {
    const int64_t piece = std::min(piece_bytes(), values.bytes() - at);
    if (communicator_.process() == 0) device.download(piece_memory, bytes + at, piece);
    communicator_.spread(piece_memory, piece);
    if (communicator_.process() > 0) device.upload(bytes + at, piece_memory, piece);
  }
}

void SharedGradients::add(Device& device, int64_t round) {
  CHECK(!link_, "devices that are linked");
  for (const Segment& segment : segments_)
    segment.first.dtype() == DType::f32 ? add_segment<float>(device, segment, round) : add_segment<double>(device, segment, round);
}

}  // namespace comera
