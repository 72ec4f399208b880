// What differs between the configs of two runs.
#pragma once
#include <string>
#include <vector>

namespace comera {

// One key. The path is dotted ("train.batch"), values are JSON text; a side that lacks the key is "".
struct ConfigDifference {
  std::string path, a, b;
  bool same = false;  // only when asked for all
};

// Leaves of two config texts (a list is one leaf), in the order of `a`, then what only `b` has. Throws Error(config) when
// a text is not JSON.
std::vector<ConfigDifference> diff_configs(const std::string& a, const std::string& b, bool only_different = true);

}  // namespace comera
