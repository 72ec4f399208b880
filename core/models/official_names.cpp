// Names of the published PyTorch model (METHODS.md 1.3), read off its state_dict in tests/golden/encoder_*.
#include <array>
#include <utility>

#include "core/models/model.h"

namespace comera {
namespace {

bool starts_with(const std::string& text, const std::string& prefix) { return text.rfind(prefix, 0) == 0; }

// Our layer inside a block -> theirs.
constexpr std::array<std::pair<const char*, const char*>, 8> kBlockLayers = {{
    {"attn.q.", "slf_attn.w_qs."},
    {"attn.k.", "slf_attn.w_ks."},
    {"attn.v.", "slf_attn.w_vs."},
    {"attn.o.", "slf_attn.fc."},
    {"attn.norm.", "slf_attn.layer_norm."},
    {"ffn.in.", "pos_ffn.fc_1."},
    {"ffn.out.", "pos_ffn.fc_2."},
    {"ffn.norm.", "pos_ffn.layer_norm."},
}};

// What follows the layer's name: "core.2", "rank.1", "bias", "weight", "gamma", "beta".
std::string part_name(const std::string& part, const std::string& layer) {
  if (starts_with(part, "core.")) return layer + "tensor.factors." + part.substr(5);
  if (starts_with(part, "rank.")) return layer + "tensor.rank_parameters." + part.substr(5);
  if (part == "bias" || part == "weight") return layer + part;
  return "";
}

std::string norm_name(const std::string& part) { return part == "gamma" ? "weight" : part == "beta" ? "bias" : ""; }

}  // namespace

std::string official_name(const std::string& name) {
  if (name == "emb.position") return "encoder.embedding.position_emb.weight";
  if (name == "emb.segment") return "encoder.embedding.token_type_emb.weight";
  if (starts_with(name, "emb.norm.")) return "encoder.embedding.layer_norm." + norm_name(name.substr(9));
  if (starts_with(name, "emb.token.")) return part_name(name.substr(10), "encoder.embedding.word_emb.");
  if (starts_with(name, "classifier.")) return part_name(name.substr(11), "classifier.fc1.layer.");
  if (starts_with(name, "head.")) return part_name(name.substr(5), "classifier.fc2.layer.");
  if (!starts_with(name, "enc")) return "";
  const size_t dot = name.find('.');
  if (dot == std::string::npos) return "";
  const std::string block = "encoder.encoder_blocks." + name.substr(3, dot - 3) + ".", rest = name.substr(dot + 1);
  for (const auto& [ours, theirs] : kBlockLayers) {
    if (!starts_with(rest, ours)) continue;
    const std::string part = rest.substr(std::string(ours).size());
    const bool norm = std::string(ours).find("norm") != std::string::npos;
    const std::string tail = norm ? norm_name(part) : part_name(part, "layer.");
    return tail.empty() ? "" : block + theirs + tail;
  }
  return "";
}

}  // namespace comera
