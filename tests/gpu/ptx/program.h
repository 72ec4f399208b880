// PTX, the text that nvcc makes of kernels, read into what warp.h runs. Only what nvcc makes of this project's kernels is
// known; a kernel with anything else says so when it is launched.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace comera::ptx {

class Warp;
struct Instruction;
// What an instruction does in the lanes whose bits are set.
using Action = void (*)(Warp&, const Instruction&, uint32_t lanes);

inline constexpr int kLanes = 32;

enum class Kind : uint8_t { plain, branch, leave, barrier, barrier_or, among_lanes };
enum class Space : uint8_t { generic, global, shared, local, param };

struct Instruction {
  Kind kind = Kind::plain;
  Space space = Space::generic;  // of what is loaded or stored
  bool unless = false;           // the guard is to be false
  bool is_volatile = false;
  int count = 1;                // of numbers in memory, or which matrix: 'a', 'b', 'c'
  int address_bytes = 0;        // of the register that holds an address
  int guard = -1, target = -1;  // of a branch: the instruction that follows
  int64_t offset = 0;           // to an address
  Action action = nullptr;
  // Operands in the order of the text, as places in the warp's file: a row holds one register of all lanes, a predicate has
  // a bit for each lane.
  std::array<int, 26> at{};
  int line = 0;  // in the text
};

// A row that holds the same in all lanes.
struct Constant {
  int at, bytes;  // 0: a predicate
  uint64_t value;
};

// Rows of special registers.
struct Specials {
  int thread, threads, block, blocks, lane, lanes_up_to;
};

struct Kernel {
  std::string name;
  std::string unknown;  // what of it is not known here
  std::vector<Instruction> code;
  std::vector<Constant> constants;
  Specials specials{};
  int file_bytes = 0;  // of a warp's registers and constants
  struct Param {
    int64_t offset, bytes;
  };
  std::vector<Param> params;
  int64_t param_bytes = 0, local_bytes = 0;
  int64_t static_shared_bytes = 0, dynamic_shared_at = 0;
};

inline int bytes_of_type(const std::string& type) { return std::stoi(type.substr(1)) / 8; }  // "f32", "b8"

// The kernels of one text, which it keeps for what is said of faults.
class Program {
 public:
  explicit Program(std::string text);
  // Made ready when it is first asked for. Null where there is no such kernel.
  const Kernel* find(const std::string& name);
  std::string line(int number) const;
  int capability() const { return capability_; }  // 100: 10.0

 private:
  friend class Reader;
  struct Word {
    std::string text;
    int line;
  };
  struct Variable {
    int64_t bytes = 0, align = 1;
    std::string space;
  };
  struct Function {
    bool entry = false;
    std::vector<std::pair<std::string, Variable>> params;
    std::string result;
    size_t body = 0;  // the word behind its {
  };
  void split(const std::string& text);
  void read_outline();
  Variable read_variable(size_t& i, std::string& name) const;

  std::vector<std::string> lines_;
  std::vector<Word> words_;
  int capability_ = 0;
  std::map<std::string, Function> functions_;
  std::map<std::string, Variable> variables_;
  std::map<std::string, std::unique_ptr<char[]>> globals_;  // memory of those in global memory
  std::map<std::string, std::unique_ptr<Kernel>> ready_;
};

}  // namespace comera::ptx
