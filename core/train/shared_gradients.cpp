#include "core/train/shared_gradients.h"

#include <algorithm>

#include "core/layers/layer.h"

namespace comera {
namespace {
// Numbers of a message to a process at most: so many that its latency is small in its time, through hosts and between devices.
constexpr int64_t kPiece = int64_t{1} << 16, kLinkedPiece = int64_t{1} << 20;
}  // namespace

SharedGradients::SharedGradients(Communicator& communicator, int64_t parts, DeviceLink* link)
    : communicator_(communicator), link_(link), parts_(parts), rounds_((parts + communicator.processes() - 1) / communicator.processes()) {}

void SharedGradients::plan(int64_t count, DType dtype, const std::vector<Twice>& twice, const std::vector<Range>& left_out,
                           int64_t states) {
  const int64_t processes = communicator_.processes(), size = static_cast<int64_t>(size_of(dtype));
  segments_.clear();
  dtype_ = dtype;
  int64_t begin = 0;
  kept_ = sent_bytes_ = 0;
  const auto add = [&](int64_t end, Of of) {
    if (begin == end) return;
    const int64_t slice = slice_of(end - begin);
    segments_.push_back({begin, end - begin, of, slice, kept_});
    // Parts, then the sum. Hosts fill the last slice up, devices send it as it is.
    const int64_t own = std::clamp(end - begin - communicator_.process() * slice, int64_t{0}, slice);
    const int64_t to_sum = link_ ? end - begin - own : (processes - 1) * slice, summed = (processes - 1) * (link_ ? own : slice);
    sent_bytes_ += (rounds_ * (of == Of::used_twice ? 2 : 1) * to_sum + summed) * size;
    kept_ += slice;
    begin = end;
  };
  auto range = left_out.begin();
  const auto add_until = [&](int64_t end) {
    for (; range != left_out.end() && range->begin < end; ++range) {
      add(range->begin, Of::gradients);
      begin = range->end;
    }
    add(end, Of::gradients);
  };
  for (const Twice& param : twice) {
    add_until(param.place);
    add(param.place + param.count, Of::used_twice);
  }
  add_until(count);
  begin = 0;
  add(states, Of::states);
  any_twice_ = !twice.empty();
  piece_ = std::min(slice_of(std::max(count, states)), link_ ? kLinkedPiece : kPiece);
  host_piece_ = std::min(slice_of(std::max(count, states)), kPiece);
  // Own pieces, those of all, those of second uses, and sums. Linked, all but sums between rounds is in the arena.
  const int64_t messages = (any_twice_ ? 3 : 2) * processes * piece_ + (rounds_ > 1 ? 0 : piece_);
  bytes_ = ((link_ ? 0 : messages) + (rounds_ > 1 ? kept_ : 0)) * size;
}

void SharedGradients::attach(void* memory, const Tensor& grads, const std::vector<Twice>& twice, const Tensor& states) {
  memory_ = static_cast<char*>(memory);
  auto next = twice.begin();
  for (Segment& segment : segments_) {
    segment.first = (segment.of == Of::states ? states : grads).rows(segment.begin, segment.count);
    if (segment.of == Of::used_twice) segment.second = (next++)->second.view({segment.count});
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
  for (const Segment& segment : segments_)
    segment.first.dtype() == DType::f32 ? add_segment<float>(device, segment, round) : add_segment<double>(device, segment, round);
}

void SharedGradients::add(Ctx& ctx, int64_t round) {
  CHECK(link_, "devices that are not linked");
  const int64_t processes = communicator_.processes(), me = communicator_.process();
  const int64_t computed = std::min(processes, parts_ - round * processes);
  std::vector<DeviceLink::Piece> sent, received;
  const auto exchange = [&] {
    if (!ctx.ops.dry) link_->exchange(sent, received);
    sent.clear();
    received.clear();
  };
  for (const Segment& segment : segments_)
    for (int64_t at = 0; at < segment.slice; at += piece_) {
      // Of the slice that process p sums; slices at the end may be shorter, or empty.
      const auto piece_of = [&](const Tensor& all, int64_t p) {
        const int64_t first = std::min(p * segment.slice + at, segment.count);
        return all.rows(first, std::min({piece_, segment.slice - at, segment.count - first}));
      };
      const auto give = [&](const Tensor& piece, int64_t p) { sent.push_back({static_cast<int>(p), piece.raw(), piece.bytes()}); };
      const auto take = [&](const Tensor& piece, int64_t p) { received.push_back({static_cast<int>(p), piece.raw(), piece.bytes()}); };
      const Tensor own = piece_of(segment.first, me);
      const int64_t mine = own.count(), uses = segment.second ? 2 : 1;
      Tensor parts, sum;  // parts: of the other processes, each use a row
      if (mine > 0) {
        parts = ctx.temp({(processes - 1) * uses, mine}, dtype_, "gradients of other processes");
        sum = rounds_ > 1 ? Tensor(memory_, {kept_}, dtype_).rows(segment.kept + at, mine) : ctx.temp({mine}, dtype_, "sum of gradients");
      }
      const auto part_of = [&](int64_t p, int64_t use) {
        if (p == me) return piece_of(use == 0 ? segment.first : segment.second, me);
        return parts.rows((p < me ? p : p - 1) * uses + use, 1);
      };
      for (int64_t p = 0; p < processes; ++p)
        for (int64_t use = 0; p != me && use < uses; ++use) {
          give(piece_of(use == 0 ? segment.first : segment.second, p), p);
          if (mine > 0) take(part_of(p, use), p);
        }
      exchange();
      if (mine > 0 && round == 0) ctx.ops.fill(Mat(sum, 1, mine), 0);
      for (int64_t p = 0; mine > 0 && p < computed; ++p)
        for (int64_t use = 0; use < uses; ++use) ctx.ops.axpy(sum, 1, part_of(p, use));
      if (round + 1 < rounds_) continue;
      for (int64_t p = 0; p < processes; ++p) {
        if (p == me) continue;
        if (mine > 0) give(sum, p);
        take(piece_of(segment.first, p), p);
      }
      exchange();
      if (mine > 0) ctx.ops.copy(own, sum);
    }
}

}  // namespace comera
