// Products with operands rounded to bf16 (rounded_products.h).
#pragma once
#include "core/cpu/thread_pool.h"
#include "core/ops/products.h"
#include "core/ops/rounded_products.h"
#include "core/ops/workspace.h"

namespace comera {

// False where the product is left to f32: in f64, with a side up to kSkinny, whose rounding would be a pass as long as the product, or with
// an alpha or a beta that the library does not have. The rounded operands, 2 (m k + k n) bytes, are workspace; a dry call notes them
// and needs no `how`.
bool rounded_gemm(ThreadPool& pool, Workspace& workspace, bool dry, const RoundedProducts* how, const GemmArgs& product);

}  // namespace comera
