// The x axes of curves, and the position of steps on them.
#pragma once
#include "app/studio/shown_run/run_view.h"

namespace comera::studio {

// time: of the training steps, without evaluation, checkpoints and pauses. relative: by the clock, since the first step.
// wall: the clock itself, of one run alone.
enum class XAxis { step, samples, time, epoch, relative, wall };
inline constexpr int kXAxes = 5;       // those that runs can be aligned by
inline constexpr int kXAxesOfOne = 6;  // those of one run
const char* title_of(XAxis axis);      // with its unit
const char* name_of(XAxis axis);       // for preferences: "step", "samples", ...
const char* unit_of(XAxis axis);       // of one place: "step", "second"
bool is_whole(XAxis axis);             // its places are whole numbers

// Call only when no_axis() says nothing.
StepAxis axis_of(const RunView& view, XAxis axis);
// Why a run has no place on an axis, as "it ..."; null when it has.
const char* no_axis(const RunView& view, XAxis axis);

}  // namespace comera::studio
