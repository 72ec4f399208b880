// Blocks of transformers with their norms in front (METHODS.md 19.1): of text decoders and of image transformers.
#pragma once
#include <memory>
#include <string>

#include "core/layers/blocks.h"

namespace comera {

struct PreNormSpec {
  AttentionSpec attention;
  int64_t hidden = 0;               // of the feed-forward layer
  std::string feed_forward = {};    // its activation (activation_of), or "swiglu"
  bool feed_forward_bias = true;    // of its matrices
  NormKind norm = NormKind::layer;  // of both
  double norm_eps = 0;
  double dropout = 0;  // of what is added to x
};

// x <- x + attention(norm(x)), then x <- x + feed_forward(norm(x)): NAME.attn.norm, NAME.attn.q ..., NAME.ffn.norm, NAME.ffn.in and
// NAME.ffn.out, or for SwiGLU NAME.ffn.gate, NAME.ffn.up and NAME.ffn.down.
std::unique_ptr<Layer> pre_norm_block(const std::string& name, const PreNormSpec& spec, LayerFactory& factory);

}  // namespace comera
