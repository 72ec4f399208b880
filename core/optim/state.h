// What an optimizer keeps for a parameter: each tensor says over which axes of the parameter it runs, in which format it
// is stored, and how it begins anew. Checkpoints, cuts, growth, the canonical form and the plan read nothing else.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "core/tensor/tensor.h"

namespace comera {

// Bits for StateSpec::axes. A projected state has no axis of its parameter: after a change of shape it is zero.
inline constexpr unsigned kStartsAnew = ~0u;
inline unsigned all_axes(const Shape& shape) { return (1u << shape.rank()) - 1; }

// Of a matrix whose refreshes become rarer, i32 (2): {multiple of the gap, refreshes} (op::LazyRefresh).
inline constexpr const char* kRefreshCounts = "refreshes";

struct StateSpec {
  // Codes have an absmax in f32 for every kQuantBlock entries (METHODS.md 13). Zero bytes are the number 0 in each format.
  // int4: with a scale and a zero for every `group` entries (METHODS.md 7). index: i32.
  enum Format : unsigned char { real, index, int8_signed, int8_unsigned, int4 };
  enum Anew : unsigned char { zero, mean, stays };
  // What becomes of a state when the rank of its projection changes, along its axes of that length (state_follow.h): it begins anew; its
  // first entries stay and new ones are 0, their mean, or directions at right angles to them; every entry is the mean of all.
  enum Follows : unsigned char { restarts, keeps, keeps_and_mean, keeps_and_completes, averages_all };

  const char* name;   // "m", "row", "projection": unique among the states of a parameter
  Shape shape;        // the parameter's sizes along `axes`, whatever their number of axes here
  unsigned axes = 0;  // bit a: runs over axis a of the parameter and is sliced with it
  Format format = real;
  Anew anew = zero;        // what it becomes when the parameter is rewritten (canonical form); mean: of itself
  Anew grown = zero;       // what its new entries are when ranks grow; mean: of its old ones
  unsigned rank_axes = 0;  // bit i: axis i of `shape` is as long as the rank of a projection
  Follows follows = restarts;
  int64_t drawn_every = 0;  // steps between draws of the random projection that it is in: with others it is in another one
  bool averages = false;    // a mean over the axes that it lacks: scaled when entries go, or come that count as 0, so that its sums stay

  int64_t group = 256;  // of int4
  bool floor = false;   // of 8 bits: a number above 0 never gets the code of 0

  bool coded() const { return format == int8_signed || format == int8_unsigned || format == int4; }
};

struct ParamState {
  StateSpec spec;
  Tensor value = {}, absmax = {}, zero = {};  // absmax: of codes, of int4 their scale; all are set by describe (no address) and allocate
};

// The states of one parameter; a rule asks for its own by name.
class States {
 public:
  explicit States(std::span<const ParamState> all) : all_(all) {}
  const ParamState* find(std::string_view name) const {
    for (const ParamState& state : all_)
      if (name == state.spec.name) return &state;
    return nullptr;
  }
  const ParamState& operator[](std::string_view name) const {
    const ParamState* found = find(name);
    CHECK(found, "no state '" << name << "'");
    return *found;
  }
  std::span<const ParamState> all() const { return all_; }

 private:
  std::span<const ParamState> all_;
};

// A state as numbers on the host, 8-bit ones decoded.
struct StateNumbers {
  StateSpec spec;
  std::vector<double> values;
};

}  // namespace comera
