// The sweep of the form as the JSON that `comera sweep` reads, and its plan. Window and command line plan the same text, so they train the
// same points. Pure but for the files that a config is read from.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/session/sweep_plan.h"

namespace comera::studio {

struct NewRun;

inline constexpr const char* kMethodPath = "method";  // the method by name, which is no setting of a config
inline constexpr size_t kMostSweepRuns = 1000;        // of a sweep in the window

// Every setting may vary but the name, which is made of the values, and the seed, which has a list of its own.
bool may_vary(const std::string& path);

// Values of a list as typed, "1e-3, 3e-3", as JSON texts. Commas within brackets and quotes belong to a value.
struct ValueList {
  std::vector<std::string> values;
  std::string problem;  // the first thing that is wrong; "" = nothing
};
ValueList read_values(const std::string& path, const std::string& text);

struct VariedSetting {
  std::string path;
  std::string text;  // as typed
  ValueList list = {};
  bool told = false;  // the problem of the list is shown: not while the first wrong value is being typed
};

// The file. Where the method varies, what the form has chosen for its parts is left out: each point has that of its method.
std::string sweep_file(const NewRun& form);

struct PlannedSweep {
  Sweep sweep;
  std::vector<SweepPoint> points;
  std::string problem;  // why there are none; "" = there are

  size_t runs() const;
  std::string text_of_point(size_t point) const;  // "lr=0.001 batch=8"
};
PlannedSweep plan_sweep_file(const std::string& file);  // never throws

}  // namespace comera::studio
