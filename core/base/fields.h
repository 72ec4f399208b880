// A config struct lists its fields once, in `void fields(FieldVisitor&)`. JSON, `--set a.b=v`, validation, the
// form of the window and the stored run all come from that list (core/README.md, "Extension points").
#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace comera {

struct Range {  // inclusive bounds of a number
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
};

// What a field may do while a run trains (UX: the "while running" column).
enum class Live { no, yes };

struct FieldInfo {
  const char* help = "";  // one line, with the unit
  Range range = {};
  Live live = Live::no;
  std::vector<std::string> choices = {};  // for texts with a fixed set of values
};

class FieldVisitor {
 public:
  virtual ~FieldVisitor() = default;
  virtual void field(const char* name, int64_t& value, const FieldInfo& info) = 0;
  virtual void field(const char* name, double& value, const FieldInfo& info) = 0;
  virtual void field(const char* name, bool& value, const FieldInfo& info) = 0;
  virtual void field(const char* name, std::string& value, const FieldInfo& info) = 0;
  virtual void field(const char* name, std::vector<int64_t>& value, const FieldInfo& info) = 0;

  // A named struct of fields inside this one.
  template <class Config>
  void group(const char* name, Config& config) {
    nested(name, [&config](FieldVisitor& visitor) { config.fields(visitor); });
  }

 protected:
  virtual void nested(const char* name, const std::function<void(FieldVisitor&)>& visit) = 0;
};

// One thing wrong with a config, shown beside its field: path "model.layers", text "must be 1..64, is 0".
struct Problem {
  std::string path, text, hint;
};

}  // namespace comera
