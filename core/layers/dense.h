// The dense layers that hold a matrix or a table. Models ask the LayerFactory, which decides.
#pragma once
#include <memory>

#include "core/layers/factory.h"

namespace comera {

std::unique_ptr<Layer> make_dense_linear(const MatrixSpec& spec, LayerFactory& factory);
// Logits (T, V) = x (T, D) table^T, of the table (V, D) of a token embedding, whose gradient is the sum of both uses.
std::unique_ptr<Layer> make_tied_head(Param& table, LayerFactory& factory, bool bias = false);
std::unique_ptr<Layer> make_dense_embedding(const MatrixSpec& spec, LayerFactory& factory);

}  // namespace comera
