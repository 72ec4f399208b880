// COMERA_OPS(OP): OP(Name) for every op, a struct op::Name. Devices and tests generate from it what they need of each.
#pragma once
#include "core/ops/attention.h"
#include "core/ops/gradients.h"
#include "core/ops/group_codes.h"
#include "core/ops/group_norm.h"
#include "core/ops/images.h"
#include "core/ops/interaction.h"
#include "core/ops/linalg.h"
#include "core/ops/losses.h"
#include "core/ops/norm.h"
#include "core/ops/optimizers.h"
#include "core/ops/pointwise.h"
#include "core/ops/products.h"
#include "core/ops/ranks.h"
#include "core/ops/row_sampling.h"
#include "core/ops/stash_codes.h"
#include "core/ops/tables.h"
#include "core/ops/waist.h"

// clang-format off
#define COMERA_OPS(OP)                                                               \
  COMERA_PRODUCT_OPS(OP) COMERA_POINTWISE_OPS(OP) COMERA_NORM_OPS(OP)                \
  COMERA_ATTENTION_OPS(OP) COMERA_TABLE_OPS(OP) COMERA_RANK_OPS(OP)                  \
  COMERA_LOSS_OPS(OP) COMERA_GRADIENT_OPS(OP) COMERA_OPTIMIZER_OPS(OP)               \
  COMERA_STASH_OPS(OP) COMERA_GROUP_CODE_OPS(OP) COMERA_ROW_SAMPLING_OPS(OP)       \
  COMERA_LINALG_OPS(OP) COMERA_INTERACTION_OPS(OP) COMERA_IMAGE_OPS(OP) COMERA_GROUP_NORM_OPS(OP)  \
  COMERA_WAIST_OPS(OP)
// clang-format on
