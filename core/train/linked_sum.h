// The sum of shared gradients where devices are linked (shared_gradients.h): calls that may be planned and captured. Messages lie in the
// arena. They follow one another as in a pipeline: while the parts of one are under way, so are the sums of the one before.
#pragma once
#include <deque>
#include <optional>
#include <utility>

#include "core/layers/layer.h"
#include "core/train/shared_gradients.h"

namespace comera {

struct Param;

// Of a pass, whose context must outlive it. All processes make the same calls.
class LinkedSum {
 public:
  // Of round `round`. All rounds between the first and the last make the same calls. `timed`: a device that is waited for, to know
  // waited_ms(); null: none.
  LinkedSum(const SharedGradients& shared, Ctx& ctx, int64_t round, Device* timed = nullptr);
  // The gradient of `param` is complete for this pass. Messages of a segment begin when all of its gradients are, and run beside the pass.
  void complete(const Param& param);
  // The rest of the sum.
  void finish();
  double waited_ms() const { return waited_ms_; }  // for messages, when the own work was done

 private:
  using Segment = SharedGradients::Segment;
  struct Message {  // numbers `at` and so on of every slice
    const Segment* segment;
    int64_t at;
    Tensor own, parts, sum;  // of this process's slice; of the other processes, each use a row
  };
  void queue(size_t segment);
  bool advance();
  void await();
  Tensor piece_of(const Message& message, const Tensor& all, int64_t process) const;
  Tensor part_of(const Message& message, int64_t process, int64_t use) const;
  void begin(Message& message);
  void add(Message& message);
  void trade_parts(const Message& message);
  void trade_sums(const Message& message);
  void give(const Tensor& piece, int64_t process);
  void take(const Tensor& piece, int64_t process);

  const SharedGradients& shared_;
  Ctx& ctx_;
  const int64_t round_, processes_, me_;
  Device* const timed_;
  std::vector<int64_t> missing_;                 // incomplete gradients of each segment; below 0: it is in the queue, or was
  std::deque<std::pair<size_t, int64_t>> next_;  // messages that have not begun
  std::optional<Message> traded_, summed_;       // whose parts are under way; whose sums are
  std::vector<DeviceLink::Piece> sent_, received_;
  bool under_way_ = false;
  double waited_ms_ = 0;
};

}  // namespace comera
