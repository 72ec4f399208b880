// A method is a point on three axes: how matrices are parametrised, what backward keeps, which optimizer. The axes combine freely, so
// "CoMERA with 8-bit Adam" is a named method (named_methods.h), not code. What a value of an axis makes: methods/tables.cpp.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/config/comera.h"
#include "core/config/optimizers.h"

namespace comera {

class Method;
class ParamSet;
class WeightForm;
struct MethodConfig;
struct RunConfig;
struct TTKinds;

using WeightForms = std::vector<std::shared_ptr<WeightForm>>;  // asked in this order; dense layers come last

// What menus and checks have to know of a choice of weights. Each makes its forms of matrices and, where something decides between two
// steps, its Method.
struct WeightsInfo {
  Choice choice = {""};             // of method.weights
  std::optional<Choice> name = {};  // on the command line
  bool factors = false;             // beside frozen matrices, all of the same rank
  int64_t shares = 1;               // equal ones, into which it divides the examples of a batch
};

// Cores instead of matrices, with the settings of model.tt; CoMERA trains their ranks.
struct TTWeights {
  WeightsInfo info() const;
  WeightForms make_forms(const MethodConfig& method, const TTKinds& kinds) const;
  std::unique_ptr<Method> make_method(const RunConfig& config, ParamSet& params) const;
};
struct DenseWeights {
  WeightsInfo info() const;
  WeightForms make_forms(const MethodConfig&, const TTKinds&) const { return {}; }
};

// The int8 stash, published as Mesa (METHODS.md 12).
struct MesaConfig {
  int64_t groups = 1;  // groups of features with a range of their own
  double decay = 0;    // share of a running range that stays each step
  void fields(FieldVisitor& v);
};

// Rows of a matrix's input that are kept for its gradient, published as WTA-CRS (METHODS.md 11).
struct WtaConfig {
  double ratio = 1;      // share of the rows that are kept; 1: all of them
  bool adaptive = true;  // the number of certain rows is the one with the least variance
  double certain = 0.5;  // share of the kept rows that are certain, where it is not
  void fields(FieldVisitor& v);

  int64_t rows_of(int64_t rows) const;     // that are kept
  int64_t certain_of(int64_t kept) const;  // of them; -1: adaptive
};

// A frozen matrix plus alpha / rank times the product of two trained factors (METHODS.md 4.1).
struct LoraConfig {
  int64_t rank = 8;
  double alpha = 16;
  double dropout = 0;   // of the factors' input
  bool rest = false;    // also train embeddings, norms and the biases of frozen matrices
  bool tables = false;  // factors for token embeddings, too, which stay frozen
  WeightsInfo info() const;
  void fields(FieldVisitor& v);
  WeightForms make_forms(const MethodConfig& method, const TTKinds& kinds) const;

  double scale() const { return alpha / static_cast<double>(rank); }  // of the product
  // After a live change of the rank: alpha changes with it, so that the scale stays.
  void keep_scale(int64_t former_rank) { alpha *= static_cast<double>(rank) / static_cast<double>(former_rank); }
};

// As LoRA, in heads that see different examples and are merged into the matrix from time to time (METHODS.md 4.2).
// Of LTE: head h sees the h-th of H equal runs of the examples of a whole batch. So one of M equal parts of a batch is of a run of heads,
// or of one head alone; where neither number divides the other, each part is cut among all heads.
struct HeadsOfPart {
  int64_t first, count;
};
inline HeadsOfPart heads_of_part(int64_t heads, int64_t part, int64_t parts) {
  if (heads % parts == 0) return {part * (heads / parts), heads / parts};
  if (parts % heads == 0) return {part / (parts / heads), 1};
  return {0, heads};
}

struct LteConfig {
  int64_t heads = 1;
  int64_t rank = 8;
  double alpha = 16;
  int64_t merge_every = 10;
  bool reset = false;  // the factors begin anew after each merge
  bool rest = false;   // as of LoraConfig
  WeightsInfo info() const;
  void fields(FieldVisitor& v);
  WeightForms make_forms(const MethodConfig& method, const TTKinds& kinds) const;
  std::unique_ptr<Method> make_method(const RunConfig& config, ParamSet& params) const;

  double scale() const { return alpha / static_cast<double>(rank); }  // of a head's product
};

struct MethodConfig : OptimizerSettings {
  std::string name = "CoMERA";  // for people
  std::string weights = "tt";
  std::string weight_format = "full";     // full | bf16: of matrices, cores and tables | int8: of matrices inside blocks
  std::string stash = "exact";            // exact | bf16 | int8
  std::string table_gradients = "dense";  // dense | rows: only rows that a batch looks up have a gradient and a step
  bool waist = false;                     // wide outputs of tensor trains are computed again in backward, not kept
  int64_t checkpoint = 0;                 // blocks between kept activations; 0 = all are kept
  MesaConfig mesa;
  WtaConfig wta;
  ComeraConfig comera;
  LoraConfig lora;
  LteConfig lte;

  // f(settings) for each choice of weights, in the order of menus.
  static void each_weights(auto& all, auto&& f) {
    f(TTWeights());
    f(DenseWeights());
    f(all.lora);
    f(all.lte);
  }

  void fields(FieldVisitor& v);
  // Takes those live settings by which states have their shapes or calls their arguments; a step reads the others, weight decay among them,
  // from its scalars.
  void take_shaping(const MethodConfig& from);
  WeightsInfo chosen_weights() const;  // of `weights`; an empty one where there is none of that name
};

}  // namespace comera
