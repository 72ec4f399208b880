// The x axes of curves, and positions of steps on them.
#pragma once
#include "app/studio/shown_run/run_view.h"

namespace comera::studio {

// time: training steps only, without evaluations, checkpoints and pauses. relative: clock time since the first step. wall: time of day, for
// a single run.
enum class XAxis { step, samples, time, epoch, relative, wall };
inline constexpr int kXAxes = 5;       // axes that can align several runs
inline constexpr int kXAxesOfOne = 6;  // axes of a single run
const char* title_of(XAxis axis);      // with unit
const char* name_of(XAxis axis);       // used in preferences: "step", "samples", ...
const char* unit_of(XAxis axis);       // unit of a position: "step", "second"
bool is_whole(XAxis axis);             // positions are whole numbers

// Requires no_axis() == null.
StepAxis axis_of(const RunView& view, XAxis axis);
// Why a run has no positions on an axis, as "it ..."; null = it has.
const char* no_axis(const RunView& view, XAxis axis);

}  // namespace comera::studio
