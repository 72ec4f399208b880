// Builds the layers of a model. Models ask for "a linear layer of this kind"; whether it is dense or a tensor train,
// and what its backward keeps, is the method's business. That is how every model works under every method.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/config/tt.h"
#include "core/layers/layer.h"

namespace comera {

class TTFan;
class TTLinear;

class LayerFactory {
 public:
  // `tt` null: every matrix is dense.
  LayerFactory(ParamSet& params, Stash& stash, const TTKinds* tt) : params_(params), stash_(stash), tt_(tt) {}

  // y = x W^T + b, W (out, in). Kind `head` is never tensorised.
  std::unique_ptr<Layer> linear(const std::string& name, int64_t in, int64_t out, LinearKind kind);
  // Table (rows, columns), TTM when tensorised; ids (T) -> (T, columns).
  std::unique_ptr<Layer> embedding(const std::string& name, int64_t rows, int64_t columns);

  ParamSet& params() { return params_; }
  Stash& stash() { return stash_; }
  uint32_t next_site() { return next_site_++; }  // random sites are numbered in building order

  // The tensorised linear layers made so far, in order; they belong to the model.
  const std::vector<TTLinear*>& tt_linears() const { return tt_linears_; }

  // Those of them that read the same x (Fan).
  void add_fan(TTFan& fan) { tt_fans_.push_back(&fan); }
  const std::vector<TTFan*>& tt_fans() const { return tt_fans_; }

  int64_t checkpoint_every = 0;  // blocks between kept inputs (add_blocks); 0: every activation is kept

  // The published code trains the classifier's cores and rank vectors at the rate of the rest (METHODS.md 1.4, group 3).
  bool classifier_rest_group = true;

 private:
  ParamSet& params_;
  Stash& stash_;
  const TTKinds* tt_;
  std::vector<TTLinear*> tt_linears_;
  std::vector<TTFan*> tt_fans_;
  uint32_t next_site_ = 1;
};

}  // namespace comera
