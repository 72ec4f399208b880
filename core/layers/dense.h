// The dense layers that hold a matrix or a table. Models ask the LayerFactory, which decides.
#pragma once
#include <memory>
#include <string>

#include "core/layers/factory.h"

namespace comera {

std::unique_ptr<Layer> make_dense_linear(const std::string& name, int64_t in, int64_t out, LinearKind kind, LayerFactory& factory);
std::unique_ptr<Layer> make_dense_embedding(const std::string& name, int64_t rows, int64_t columns, LayerFactory& factory);

}  // namespace comera
