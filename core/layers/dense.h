// The dense layers that hold a matrix or a table. Models ask the LayerFactory, which decides.
#pragma once
#include <memory>

#include "core/layers/factory.h"

namespace comera {

std::unique_ptr<Layer> make_dense_linear(const MatrixSpec& spec, LayerFactory& factory);
std::unique_ptr<Layer> make_dense_embedding(const MatrixSpec& spec, LayerFactory& factory);

}  // namespace comera
