// A config struct lists its fields once, in `void fields(FieldVisitor&)`, each with its one description. JSON, `--set a.b=v`, validation,
// the help, the form and the controls of the window, comparison and the stored run all read that list (core/README.md, "Extension
// points").
#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace comera {

struct Range {  // inclusive bounds of a number
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
};

// What a field may do while a run trains; replans: the next step is planned and captured again, and may take other memory.
enum class Live { no, yes, replans };

// How a slider divides its range; powers: of two only.
enum class Scale { linear, log, powers };

struct Choice {  // one value of a text with a fixed set of values
  const char* id;
  const char* title = "";
  const char* about = "";  // one sentence
};

// The setting on which another one depends, and the values of it that use the other: {"method.weights", {"tt"}}.
struct When {
  const char* path = "";  // dotted, from the root of the config; "" = always used
  std::vector<std::string> values = {};
  std::vector<When> others = {};  // each is enough too, where the setting that it names is used itself
  std::vector<When> unless = {};  // each makes it unused all the same, where the setting that it names is used itself
};

struct FieldInfo {
  const char* title = "";   // a few words, without the unit
  const char* symbol = "";  // short name beside the last part of the path, for filters and legends: "S0"
  const char* unit = "";    // "steps"; "" = a number without one
  const char* help = "";    // one line
  const char* more = "";    // further sentences, for tooltips
  Range range = {};
  Range usual = {0, 0};  // ends of a slider; low = high: no slider
  Scale scale = Scale::linear;
  Live live = Live::no;
  std::vector<Choice> choices = {};  // for texts with a fixed set of values
  When when = {};

  bool slides() const { return usual.low < usual.high; }
  bool is_live() const { return live != Live::no; }
};

struct GroupInfo {
  const char* title = "";
  bool main = false;  // what a new run is mostly about: open when its form opens
  When when = {};
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
  void group(const char* name, Config& config, const GroupInfo& info = {}) {
    nested(name, info, [&config](FieldVisitor& visitor) { config.fields(visitor); });
  }

 protected:
  virtual void nested(const char* name, const GroupInfo& info, const std::function<void(FieldVisitor&)>& visit) = 0;
};

// Type-erased struct: calls config.fields(visitor).
using FieldsFn = std::function<void(FieldVisitor&)>;
template <class Config>
FieldsFn fields_of(Config& config) {
  return [&config](FieldVisitor& visitor) { config.fields(visitor); };
}

using FieldValue = std::variant<int64_t, double, bool, std::string, std::vector<int64_t>>;
using FieldValues = std::map<std::string, FieldValue>;  // by dotted path
FieldValues field_values(const FieldsFn& config);
// Sets the fields that `values` has; each keeps its type.
void set_field_values(const FieldsFn& config, const FieldValues& values);

// "Sequence length (tokens)"
std::string title_with_unit(const FieldInfo& info);

// Settings and groups without effect, by path, each with the reason: "model.tt" -> "weights are dense".
using UnusedSettings = std::map<std::string, std::string>;
UnusedSettings unused_settings(const FieldsFn& config);

// One thing wrong with a config, shown beside its field: path "model.layers", text "must be 1..64, is 0".
struct Problem {
  std::string path, text, hint;
};

}  // namespace comera
