// The rank objective on the device (METHODS.md 1.4 and 1.5): the structure of all bonds as its ops read it, and the calls of a
// step.
#pragma once
#include <vector>

#include "core/layers/layer.h"

namespace comera {

class RankObjective {
 public:
  // `params`: of the model, whose rank layers are known. `paper`: the size of the cores is penalised as well.
  RankObjective(ParamSet& params, bool paper) : params_(params), paper_(paper), weights_(params.rank_layers().size(), 1.0) {}

  bool empty() const { return params_.rank_layers().empty(); }
  Tensor ranks() const { return table_.ranks; }  // all rank vectors; empty: there are none
  int64_t table_bytes() const;
  void place(Device& device, char* base);  // null: no memory yet
  // Factor on the penalty, one a rank layer; 0 locks it.
  void set_layer_weights(Device& device, const std::vector<double>& weights);

  void forward(Ctx& ctx);   // from the loss in the results: the objective and the weights of its terms
  void backward(Ctx& ctx);  // adds the gradients of the penalties

 private:
  ParamSet& params_;
  bool paper_;
  std::vector<double> weights_;
  RankTable table_;
};

}  // namespace comera
