// A visitor that knows the path of the field it is at ("model.encoder.layers").
#pragma once
#include <string>

#include "core/base/fields.h"

namespace comera {

class PathVisitor : public FieldVisitor {
 protected:
  std::string path_of(const char* name) const { return prefix_.empty() ? name : prefix_ + "." + name; }
  void nested(const char* name, const GroupInfo&, const std::function<void(FieldVisitor&)>& visit) override {
    const std::string outer = prefix_;
    prefix_ = path_of(name);
    if (enter(name)) {
      visit(*this);
      leave();
    }
    prefix_ = outer;
  }
  // Around the fields of a group; `prefix_` is its path. enter() returns false to skip the fields; leave() is not called then.
  virtual bool enter(const char*) { return true; }
  virtual void leave() {}
  std::string prefix_;
};

}  // namespace comera
