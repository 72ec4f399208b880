// Batches of random values that fit a model, for measurements and for comparisons of two models.
#pragma once
#include "core/data/dataset.h"

namespace comera {

// A batch that fills the fields of `layout` with values from all over their ranges (f32: 0..1), every sequence of the full length. The same
// one for the same layout and options.
Batch random_batch(const BatchLayout& layout, const BatchOptions& options);

}  // namespace comera
