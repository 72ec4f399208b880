// The sizes of a small encoder, for tests of models and of training.
#pragma once
#include "core/models/model.h"

namespace comera::test {

// Two blocks of three heads.
inline EncoderConfig two_blocks(int64_t d_model, int64_t d_ff, int64_t vocab, int64_t positions, double dropout) {
  EncoderConfig config;
  config.layers = 2;
  config.d_model = d_model;
  config.heads = 3;
  config.d_ff = d_ff;
  config.vocab = vocab;
  config.positions = positions;
  config.segments = 2;
  config.dropout = config.attention_dropout = dropout;
  return config;
}

}  // namespace comera::test
