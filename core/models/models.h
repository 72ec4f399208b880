// The table of models (models.cpp) and what makes each.
#pragma once
#include "core/models/model.h"

namespace comera {

// "gelu", "gelu_tanh", "silu", "relu", "tanh".
Activation activation_of(const std::string& name);

std::unique_ptr<Model> make_encoder(const ModelConfig& config, LayerFactory& factory);
void encoder_inputs(const ModelConfig& config, BatchLayout& layout);
std::unique_ptr<Model> make_decoder(const ModelConfig& config, LayerFactory& factory);
void decoder_inputs(const ModelConfig& config, BatchLayout& layout);
std::unique_ptr<Model> make_mlp(const ModelConfig& config, LayerFactory& factory);
void mlp_inputs(const ModelConfig& config, BatchLayout& layout);
std::unique_ptr<Model> make_dlrm(const ModelConfig& config, LayerFactory& factory);
void dlrm_inputs(const ModelConfig& config, BatchLayout& layout);
std::unique_ptr<Model> make_cnn(const ModelConfig& config, LayerFactory& factory);
void cnn_inputs(const ModelConfig& config, BatchLayout& layout);
std::unique_ptr<Model> make_vit(const ModelConfig& config, LayerFactory& factory);
void vit_inputs(const ModelConfig& config, BatchLayout& layout);

}  // namespace comera
