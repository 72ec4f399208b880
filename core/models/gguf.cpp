// Layout: ggml's docs/gguf.md. Keys, names, the order of rows and the choice of types: convert_hf_to_gguf.py of llama.cpp.
#include "core/models/gguf.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/models/gguf_tokenizer.h"
#include "core/models/huggingface.h"
#include "core/tensor/half.h"

namespace comera {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kVersion = 3, kF32 = 0, kF16 = 1, kQ8 = 8;
constexpr int64_t kBlock = 32, kBlockBytes = 34, kAlignment = 32;

uint32_t stored_as(const std::vector<int64_t>& shape, GgufType type) {
  if (shape.size() < 2 || type == GgufType::f32) return kF32;
  return type == GgufType::q8_0 && shape.back() % kBlock == 0 ? kQ8 : kF16;
}

int64_t bytes_of(uint32_t type, int64_t count) {
  return type == kF32 ? 4 * count : type == kF16 ? 2 * count : count / kBlock * kBlockBytes;
}

void put_half(float value, std::string& out) {
  const uint16_t half = to_half(value);
  out.append(reinterpret_cast<const char*>(&half), 2);
}

// A block's values are multiples of its largest / 127, in float as ggml computes them.
void put_block(const double* values, std::string& out) {
  float largest = 0;
  for (int64_t i = 0; i < kBlock; ++i) largest = std::max(largest, std::fabs(static_cast<float>(values[i])));
  const float step = largest / 127, inverse = step > 0 ? 1 / step : 0;
  put_half(step, out);
  for (int64_t i = 0; i < kBlock; ++i) out.push_back(static_cast<char>(std::lround(static_cast<float>(values[i]) * inverse)));
}

std::string coded(const std::vector<double>& values, uint32_t type) {
  std::string out;
  out.reserve(static_cast<size_t>(bytes_of(type, static_cast<int64_t>(values.size()))));
  if (type == kQ8) {
    for (size_t i = 0; i < values.size(); i += kBlock) put_block(values.data() + i, out);
    return out;
  }
  for (const double value : values) {
    const auto number = static_cast<float>(value);
    if (type == kF16)
      put_half(number, out);
    else
      out.append(reinterpret_cast<const char*>(&number), 4);
  }
  return out;
}

std::vector<double> decoded(const char* at, uint32_t type, size_t count) {
  std::vector<double> out(count);
  for (size_t i = 0; i < count; ++i) {
    uint16_t half = 0;
    if (type == kF32) {
      float value;
      std::memcpy(&value, at + 4 * i, 4);
      out[i] = value;
    } else if (type == kF16) {
      std::memcpy(&half, at + 2 * i, 2);
      out[i] = from_half(half);
    } else {
      const char* block = at + i / kBlock * kBlockBytes;
      std::memcpy(&half, block, 2);
      out[i] = static_cast<double>(from_half(half)) * static_cast<signed char>(block[2 + i % kBlock]);
    }
  }
  return out;
}

// A tensor by its name here, and the heads whose rows change places; 0: they do not.
struct Placed {
  std::string name;
  int64_t heads = 0;
};

Placed placed(const std::string& theirs, const DecoderConfig& c) {
  static const std::map<std::string, std::string> kOutside = {
      {"model.embed_tokens", "token_embd"}, {"model.norm", "output_norm"}, {"lm_head", "output"}};
  static const std::map<std::string, std::string> kInside = {
      {"input_layernorm", "attn_norm"}, {"self_attn.q_proj", "attn_q"},      {"self_attn.k_proj", "attn_k"},
      {"self_attn.v_proj", "attn_v"},   {"self_attn.o_proj", "attn_output"}, {"post_attention_layernorm", "ffn_norm"},
      {"mlp.gate_proj", "ffn_gate"},    {"mlp.up_proj", "ffn_up"},           {"mlp.down_proj", "ffn_down"}};
  const size_t end = theirs.rfind('.');
  const std::string module = theirs.substr(0, end), kind = theirs.substr(end);
  if (const auto found = kOutside.find(module); found != kOutside.end()) return {found->second + kind};
  constexpr std::string_view kBlocks = "model.layers.";
  CHECK(module.starts_with(kBlocks), theirs);
  const size_t dot = module.find('.', kBlocks.size());
  const std::string number = module.substr(kBlocks.size(), dot - kBlocks.size()), part = module.substr(dot + 1);
  const int64_t heads = part == "self_attn.q_proj" ? c.heads : part == "self_attn.k_proj" ? c.heads_of_keys() : 0;
  return {"blk." + number + "." + kInside.at(part) + kind, heads};
}

void put_settings(const ModelConfig& model, GgufType type, const std::string& name, GgufMetadata& to) {
  const DecoderConfig& c = model.decoder;
  to.text("general.architecture", "llama");
  to.text("general.name", name);
  to.number("general.file_type", type == GgufType::f32 ? 0u : type == GgufType::f16 ? 1u : 7u);
  to.number("general.quantization_version", 2u);
  const auto size = [&](const char* key, int64_t value) { to.number(std::string("llama.") + key, static_cast<uint32_t>(value)); };
  size("vocab_size", c.vocab);
  size("context_length", model.length);
  size("embedding_length", c.d_model);
  size("block_count", c.layers);
  size("feed_forward_length", c.d_ff);
  size("rope.dimension_count", c.width_of_head());
  size("attention.head_count", c.heads);
  size("attention.head_count_kv", c.heads_of_keys());
  size("attention.key_length", c.width_of_head());
  size("attention.value_length", c.width_of_head());
  to.number("llama.attention.layer_norm_rms_epsilon", static_cast<float>(c.norm_eps));
  to.number("llama.rope.freq_base", static_cast<float>(c.rope_theta));
}

}  // namespace

void write_gguf(const std::string& path, const ModelConfig& model, GgufType type, const std::string& name, const std::string& tokenizer,
                const Json& ids, const std::function<std::vector<double>(const std::string& param)>& values) {
  if (architecture_of(model) != "LlamaForCausalLM")
    throw Error(ErrorCode::config, "this model has no form as GGUF", "only LLaMA models have one: rotary positions, RMS norm, SwiGLU",
                "use --to huggingface");
  GgufMetadata metadata;
  put_settings(model, type, name, metadata);
  if (!tokenizer.empty()) put_tokenizer(tokenizer, model.decoder.vocab, ids, metadata);
  std::string infos;
  int64_t offset = 0;
  const std::vector<FolderTensor> tensors = folder_tensors(model);
  const auto shape_of = [](const FolderTensor& tensor) {
    std::vector<int64_t> shape;
    for (int axis = 0; axis < tensor.shape.rank(); ++axis) shape.push_back(tensor.shape[axis]);
    return shape;
  };
  const auto padding = [](int64_t bytes) { return (kAlignment - bytes % kAlignment) % kAlignment; };
  for (const FolderTensor& tensor : tensors) {
    const std::vector<int64_t> shape = shape_of(tensor);
    const uint32_t as = stored_as(shape, type);
    gguf_bytes::text(placed(tensor.name, model.decoder).name, infos);
    gguf_bytes::number(static_cast<uint32_t>(shape.size()), infos);
    for (auto size = shape.rbegin(); size != shape.rend(); ++size) gguf_bytes::number(static_cast<uint64_t>(*size), infos);
    gguf_bytes::number(as, infos);
    gguf_bytes::number(static_cast<uint64_t>(offset), infos);
    const int64_t bytes = bytes_of(as, tensor.shape.count());
    offset += bytes + padding(bytes);
  }
  std::string head = "GGUF";
  gguf_bytes::number(kVersion, head);
  gguf_bytes::number(static_cast<uint64_t>(tensors.size()), head);
  gguf_bytes::number(metadata.count, head);
  head += metadata.bytes + infos;
  head.append(static_cast<size_t>(padding(static_cast<int64_t>(head.size()))), '\0');
  const std::string part = path + ".part";
  std::ofstream file(part, std::ios::binary);
  file << head;
  for (const FolderTensor& tensor : tensors) {
    std::vector<double> own = values(tensor.parts.front().param);
    CHECK(tensor.parts.size() == 1 && static_cast<int64_t>(own.size()) == tensor.shape.count(), tensor.name);
    if (const int64_t heads = placed(tensor.name, model.decoder).heads; heads > 0) own = paired_rows(own, tensor.shape[0], heads, false);
    const std::string bytes = coded(own, stored_as(shape_of(tensor), type));
    file << bytes << std::string(static_cast<size_t>(padding(static_cast<int64_t>(bytes.size()))), '\0');
  }
  file.close();
  std::error_code problem;
  if (file) fs::rename(part, path, problem);
  if (file && !problem) return;
  const std::string why = problem ? problem.message() : std::strerror(errno);
  fs::remove(part, problem);
  throw Error(ErrorCode::storage, "cannot write " + path, why, "check the folder and the space on the disk");
}

// ---- reading -----------------------------------------------------------------------------------------------------

namespace {

// Takes values off the front; `ok` is false once bytes are missing.
struct Taker {
  const std::string& bytes;
  size_t at = 0;
  bool ok = true;

  template <class T>
  T take() {
    T value{};
    ok = ok && bytes.size() - at >= sizeof value;
    if (!ok) return value;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    at += sizeof value;
    return value;
  }
  std::string text() {
    const auto size = take<uint64_t>();
    ok = ok && size <= bytes.size() - at;
    if (!ok) return "";
    at += size;
    return bytes.substr(at - size, size);
  }
  Json value(uint32_t type) {
    switch (type) {
      case gguf_bytes::kU32:
        return take<uint32_t>();
      case gguf_bytes::kI32:
        return take<int32_t>();
      case gguf_bytes::kFloat:
        return take<float>();
      case gguf_bytes::kBool:
        return take<uint8_t>() != 0;
      case gguf_bytes::kText:
        return text();
      case gguf_bytes::kList:
        break;
      default:
        ok = false;
        return {};
    }
    Json list = Json::array();
    const auto of = take<uint32_t>();
    const auto count = take<uint64_t>();
    ok = ok && of != gguf_bytes::kList;
    for (uint64_t i = 0; ok && i < count; ++i) list.push_back(value(of));
    return list;
  }
};

}  // namespace

void GgufFile::unsound(const std::string& why) const {
  throw Error(ErrorCode::storage, path_ + " is not a GGUF file of this program", why, "export the model again");
}

GgufFile::GgufFile(const std::string& path) : path_(path), metadata_(Json::object()) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(ErrorCode::not_found, "cannot read " + path, "no such file, or no permission", "check the path");
  bytes_.assign(std::istreambuf_iterator<char>(file), {});
  Taker taker{bytes_};
  if (taker.take<uint32_t>() != 0x46554747 || taker.take<uint32_t>() != kVersion) unsound("it does not begin with GGUF, version 3");
  const auto tensors = taker.take<uint64_t>(), keys = taker.take<uint64_t>();
  for (uint64_t i = 0; taker.ok && i < keys; ++i) {
    const std::string key = taker.text();
    metadata_[key] = taker.value(taker.take<uint32_t>());
  }
  for (uint64_t i = 0; taker.ok && i < tensors; ++i) {
    const std::string name = taker.text();
    Entry entry;
    const auto rank = taker.take<uint32_t>();
    if (rank > 4) unsound("a tensor has " + std::to_string(rank) + " sizes");
    for (uint32_t axis = 0; axis < rank; ++axis) entry.shape.insert(entry.shape.begin(), static_cast<int64_t>(taker.take<uint64_t>()));
    entry.type = taker.take<uint32_t>();
    entry.offset = taker.take<uint64_t>();
    entries_[name] = entry;
  }
  if (!taker.ok) unsound("its header is cut short, or has a type of another program");
  data_ = (taker.at + kAlignment - 1) / kAlignment * kAlignment;
  for (const auto& [name, entry] : entries_) {
    int64_t count = 1;
    for (const int64_t size : entry.shape) {
      if (size < 1 || size > static_cast<int64_t>(bytes_.size()) || count > static_cast<int64_t>(bytes_.size()) / size)
        unsound(name + " is larger than the file");
      count *= size;
    }
    const bool known = entry.type == kF32 || entry.type == kF16 || (entry.type == kQ8 && entry.shape.back() % kBlock == 0);
    if (!known) unsound(name + " is of type " + std::to_string(entry.type));
    if (data_ > bytes_.size() || entry.offset > bytes_.size() - data_ ||
        static_cast<uint64_t>(bytes_of(entry.type, count)) > bytes_.size() - data_ - entry.offset)
      unsound(name + " lies outside of the file");
  }
}

std::vector<double> GgufFile::values(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) unsound("it has no tensor " + name);
  int64_t count = 1;
  for (const int64_t size : found->second.shape) count *= size;
  return decoded(bytes_.data() + data_ + found->second.offset, found->second.type, static_cast<size_t>(count));
}

void read_gguf(const GgufFile& file, const ModelConfig& model,
               const std::function<void(const std::string& param, const std::vector<double>& values)>& put) {
  for (const FolderTensor& tensor : folder_tensors(model)) {
    const Placed at = placed(tensor.name, model.decoder);
    std::vector<double> values = file.values(at.name);
    CHECK(static_cast<int64_t>(values.size()) == tensor.shape.count(), at.name << " has " << values.size() << " values");
    put(tensor.parts.front().param, at.heads > 0 ? paired_rows(values, tensor.shape[0], at.heads, true) : values);
  }
}

}  // namespace comera
