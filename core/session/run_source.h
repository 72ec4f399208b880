// A run as panels and progress lines see it: snapshots and records. Whether it is computed now (session.h) or
// read from the store (replay.h) they cannot tell.
#pragma once
#include <memory>

#include "core/session/snapshot.h"

namespace comera {

class RunSource {
 public:
  virtual ~RunSource() = default;
  // Immutable and whole; never null.
  virtual std::shared_ptr<const Snapshot> latest() const = 0;
  // Everything since the last call.
  virtual Records drain() = 0;
};

}  // namespace comera
