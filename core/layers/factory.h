// Builds the layers of a model. Models ask for "a linear layer of this kind"; in which form its matrix is held (form.h), and
// what its backward keeps, is the method's business. That is how every model works under every method.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/layers/form.h"

namespace comera {

class LayerFactory {
 public:
  explicit LayerFactory(ParamSet& params, Stash& stash, WeightForms forms = {})
      : params_(params), stash_(stash), forms_(std::move(forms)) {}

  // y = x W^T + b, W (out, in).
  std::unique_ptr<Layer> linear(const MatrixSpec& spec);
  std::unique_ptr<Layer> linear(const std::string& name, int64_t in, int64_t out, LinearKind kind) {
    return linear({.name = name, .in = in, .out = out, .kind = kind});
  }
  // Table (rows, columns), whose entries begin with this standard deviation; ids (T) -> (T, columns).
  std::unique_ptr<Layer> embedding(const MatrixSpec& spec);
  std::unique_ptr<Layer> embedding(const std::string& name, int64_t rows, int64_t columns, double std = 1) {
    return embedding({.name = name, .in = rows, .out = columns, .std = std});
  }
  // The head whose matrix is `table`, which embedding() has made of this spec: y (T, rows) = x (T, columns) W^T + b.
  std::unique_ptr<Layer> tied_head(const MatrixSpec& spec, Layer& table);
  // One layer for each spec, which read the same x.
  std::unique_ptr<Fan> fan(const std::vector<MatrixSpec>& specs);
  // Those of attention, and the narrower way to compute it, where the form has one.
  struct Projections {
    std::unique_ptr<Fan> queries_keys_values;
    std::unique_ptr<Layer> output;
    std::unique_ptr<ThinAttention> thin;  // may be null
  };
  Projections attention(const std::vector<MatrixSpec>& queries_keys_values, const MatrixSpec& output, const HeadSizes& sizes);
  // out(f(in(x))); `name` is that of the activation.
  std::unique_ptr<Layer> feed_forward(const MatrixSpec& in, Activation kind, const std::string& name, const MatrixSpec& out);
  // out(f(gate(x)) up(x)); `name` is that of the block.
  std::unique_ptr<Layer> gated_feed_forward(const MatrixSpec& gate, const MatrixSpec& up, Activation kind, const std::string& name,
                                            const MatrixSpec& out);

  ParamSet& params() { return params_; }
  Stash& stash() { return stash_; }
  const WeightForms& forms() const { return forms_; }
  uint32_t next_site() { return next_site_++; }  // random sites are numbered in building order

  int64_t checkpoint_every = 0;  // blocks between kept inputs (add_blocks); 0: every activation is kept

 private:
  struct Made {
    std::unique_ptr<Layer> layer;
    WeightForm* form = nullptr;  // null: dense
  };
  template <class Ask>
  Made ask(const Ask& ask);
  Made make_linear(const MatrixSpec& spec);
  std::pair<std::unique_ptr<Fan>, WeightForm*> make_fan(const std::vector<MatrixSpec>& specs);  // null: of several forms

  ParamSet& params_;
  Stash& stash_;
  const WeightForms forms_;
  size_t asked_ = 0;  // the next form: while one of them builds a layer, those before it and itself are not asked
  uint32_t next_site_ = 1;
};

}  // namespace comera
