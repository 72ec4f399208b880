// Names as get_peft_model_state_dict() and set_peft_model_state_dict() of peft 0.1x have them.
#include "core/models/peft.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "core/models/folder_errors.h"
#include "core/models/huggingface.h"

namespace comera {
namespace {

namespace fs = std::filesystem;
using folder_errors::refuse;
using folder_errors::shown;

constexpr const char* kFirst = "base_model.model.";

bool is_weight(const FolderTensor& tensor) { return tensor.name.ends_with(".weight"); }
// "bert.pooler.dense" of "bert.pooler.dense.bias".
std::string module_of(const FolderTensor& tensor) { return tensor.name.substr(0, tensor.name.rfind('.')); }

// The part of a module's name after the number of its block, since PEFT matches the ends of names; the whole name outside of blocks.
std::string in_block(const std::string& module) {
  for (size_t at = module.find('.'); at != std::string::npos; at = module.find('.', at + 1)) {
    size_t end = at + 1;
    while (end < module.size() && std::isdigit(static_cast<unsigned char>(module[end]))) ++end;
    if (end > at + 1 && end < module.size() && module[end] == '.') return module.substr(end + 1);
  }
  return module;
}

// One product of the library's matrix from those of its parts: A below each other, B as blocks on a diagonal.
LoraProduct side_by_side(const FolderTensor& tensor, const Adapter& adapter) {
  if (tensor.parts.size() == 1) return adapter.products.at(tensor.parts.front().param);
  LoraProduct all;
  int64_t out = 0;
  for (const FolderTensor::Part& part : tensor.parts) {
    const LoraProduct& own = adapter.products.at(part.param);
    CHECK(!own.table && (all.rank == 0 || own.scale == all.scale), part.param << " has another scale");
    all.scale = own.scale;
    all.rank += own.rank;
    all.a.insert(all.a.end(), own.a.begin(), own.a.end());
    out += part.rows;
  }
  all.b.assign(static_cast<size_t>(out * all.rank), 0);
  int64_t row = 0, column = 0;
  for (const FolderTensor::Part& part : tensor.parts) {
    const LoraProduct& own = adapter.products.at(part.param);
    for (int64_t i = 0; i < part.rows; ++i)
      std::copy_n(own.b.begin() + i * own.rank, own.rank, all.b.begin() + (row + i) * all.rank + column);
    row += part.rows;
    column += own.rank;
  }
  return all;
}

bool has_factors(const FolderTensor& tensor, const Adapter& adapter) { return adapter.products.contains(tensor.parts.front().param); }

// Whole modules that the adapter brings. One inside another is left out; a classifier is always one for PEFT.
std::set<std::string> saved_modules(const std::vector<FolderTensor>& tensors, const std::set<std::string>& targets, const Adapter& adapter,
                                    bool classifies) {
  std::set<std::string> modules;
  for (const FolderTensor& tensor : tensors)
    if (adapter.replaced.contains(tensor.parts.front().param) && !targets.contains(module_of(tensor))) modules.insert(module_of(tensor));
  if (classifies) {
    std::set<std::string> whole;
    for (const std::string& module : modules) whole.insert(module.starts_with("classifier.") ? "classifier" : module);
    modules = whole;
  }
  std::set<std::string> outer;
  for (const std::string& module : modules)
    if (std::none_of(modules.begin(), modules.end(), [&](const std::string& other) { return module.starts_with(other + "."); }))
      outer.insert(module);
  return outer;
}

bool is_in(const std::string& module, const std::set<std::string>& modules) {
  return std::any_of(modules.begin(), modules.end(),
                     [&](const std::string& each) { return module == each || module.starts_with(each + "."); });
}

// Collects the tensors of the adapter and what its config says of them.
class AdapterWriter {
 public:
  using ValuesOf = std::function<const std::vector<double>&(const std::string& param)>;
  AdapterWriter(const ModelConfig& model, const Adapter& adapter, const ValuesOf& values)
      : model_(model), adapter_(adapter), values_(values), tensors_(folder_tensors(model)) {
    for (const FolderTensor& tensor : tensors_)
      if (is_weight(tensor) && has_factors(tensor, adapter)) targets_.insert(module_of(tensor));
    modules_ = saved_modules(tensors_, targets_, adapter, model.task == "classification");
    for (const FolderTensor& tensor : tensors_) add(tensor);
    add_tied_head();
  }

  void write(const std::string& path, const std::string& base) {
    std::error_code problem;
    fs::create_directories(path, problem);
    if (problem) throw Error(ErrorCode::storage, "cannot make the folder " + path, problem.message());
    writer_.metadata("format", "pt");
    writer_.finish((fs::path(path) / "adapter_model.safetensors").string());
    const std::string config = (fs::path(path) / "adapter_config.json").string();
    std::ofstream file(config);
    file << config_of(base).dump(2) << "\n";
    if (!file.flush()) throw Error(ErrorCode::storage, "cannot write " + config, std::strerror(errno));
  }

 private:
  void add(const FolderTensor& tensor) {
    const std::string module = module_of(tensor), name = kFirst + module;
    if (is_weight(tensor) && has_factors(tensor, adapter_)) {
      if (tensor.order == FolderOrder::channels_first)
        throw Error(ErrorCode::config, tensor.name + " is a convolution with factors", "adapters here hold factors of matrices",
                    "export the whole model: --to huggingface");
      LoraProduct product = side_by_side(tensor, adapter_);
      if (tensor.order == FolderOrder::rotary_pairs) product.b = paired_rows(product.b, tensor.shape[0], tensor.heads, false);
      const auto rank = static_cast<size_t>(product.rank);
      const char *a = product.table ? ".lora_embedding_A" : ".lora_A.weight", *b = product.table ? ".lora_embedding_B" : ".lora_B.weight";
      writer_.add_values(name + a, "F32", {product.rank, static_cast<int64_t>(product.a.size() / rank)}, product.a);
      writer_.add_values(name + b, "F32", {static_cast<int64_t>(product.b.size() / rank), product.rank}, product.b);
      ranks_[in_block(module)] = {product.rank, product.scale * static_cast<double>(product.rank)};
      transposed_ = transposed_ || tensor.order == FolderOrder::transposed;
      return;
    }
    const bool saved = is_in(module, modules_);
    if (!saved && !adapter_.replaced.contains(tensor.parts.front().param)) return;
    std::vector<double> values;
    for (const FolderTensor::Part& part : tensor.parts) {
      const std::vector<double>& own = values_(part.param);
      values.insert(values.end(), own.begin(), own.end());
    }
    CHECK(tensor.order == FolderOrder::ours || tensor.order == FolderOrder::rotary_pairs,
          tensor.name << " is not one that is trained whole");
    values = in_folder_order(tensor, values);
    biases_ = biases_ || !saved;
    std::vector<int64_t> shape;
    for (int axis = 0; axis < tensor.shape.rank(); ++axis) shape.push_back(tensor.shape[axis]);
    writer_.add_values(saved ? kFirst + tensor.name : name + ".base_layer.bias", "F32", shape, values);
  }

  // The library ties the head to the base model's table, not to the one that the adapter brings. The last layer of a masked head has its
  // bias twice.
  void add_tied_head() {
    const bool masked = model_.kind == "encoder" && model_.task == "masked", new_table = adapter_.replaced.contains("emb.token.weight");
    const bool tied = masked ? model_.encoder.tied : model_.kind == "decoder" && model_.decoder.tied;
    if (!masked && !(tied && new_table)) return;
    const std::string architecture = architecture_of(model_);
    const bool once = architecture.starts_with("DistilBert");  // no second bias
    const std::string module = once ? "vocab_projector" : masked && !architecture.starts_with("Roberta") ? "cls.predictions" : "lm_head";
    const bool bias_is_there = !masked || (once && modules_.contains(module));
    if (tied && new_table) modules_.insert(module);
    if (!modules_.contains(module)) return;
    const FolderTensor& table = tensors_.front();
    const std::string name = kFirst + module + (masked && !once ? ".decoder" : "");
    if (tied) writer_.add_values(name + ".weight", "F32", {table.shape[0], table.shape[1]}, values_("emb.token.weight"));
    if (!bias_is_there) writer_.add_values(name + ".bias", "F32", {table.shape[0]}, values_("head.bias"));
  }

  Json config_of(const std::string& base) const {
    std::map<std::pair<int64_t, double>, size_t> counts;
    for (const auto& [module, rank] : ranks_) ++counts[rank];
    std::pair<int64_t, double> usual = {8, 8};
    size_t most = 0;
    for (const auto& [rank, count] : counts)
      if (count > most) most = count, usual = rank;
    Json targets = Json::array(), ranks = Json::object(), alphas = Json::object();
    for (const auto& [module, rank] : ranks_) {
      targets.push_back(module);
      if (rank.first != usual.first) ranks[module] = rank.first;
      if (rank.second != usual.second) alphas[module] = rank.second;
    }
    Json config = {{"peft_type", "LORA"},
                   {"task_type", nullptr},
                   {"base_model_name_or_path", base},
                   {"inference_mode", true},
                   {"r", usual.first},
                   {"lora_alpha", usual.second},
                   {"lora_dropout", adapter_.dropout},
                   {"target_modules", targets},
                   {"rank_pattern", ranks},
                   {"alpha_pattern", alphas},
                   {"modules_to_save", nullptr},
                   {"bias", biases_ ? "all" : "none"},
                   {"fan_in_fan_out", transposed_},
                   {"use_rslora", false},
                   {"use_dora", false},
                   {"init_lora_weights", true}};
    if (model_.task == "language") config["task_type"] = "CAUSAL_LM";
    if (model_.task == "classification") config["task_type"] = "SEQ_CLS";
    if (!modules_.empty()) config["modules_to_save"] = modules_;
    return config;
  }

  const ModelConfig& model_;
  const Adapter& adapter_;
  const ValuesOf& values_;
  const std::vector<FolderTensor> tensors_;
  std::set<std::string> targets_, modules_;
  std::map<std::string, std::pair<int64_t, double>> ranks_;  // rank and alpha of a target, by its name in a block
  bool transposed_ = false, biases_ = false;
  SafetensorsWriter writer_;
};

// A folder as it was written, here or by PEFT.
class AdapterReader {
 public:
  AdapterReader(const std::string& path, const ModelConfig& model)
      : path_(path),
        config_(read_config(path)),
        file_((fs::path(path) / "adapter_model.safetensors").string()),
        tensors_(folder_tensors(model)) {
    for (const char* key : {"use_rslora", "use_dora"})
      if (config_.contains(key) && config_[key] != false) refuse(path, std::string(key) + " is set", "this form of LoRA is not offered");
  }

  // Product of the library's tensor, in its shape; empty: it has none. Takes the names off `unused`.
  std::vector<double> product(const FolderTensor& tensor, std::set<std::string>& unused) const {
    const std::string module = module_of(tensor), name = kFirst + module;
    const bool table = file_.has(name + ".lora_embedding_A");
    const std::string a = name + (table ? ".lora_embedding_A" : ".lora_A.weight"),
                      b = name + (table ? ".lora_embedding_B" : ".lora_B.weight");
    if (!is_weight(tensor) || !file_.has(a)) return {};
    unused.erase(a), unused.erase(b);
    const std::vector<int64_t>&of_a = file_.entry(a).shape, &of_b = file_.entry(b).shape;
    const bool turned = table || tensor.order == FolderOrder::transposed;
    const int64_t out = tensor.shape[turned ? 1 : 0], in = tensor.shape[turned ? 0 : 1];
    if (of_a.size() != 2 || of_b.size() != 2 || of_a[1] != in || of_b[0] != out || of_a[0] != of_b[1])
      refuse(path_, shown(a) + " does not fit", "the matrix is " + tensor.shape.text());
    const auto rank = static_cast<size_t>(of_a[0]);
    const double scale = number("alpha_pattern", "lora_alpha", module) / number("rank_pattern", "r", module);
    const std::vector<double> x = file_.values(a), y = file_.values(b);
    std::vector<double> sum(static_cast<size_t>(in * out), 0);
    for (size_t i = 0; i < sum.size(); ++i) {
      const auto columns = static_cast<size_t>(tensor.shape[1]);
      const size_t row = i / columns, column = i % columns, of_out = turned ? column : row, of_in = turned ? row : column;
      for (size_t k = 0; k < rank; ++k) sum[i] += scale * y[of_out * rank + k] * x[k * static_cast<size_t>(in) + of_in];
    }
    return tensor.order == FolderOrder::rotary_pairs ? in_our_order(tensor, sum) : sum;
  }

  // The tensor where the adapter brings it whole; empty: it does not.
  std::vector<double> whole(const FolderTensor& tensor, std::set<std::string>& unused) const {
    for (const std::string& name : {kFirst + tensor.name, kFirst + module_of(tensor) + ".base_layer.bias"}) {
      if (!file_.has(name) || (name.ends_with(".base_layer.bias") && !tensor.name.ends_with(".bias"))) continue;
      unused.erase(name);
      if (file_.entry(name).count() != tensor.shape.count())
        refuse(path_, shown(name) + " does not fit", "the model has " + tensor.shape.text());
      const std::vector<double> values = file_.values(name);
      return tensor.order == FolderOrder::rotary_pairs ? in_our_order(tensor, values) : values;
    }
    return {};
  }

  const std::vector<FolderTensor>& tensors() const { return tensors_; }
  const SafetensorsFile& file() const { return file_; }

 private:
  static Json read_config(const std::string& path) {
    const fs::path file = fs::path(path) / "adapter_config.json";
    if (!fs::is_regular_file(file)) throw Error(ErrorCode::not_found, path + " is not an adapter", "it has no adapter_config.json", "");
    const Json config = read_json_file(file.string());
    if (!config.is_object() || !config.contains("peft_type") || config["peft_type"] != "LORA")
      refuse(file.string(), "not an adapter of LoRA", "its peft_type is another one");
    return config;
  }
  // Of a module, whose name ends in a key of `pattern`, or of all.
  double number(const char* pattern, const char* of_all, const std::string& module) const {
    const auto value = [&](const Json& json) {
      if (!json.is_number() || !(json.get<double>() > 0))
        refuse(path_, std::string(of_all) + " is " + shown(json), "it is not a number above 0");
      return json.get<double>();
    };
    if (const auto found = config_.find(pattern); found != config_.end() && found->is_object())
      for (const auto& [key, each] : found->items())
        if (module == key || module.ends_with("." + key)) return value(each);
    return value(config_.contains(of_all) ? config_[of_all] : Json());
  }

  const std::string path_;
  const Json config_;
  const SafetensorsFile file_;
  const std::vector<FolderTensor> tensors_;
};

}  // namespace

void write_adapter(const std::string& path, const ModelConfig& model, const Adapter& adapter, const std::string& base,
                   const std::function<const std::vector<double>&(const std::string& param)>& values) {
  AdapterWriter(model, adapter, values).write(path, base);
}

void read_adapter(const std::string& path, const HuggingFaceFolder& base, const ModelConfig& model,
                  const std::function<void(const std::string& param, const std::vector<double>& values)>& put) {
  const AdapterReader reader(path, model);
  std::map<std::string, std::vector<double>> values;
  read_folder(base, model, [&](const std::string& param, const std::vector<double>& own) { values[param] = own; });
  std::set<std::string> unused;
  for (const auto& [name, entry] : reader.file().entries()) unused.insert(name);
  for (const FolderTensor& tensor : reader.tensors()) {
    const std::vector<double> sum = reader.product(tensor, unused), whole = reader.whole(tensor, unused);
    const auto columns = static_cast<size_t>(tensor.shape.rank() > 1 ? tensor.shape[1] : 1);
    size_t first = 0;
    for (const FolderTensor::Part& part : tensor.parts) {
      std::vector<double>& own = values[part.param];
      const size_t count =
          static_cast<size_t>(part.rows * (tensor.shape.count() / tensor.shape[tensor.order == FolderOrder::transposed ? 1 : 0]));
      if (!sum.empty() && part.param == "emb.token.weight") values.emplace("head.weight", own);  // before it has the product
      if (!whole.empty()) own.assign(whole.begin() + static_cast<long>(first), whole.begin() + static_cast<long>(first + count));
      if (own.size() != count) refuse(path, "no " + tensor.name, "neither the base model nor the adapter has it");
      for (size_t i = 0; !sum.empty() && i < count; ++i) {  // ours are rows of (out, in), theirs may be columns of (in, out)
        const size_t in = count / static_cast<size_t>(part.rows), row = i / in, column = i % in;
        own[i] += tensor.order == FolderOrder::transposed ? sum[column * columns + first / in + row] : sum[first + i];
      }
      first += count;
    }
  }
  for (const char* again : {"lm_head.weight", "lm_head.decoder.weight", "lm_head.decoder.bias", "cls.predictions.decoder.weight",
                            "cls.predictions.decoder.bias", "vocab_projector.weight"})
    unused.erase(kFirst + std::string(again));
  if (!unused.empty()) refuse(path, "tensor " + shown(*unused.begin()), "the model has no such parameter");
  for (const auto& [param, own] : values) put(param, own);
}

}  // namespace comera
