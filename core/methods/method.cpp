#include "core/methods/method.h"

#include "core/base/error.h"

namespace comera {

std::string Method::edit(RunConfig& config, const std::string& path, const std::string& value) {
  RankOverrides none;
  return apply_edit(config, none, path, value);
}

void Method::check_edit(const RunConfig& config, const std::string& path, const std::string& value) const {
  if (path == "stage" || path.starts_with("rank."))
    throw Error(ErrorCode::usage, "cannot change " + path, "this run has no tensor trains, so no late stage and no ranks",
                "start another run with --set method.weights=tt");
  RunConfig changed = config;
  RankOverrides none;
  apply_edit(changed, none, path, value);
}

const LiveRanks& Method::live_ranks() const {
  static const LiveRanks kNone;
  return kNone;
}

const RankOverrides& Method::overrides() const {
  static const RankOverrides kNone;
  return kNone;
}

}  // namespace comera
