// Weight forms: in which parameters a method holds a matrix, e.g. as a tensor train or as a frozen matrix and two factors. A model
// asks the builder (factory.h) for matrices; the builder asks the forms of the method one after another, and makes a dense layer
// where none of them holds the matrix. To add one: core/README.md.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/config/method.h"
#include "core/config/tt.h"
#include "core/layers/fan.h"
#include "core/layers/thin_attention.h"

namespace comera {

class LayerFactory;

// The rows of x that a layer sees in a pass: one a token, or one a sequence. Of images these are the same.
enum class Rows : unsigned char { tokens, sequences };
struct PassRows {
  int64_t tokens = 0, sequences = 0;
  int64_t of(Rows rows) const { return rows == Rows::tokens ? tokens : sequences; }
};

// W (out, in) of y = x W^T + b, b only where `bias`; or a table of `in` rows and `out` columns.
struct MatrixSpec {
  std::string name;
  int64_t in = 0, out = 0;
  LinearKind kind = LinearKind::ffn_in;  // of a table: of no meaning
  Rows rows = Rows::tokens;
  int64_t rows_each = 1;  // rows for each of them: windows of an image
  int64_t places = 1;     // of a convolution: `in` is as many times its channels, place by place
  double std = 1;         // of a table: initial standard deviation of its entries
  bool trainable = true;  // false: W and b are frozen
  bool dense = false;     // of a table: no form is asked
  bool tied = false;      // of a table: the head multiplies by it too, and adds b
  bool bias = true;       // false: no b; a tensor train, whose products carry b, then keeps one of zeros that is not trained
};

struct HeadSizes {
  int64_t heads = 1, key_heads = 1, width = 1;  // `width` columns a head
  bool turned = false;                          // rotary positions rotate queries and keys, which then need all of their columns
};

// A tensor on the host, in double.
struct HostTensor {
  std::string name;
  Shape shape;
  std::vector<double> values;
};

class WeightForm {
 public:
  virtual ~WeightForm() = default;

  // Null: not held in this form. `build` makes layers inside it: those that come behind it in the list, e.g. its dense base.
  virtual std::unique_ptr<Layer> linear(const MatrixSpec& spec, LayerFactory& build) { return nullptr; }
  virtual std::unique_ptr<Layer> table(const MatrixSpec& spec, LayerFactory& build) { return nullptr; }
  // The head of a tied table that table() has made in this form; null: this form did not make `table`.
  virtual std::unique_ptr<Layer> head_of(Layer& table) { return nullptr; }
  // Takes linear layers of its own that read the same x, where it computes them together; null: it does not.
  virtual std::unique_ptr<Fan> fan(std::vector<std::unique_ptr<Layer>>& layers) { return nullptr; }
  // Takes `apart`, which computes out(f(in(x))) of two layers of this form, where it computes them together; null: it does not.
  virtual std::unique_ptr<Layer> feed_forward(Layer& in, Activation kind, Layer& out, std::unique_ptr<Layer>& apart) { return nullptr; }
  // The same for out(f(gate(x)) up(x)).
  virtual std::unique_ptr<Layer> gated_feed_forward(Fan& gate_up, Activation kind, Layer& out, std::unique_ptr<Layer>& apart) {
    return nullptr;
  }
  // For two parts of attention that this form has made and the caller keeps: the fan of queries, keys and values, and the output layer.
  // Null: the form has no narrower way for such heads.
  virtual std::unique_ptr<ThinAttention> thin_attention(Fan& queries_keys_values, Layer& output, const HeadSizes& sizes) { return nullptr; }
  // The model is built: freezes what the form does not train.
  virtual void finish(ParamSet& params) {}
  // Live settings have changed, and parameters have the sizes that they ask for.
  virtual void change(const MethodConfig& method) {}

  // Around all layers of a pass: what many layers can do in few calls. The epilogue follows the backward pass.
  virtual void prologue(Ctx& ctx, const PassRows& rows) {}
  virtual void epilogue(Ctx& ctx) {}

  // For exports: put(matrix, parameters) for each matrix in this form, named as its dense parameter, and the parameters that it
  // takes the place of.
  using Put = std::function<void(const HostTensor& matrix, const std::vector<const Param*>& parts)>;
  virtual void dense(Device& device, const Put& put) const {}
};

}  // namespace comera
