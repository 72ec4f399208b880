// What the values of the axes of a method (core/config/method.h) make.
#pragma once
#include <memory>

#include "core/config/method.h"

namespace comera {

class Optimizer;
class Stash;

std::unique_ptr<Optimizer> make_optimizer(const MethodConfig& config);
std::unique_ptr<Stash> make_stash(const MethodConfig& config);

}  // namespace comera
