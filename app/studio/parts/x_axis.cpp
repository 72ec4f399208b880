#include "app/studio/parts/x_axis.h"

namespace comera::studio {
namespace {

struct AxisLook {
  const char* name;
  const char* title;
  const char* unit;
  bool whole;
};
constexpr AxisLook kAxisLooks[] = {
    {"step", "Step", "step", true},     {"samples", "Samples", "sample", true},          {"time", "Time, s", "second", false},
    {"epoch", "Epoch", "epoch", false}, {"relative", "Since start, s", "second", false}, {"wall", "Clock", "second", false}};

const AxisLook& look_of(XAxis axis) { return kAxisLooks[static_cast<size_t>(axis)]; }

}  // namespace

const char* title_of(XAxis axis) { return look_of(axis).title; }
const char* name_of(XAxis axis) { return look_of(axis).name; }
const char* unit_of(XAxis axis) { return look_of(axis).unit; }
bool is_whole(XAxis axis) { return look_of(axis).whole; }

StepAxis axis_of(const RunView& view, XAxis axis) {
  switch (axis) {
    case XAxis::step:
      return {};
    case XAxis::samples:
      return {nullptr, static_cast<double>(view.config.train.batch)};
    case XAxis::time:
      return {&view.trained_ms.curve(), 1e-3};
    case XAxis::epoch:
      return {&view.metric("epoch"), 1};
    case XAxis::relative:
      return {&view.wall, 1, view.wall.y().front()};
    case XAxis::wall:
      return {&view.wall, 1};
  }
  return {};
}

const char* no_axis(const RunView& view, XAxis axis) {
  if (axis == XAxis::samples && view.config.data.pack) return "uses packed batches: its samples are not known";
  if (axis == XAxis::time && view.trained_ms.curve().empty()) return "has no step times";
  if (axis == XAxis::epoch && view.metric("epoch").empty()) return "has no epochs";
  if ((axis == XAxis::relative || axis == XAxis::wall) && view.wall.empty()) return "has no clock times";
  return nullptr;
}

}  // namespace comera::studio
