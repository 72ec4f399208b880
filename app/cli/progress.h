// Progress of a training run on the terminal: a block that is redrawn, or, if stderr is not a terminal, one plain line every 30 seconds.
#pragma once
#include <chrono>
#include <string>
#include <vector>

#include "app/cli/cli.h"
#include "core/base/thinned.h"
#include "core/session/snapshot.h"

namespace comera::cli {

class Progress {
 public:
  explicit Progress(const Context& context);
  void show(const Snapshot& snapshot, bool last);
  void summary(const Snapshot& snapshot);  // to stdout, after the run has ended

 private:
  std::string warning_of(const std::string& store_problem);
  void draw(const Snapshot& snapshot, const std::string& above);
  const Context& context_;
  bool terminal_ = false, color_ = false;
  int lines_ = 0;  // height of the block on the screen
  int64_t last_step_ = -1;
  std::string problem_;          // last reported problem of the store; "" = none
  Thinned<double> curve_{1024};  // training loss, one value per redraw
  std::chrono::steady_clock::time_point next_line_{};
};

// The document that `train --json` prints at the end.
Json result_json(const Snapshot& snapshot);

}  // namespace comera::cli
