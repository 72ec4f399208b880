// Text from a trained language model, token by token.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/config/config.h"

namespace comera {

class Device;
class Engine;

// How the next token is chosen from the logits.
struct Sampling {
  double temperature = 1;  // logits are divided by it; 0: the most likely token
  int64_t top = 0;         // only so many of the most likely tokens; 0: all
  uint64_t seed = 0;       // with the place of the token it decides the draw
};

class Generator {
 public:
  // `file`: a checkpoint, or any safetensors file with a config in its metadata. `device` must outlive the generator. Throws Error(config)
  // if the model is no language model.
  Generator(const std::string& file, Device& device);
  ~Generator();
  const RunConfig& config() const;

  // `count` tokens that follow `tokens`, which must not be empty; each is told as soon as it is known, false ends it. The model sees the
  // last model.length tokens. Throws Error(config) for a token out of the vocabulary.
  std::vector<int32_t> continue_with(std::vector<int32_t> tokens, int64_t count, const Sampling& sampling,
                                     const std::function<bool(int32_t token)>& told = {});
  // Logits (V) of the token behind the last one.
  std::vector<double> logits(const std::vector<int32_t>& tokens);

 private:
  std::unique_ptr<Engine> engine_;
};

// The token that logits and a number in [0, 1) choose.
int32_t sampled(const std::vector<double>& logits, const Sampling& sampling, double uniform);

}  // namespace comera
