// Names of the published PyTorch model (METHODS.md 1.3), read off its state_dict in tests/golden/encoder_*. That file
// has no dense model: the names of dense matrices are those of the same modules without "tensor.factors.N", and
// "encoder.embedding.word_emb.weight" is the one that follows for a dense table.
#include <algorithm>
#include <string_view>

#include "core/models/model.h"

namespace comera {
namespace {

struct Names {
  std::string_view ours, theirs;
};
using Side = std::string_view Names::*;

constexpr Names kTables[] = {
    {"emb.position", "encoder.embedding.position_emb.weight"},
    {"emb.segment", "encoder.embedding.token_type_emb.weight"},
};
constexpr Names kLinears[] = {
    {"emb.token.", "encoder.embedding.word_emb."},
    {"classifier.fc.", "classifier.fc1.layer."},
    {"head.", "classifier.fc2.layer."},
};
constexpr Names kNorms[] = {{"emb.norm.", "encoder.embedding.layer_norm."}};
constexpr Names kBlocks = {"enc", "encoder.encoder_blocks."};  // the number of the block follows, then one of these:
constexpr Names kBlockLinears[] = {
    {".attn.q.", ".slf_attn.w_qs.layer."}, {".attn.k.", ".slf_attn.w_ks.layer."}, {".attn.v.", ".slf_attn.w_vs.layer."},
    {".attn.o.", ".slf_attn.fc.layer."},   {".ffn.in.", ".pos_ffn.fc_1.layer."},  {".ffn.out.", ".pos_ffn.fc_2.layer."},
};
constexpr Names kBlockNorms[] = {{".attn.norm.", ".slf_attn.layer_norm."}, {".ffn.norm.", ".pos_ffn.layer_norm."}};

constexpr Names kNumbered[] = {{"core.", "tensor.factors."}, {"rank.", "tensor.rank_parameters."}};
constexpr Names kMatrix[] = {{"weight", "weight"}, {"bias", "bias"}};
constexpr Names kNorm[] = {{"gamma", "weight"}, {"beta", "bias"}};

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Each returns "" for a name it does not know.
template <size_t N>
std::string whole(std::string_view name, const Names (&table)[N], Side from, Side to) {
  for (const Names& names : table)
    if (name == names.*from) return std::string(names.*to);
  return "";
}

std::string linear_part(std::string_view name, Side from, Side to) {
  for (const Names& names : kNumbered)
    if (name.starts_with(names.*from) && is_number(name.substr((names.*from).size())))
      return std::string(names.*to).append(name.substr((names.*from).size()));
  return whole(name, kMatrix, from, to);
}

std::string norm_part(std::string_view name, Side from, Side to) { return whole(name, kNorm, from, to); }

template <size_t N>
std::string layer(std::string_view name, const Names (&table)[N], std::string (*part)(std::string_view, Side, Side), Side from, Side to) {
  for (const Names& names : table) {
    if (!name.starts_with(names.*from)) continue;
    const std::string tail = part(name.substr((names.*from).size()), from, to);
    if (!tail.empty()) return std::string(names.*to).append(tail);
  }
  return "";
}

std::string translate(std::string_view name, Side from, Side to) {
  if (std::string found = whole(name, kTables, from, to); !found.empty()) return found;
  if (std::string found = layer(name, kLinears, linear_part, from, to); !found.empty()) return found;
  if (std::string found = layer(name, kNorms, norm_part, from, to); !found.empty()) return found;
  if (!name.starts_with(kBlocks.*from)) return "";
  name.remove_prefix((kBlocks.*from).size());
  const std::string_view number = name.substr(0, name.find('.'));
  if (!is_number(number)) return "";
  name.remove_prefix(number.size());
  std::string tail = layer(name, kBlockLinears, linear_part, from, to);
  if (tail.empty()) tail = layer(name, kBlockNorms, norm_part, from, to);
  return tail.empty() ? "" : std::string(kBlocks.*to).append(number).append(tail);
}

}  // namespace

std::string official_name(const std::string& name) { return translate(name, &Names::ours, &Names::theirs); }
std::string own_name(const std::string& official) { return translate(official, &Names::theirs, &Names::ours); }

}  // namespace comera
