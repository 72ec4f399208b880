// Syntax of the filter of the list of runs:
//
//     fashion late            both words, in name, id, status, device, tags or notes
//     "two words"  /demo-\d/  an exact phrase; a regular expression
//     accuracy>0.9 size<=2    fields of the list (run_fields.h): < <= > >= = !=, and : for "contains"
//     lr<1e-3 train.batch=32  settings, by their path or its last parts; lr is train.lr_core
//     tag:good or not (status:failed)   -tag:short: same as `not tag:short`
//
// Adjacent words must all match; `or` has lower precedence. Case is ignored.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/store/run_types.h"

namespace comera::studio {

// Values of settings of stored runs, by dotted path, then by run id; numbers as text.
using SettingValues = std::map<std::string, std::map<std::string, std::string>>;

class RunFilter {
 public:
  RunFilter() = default;  // accepts every run
  explicit RunFilter(const std::string& text);

  // Syntax error; "" = none. With an error every run is accepted.
  const std::string& problem() const { return problem_; }
  // Dotted paths of the settings in the filter; fits() needs their values.
  const std::vector<std::string>& settings() const { return settings_; }
  // True if the filter itself decides on short runs (run_types.h).
  bool asks_for_short() const { return asks_for_short_; }
  // A comparison with an unknown value is false.
  bool fits(const RunRow& row, const SettingValues& settings) const { return !test_ || test_(row, settings); }

 private:
  std::function<bool(const RunRow&, const SettingValues&)> test_;
  std::string problem_;
  std::vector<std::string> settings_;
  bool asks_for_short_ = false;
};

}  // namespace comera::studio
