// op::WaistActivation and its backward in floats, where the wide side is long: tiles of f(t r) are made in a first-level cache, and go on
// from there.
#pragma once
#include "core/cpu/thread_pool.h"
#include "core/ops/waist.h"
#include "core/ops/workspace.h"

namespace comera {

// False: not for these sizes, or this processor has no wide multiply-add. Nothing was done then, nor noted in a dry run.
bool waist_tiles(ThreadPool& pool, Workspace& workspace, bool dry, const op::WaistActivation& args);
bool waist_tiles(ThreadPool& pool, Workspace& workspace, bool dry, const op::WaistActivationBackward& args);

}  // namespace comera
