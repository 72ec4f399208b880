// Large working memory of ops on a device whose memory is the host's: a dry run notes how much is needed, the planner lends it
// (Device::lend_workspace). Where too little is lent, the rest is taken for the call.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/rounding.h"

namespace comera {

class Workspace {
 public:
  void plan() { most_ = 0; }                  // forgets what was noted
  int64_t planned() const { return most_; }   // the largest need of a call since then
  int64_t own_bytes() const { return own_; }  // taken beside what was lent, since the start

  void lend(void* data, int64_t bytes) {
    lent_ = static_cast<char*>(data);
    lent_bytes_ = bytes;
  }
  void end_loan(const void* data) noexcept {
    if (data == lent_) lent_ = nullptr;
  }

  // What one call takes, piece by piece, until its end. In a dry run the pieces have no address.
  class Call {
   public:
    Call(Workspace& workspace, bool dry) : workspace_(workspace), dry_(dry) {}
    Call(const Call&) = delete;
    ~Call() {
      if (dry_) workspace_.most_ = std::max(workspace_.most_, used_);
    }
    template <class T>
    T* take(int64_t count) {
      const int64_t bytes = round_up(std::max<int64_t>(count, 1) * static_cast<int64_t>(sizeof(T)), kAlignment), at = used_;
      used_ += bytes;
      if (dry_) return nullptr;
      if (workspace_.lent_ && used_ <= workspace_.lent_bytes_) return reinterpret_cast<T*>(workspace_.lent_ + at);
      workspace_.own_ += bytes;
      void* data = ::operator new (static_cast<size_t>(bytes), std::align_val_t{kAlignment}, std::nothrow);
      if (!data)
        throw Error(ErrorCode::memory, "could not take " + std::to_string(bytes) + " bytes of working memory", "the system refused",
                    "use a smaller model or close other programs");
      own_.emplace_back(data);
      return static_cast<T*>(data);
    }

   private:
    struct Free {
      void operator()(void* data) const { ::operator delete (data, std::align_val_t{kAlignment}); }
    };
    Workspace& workspace_;
    const bool dry_;
    int64_t used_ = 0;
    std::vector<std::unique_ptr<void, Free>> own_;
  };

 private:
  static constexpr int64_t kAlignment = 64;
  char* lent_ = nullptr;
  int64_t lent_bytes_ = 0, most_ = 0, own_ = 0;
};

}  // namespace comera
