#include "core/base/fields.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "core/base/path_visitor.h"

namespace comera {
namespace {

// Calls `each(path, value, info)` for every field.
template <class Each>
class EveryField : public PathVisitor {
 public:
  explicit EveryField(Each each) : each_(std::move(each)) {}
  void field(const char* name, int64_t& value, const FieldInfo& info) override { each_(path_of(name), value, info); }
  void field(const char* name, double& value, const FieldInfo& info) override { each_(path_of(name), value, info); }
  void field(const char* name, bool& value, const FieldInfo& info) override { each_(path_of(name), value, info); }
  void field(const char* name, std::string& value, const FieldInfo& info) override { each_(path_of(name), value, info); }
  void field(const char* name, std::vector<int64_t>& value, const FieldInfo& info) override { each_(path_of(name), value, info); }

 private:
  Each each_;
};

// A setting that others may depend on.
struct Axis {
  std::string value;
  size_t choices = 0;
};

// "weights are ".
std::string name_is(const When& when) {
  const std::string path = when.path, name = path.substr(path.rfind('.') + 1);
  return name + (name.ends_with('s') ? " are " : " is ");
}

// "weights are dense" where one value remains, else "optimizer is not galore".
std::string reason(const When& when, const Axis& axis) {
  const std::string is = name_is(when);
  if (axis.choices == when.values.size() + 1) return is + axis.value;
  std::string wanted;
  for (const std::string& value : when.values) wanted += (wanted.empty() ? "" : " or ") + value;
  return is + "not " + wanted;
}

class UnusedFinder : public PathVisitor {
 public:
  // `before`: what is unused by conditions without others, on which others may depend; null: others do not count.
  UnusedFinder(const std::map<std::string, Axis>& axes, const UnusedSettings* before) : axes_(axes), before_(before) {}
  UnusedSettings unused;
  void field(const char* name, int64_t&, const FieldInfo& info) override { look(name, info.when); }
  void field(const char* name, double&, const FieldInfo& info) override { look(name, info.when); }
  void field(const char* name, bool&, const FieldInfo& info) override { look(name, info.when); }
  void field(const char* name, std::string&, const FieldInfo& info) override { look(name, info.when); }
  void field(const char* name, std::vector<int64_t>&, const FieldInfo& info) override { look(name, info.when); }

 private:
  void nested(const char* name, const GroupInfo& info, const std::function<void(FieldVisitor&)>& visit) override {
    const std::string outer = why_;
    look(name, info.when);
    const auto found = unused.find(path_of(name));
    if (found != unused.end()) why_ = found->second;
    PathVisitor::nested(name, info, visit);
    why_ = outer;
  }
  void look(const char* name, const When& when) {
    const std::string why = why_.empty() && *when.path ? why_not(when) : why_;
    if (!why.empty()) unused[path_of(name)] = why;
  }
  bool counts(const When& other) const { return before_ && !before_->contains(other.path); }
  bool holds(const When& when) const {
    const auto axis = axes_.find(when.path);
    return axis == axes_.end() || std::find(when.values.begin(), when.values.end(), axis->second.value) != when.values.end();
  }
  // "" where one of the conditions holds; else the reason by the last one whose setting is used.
  std::string unmet(const When& when) const {
    if (holds(when)) return "";
    std::string why = reason(when, axes_.at(when.path));
    for (const When& other : when.others) {
      if (!counts(other)) continue;
      why = why_not(other);
      if (why.empty()) break;
    }
    return why;
  }
  std::string why_not(const When& when) const {
    if (std::string why = unmet(when); !why.empty()) return why;
    for (const When& exception : when.unless)
      if (axes_.contains(exception.path) && counts(exception) && holds(exception))
        return name_is(exception) + axes_.at(exception.path).value;
    return "";
  }
  const std::map<std::string, Axis>& axes_;
  const UnusedSettings* const before_;
  std::string why_;  // of the group around
};

}  // namespace

FieldValues field_values(const FieldsFn& config) {
  FieldValues values;
  EveryField collector([&](std::string path, const auto& value, const FieldInfo&) { values[std::move(path)] = value; });
  config(collector);
  return values;
}

void set_field_values(const FieldsFn& config, const FieldValues& values) {
  EveryField setter([&](const std::string& path, auto& value, const FieldInfo&) {
    if (const auto found = values.find(path); found != values.end()) value = std::get<std::decay_t<decltype(value)>>(found->second);
  });
  config(setter);
}

std::string title_with_unit(const FieldInfo& info) {
  return *info.unit ? std::string(info.title) + " (" + info.unit + ")" : std::string(info.title);
}

UnusedSettings unused_settings(const FieldsFn& config) {
  std::map<std::string, Axis> axes;
  EveryField collector([&](const std::string& path, const auto& value, const FieldInfo& info) {
    using Value = std::decay_t<decltype(value)>;
    if constexpr (std::is_same_v<Value, std::string>) axes[path] = {value, info.choices.size()};
    if constexpr (std::is_same_v<Value, bool>) axes[path] = {value ? "true" : "false", 2};
  });
  config(collector);
  UnusedFinder first(axes, nullptr);
  config(first);
  UnusedFinder finder(axes, &first.unused);
  config(finder);
  return std::move(finder.unused);
}

}  // namespace comera
