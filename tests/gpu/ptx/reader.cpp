// The bodies of kernels: from words to instructions, their operands and the place of every register.
#include <algorithm>
#include <bit>
#include <stdexcept>

#include "tests/gpu/ptx/actions.h"
#include "tests/gpu/ptx/program.h"

namespace comera::ptx {
namespace {

struct Unknown : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace

// Reads the body of a kernel, with those of the functions that it calls in their place.
class Reader {
 public:
  Reader(Program& program, Kernel& kernel) : program_(program), kernel_(kernel) {}

  void read(const Program::Function& entry) {
    kernel_.specials = {take(4), take(4), take(4), take(4), take(4), take(4)};
    for (const auto& [name, variable] : entry.params) {
      kernel_.param_bytes = (kernel_.param_bytes + variable.align - 1) / variable.align * variable.align;
      symbols_[name] = {Space::param, kernel_.param_bytes};
      kernel_.params.push_back({kernel_.param_bytes, variable.bytes});
      kernel_.param_bytes += variable.bytes;
    }
    read_body(entry, "");
    for (const auto& [at, label] : jumps_) {
      const auto target = labels_.find(label);
      if (target == labels_.end()) throw Unknown("label " + label);
      kernel_.code[at].target = target->second;
    }
    Instruction end;
    end.kind = Kind::leave;
    kernel_.code.push_back(end);
    kernel_.dynamic_shared_at = (kernel_.static_shared_bytes + 127) / 128 * 128;
    for (const size_t place : dynamic_) kernel_.constants[place].value += static_cast<uint64_t>(kernel_.dynamic_shared_at);
    kernel_.file_bytes = next_;
  }

 private:
  struct Register {
    int at = 0, bytes = 0;  // 0: a predicate
    int count = 1;
  };
  struct Symbol {
    Space space;
    int64_t at;
  };
  struct Operand {
    enum class Form { name, number, memory, list, pair } form = Form::name;
    std::string text, second;  // second: of a pair a|b
    bool negated = false;      // !p, -1
    int64_t offset = 0;
    std::vector<Operand> items;
  };

  static int row_bytes(int bytes) { return std::max(bytes * kLanes, 64); }
  int take(int bytes, int rows = 1) {  // 0: a predicate
    const int at = next_;
    next_ += rows * row_bytes(bytes);
    return at;
  }

  const std::string& word() const { return program_.words_[i_].text; }
  void expect(const char* text) {
    if (word() != text)
      throw Unknown("'" + word() + "' in line " + std::to_string(program_.words_[i_].line) + ", where " + text + " was expected");
    ++i_;
  }

  void read_body(const Program::Function& function, const std::string& prefix) {
    const size_t behind = i_;
    i_ = function.body;
    scopes_.emplace_back();
    const size_t depth = scopes_.size();
    std::vector<size_t> returns;
    for (;;) {
      const std::string& first = word();
      if (first == "{") {
        scopes_.emplace_back();
        ++i_;
      } else if (first == "}") {
        ++i_;
        const bool last = scopes_.size() == depth;
        scopes_.pop_back();
        if (last) break;
      } else if (first == ".reg") {
        read_registers();
      } else if (first == ".param" || first == ".local" || first == ".shared") {
        ++i_;
        std::string name;
        const Program::Variable variable = program_.read_variable(i_, name);
        expect(";");
        if (first == ".param") {
          scopes_.back()[name] = {take(static_cast<int>(variable.bytes)), static_cast<int>(variable.bytes), 1};
        } else if (first == ".local") {
          kernel_.local_bytes = (kernel_.local_bytes + 15) / 16 * 16;
          symbols_[name] = {Space::local, kernel_.local_bytes};
          kernel_.local_bytes += variable.bytes;
        } else {
          program_.variables_[name] = variable;
          program_.variables_[name].space = ".shared";
        }
      } else if (first == ".pragma") {
        while (word() != ";") ++i_;
        ++i_;
      } else if (program_.words_[i_ + 1].text == ":") {
        labels_[prefix + first] = static_cast<int>(kernel_.code.size());
        i_ += 2;
      } else {
        read_instruction(prefix, returns);
      }
    }
    for (const size_t at : returns) kernel_.code[at].target = static_cast<int>(kernel_.code.size());
    if (!prefix.empty()) i_ = behind;
  }

  void read_registers() {
    const std::string type = program_.words_[++i_].text.substr(1);
    const int bytes = type == "pred" ? 0 : bytes_of_type(type);
    do {
      const std::string name = program_.words_[++i_].text;
      ++i_;
      int count = 1;
      if (word() == "<") {
        count = std::stoi(program_.words_[i_ + 1].text);
        i_ += 3;
      }
      scopes_.back()[name] = {take(bytes, count), bytes, count};
    } while (word() == ",");
    expect(";");
  }

  // Nothing where there is no such register.
  const Register* find_register(const std::string& name, Register& room) const {
    size_t digits = name.size();
    while (digits > 0 && isdigit(static_cast<unsigned char>(name[digits - 1]))) --digits;
    for (size_t s = scopes_.size(); s-- > 0;) {
      if (const auto found = scopes_[s].find(name); found != scopes_[s].end() && found->second.count == 1) return &found->second;
      if (digits == name.size()) continue;
      const auto family = scopes_[s].find(name.substr(0, digits));
      if (family == scopes_[s].end() || family->second.count == 1) continue;
      const int number = std::stoi(name.substr(digits));
      room = {family->second.at + number * row_bytes(family->second.bytes), family->second.bytes, 1};
      return &room;
    }
    const std::pair<const char*, int> specials[] = {{"%tid.x", kernel_.specials.thread},  {"%ntid.x", kernel_.specials.threads},
                                                    {"%ctaid.x", kernel_.specials.block}, {"%nctaid.x", kernel_.specials.blocks},
                                                    {"%laneid", kernel_.specials.lane},   {"%lanemask_le", kernel_.specials.lanes_up_to}};
    for (const auto& [special, at] : specials)
      if (name == special) {
        room = {at, 4, 1};
        return &room;
      }
    return nullptr;
  }

  Operand read_operand() {
    Operand operand;
    if (word() == "!" || word() == "-") {
      operand.negated = true;
      ++i_;
    }
    if (word() == "[") {
      operand.form = Operand::Form::memory;
      operand.text = program_.words_[++i_].text;
      ++i_;
      while (word() == "+" || word() == "-") {  // +-8 is written too
        const bool minus = word() == "-";
        ++i_;
        if (word() == "-") {
          operand.offset -= std::stoll(program_.words_[++i_].text);
        } else {
          operand.offset += (minus ? -1 : 1) * std::stoll(word());
        }
        ++i_;
      }
      expect("]");
    } else if (word() == "{" || word() == "(") {
      operand.form = Operand::Form::list;
      const std::string close = word() == "{" ? "}" : ")";
      ++i_;
      while (word() != close) {
        operand.items.push_back(read_operand());
        if (word() == ",") ++i_;
      }
      ++i_;
    } else {
      operand.text = word();
      ++i_;
      if (isdigit(static_cast<unsigned char>(operand.text[0]))) operand.form = Operand::Form::number;
      if (word() == "|") {
        operand.form = Operand::Form::pair;
        operand.second = program_.words_[i_ + 1].text;
        i_ += 2;
      }
    }
    return operand;
  }

  int constant(uint64_t value, int bytes) {
    const auto key = std::pair{value, bytes};
    if (const auto found = constants_.find(key); found != constants_.end()) return found->second;
    const int at = take(bytes);
    kernel_.constants.push_back({at, bytes, value});
    constants_[key] = at;
    return at;
  }

  // The address of a variable, as mov and brackets have it.
  int address_of(const std::string& name, int64_t offset, int bytes, Space* space = nullptr) {
    if (const auto local = symbols_.find(name); local != symbols_.end()) {
      if (space && *space == Space::generic) *space = local->second.space;
      const uint64_t window = local->second.space == Space::local ? kLocalWindow : 0;
      return constant(window + static_cast<uint64_t>(local->second.at + offset), bytes);
    }
    const auto found = program_.variables_.find(name);
    if (found == program_.variables_.end()) throw Unknown("the name " + name);
    const Program::Variable& variable = found->second;
    if (variable.space != ".shared")
      return constant(std::bit_cast<uint64_t>(program_.globals_.at(name).get()) + static_cast<uint64_t>(offset), bytes);
    if (space && *space == Space::generic) *space = Space::shared;
    if (variable.bytes == 0) {  // it begins behind all others
      const int at = take(bytes);
      dynamic_.push_back(kernel_.constants.size());
      kernel_.constants.push_back({at, bytes, static_cast<uint64_t>(offset)});
      return at;
    }
    const auto placed = shared_at_.find(name);
    int64_t begin = 0;
    if (placed == shared_at_.end()) {
      begin = (kernel_.static_shared_bytes + variable.align - 1) / variable.align * variable.align;
      shared_at_[name] = begin;
      kernel_.static_shared_bytes = begin + variable.bytes;
    } else {
      begin = placed->second;
    }
    return constant(static_cast<uint64_t>(begin + offset), bytes);
  }

  // bytes 0: a predicate.
  int place(const Operand& operand, int bytes) {
    if (operand.form == Operand::Form::number) {
      const std::string& text = operand.text;
      uint64_t value = 0;
      if (text.size() > 2 && text[0] == '0' && (text[1] == 'f' || text[1] == 'F' || text[1] == 'd' || text[1] == 'D')) {
        value = std::stoull(text.substr(2), nullptr, 16);
        const int has = text[1] == 'f' || text[1] == 'F' ? 4 : 8;
        if (bytes != has) throw Unknown("the number " + text + " of " + std::to_string(bytes) + " bytes");
      } else {
        value = std::stoull(text, nullptr, 0);
      }
      if (operand.negated) value = 0 - value;
      if (bytes == 0) return constant(value != 0, 0);
      return constant(bytes == 8 ? value : value & ((uint64_t{1} << (8 * bytes)) - 1), bytes);
    }
    if (operand.negated) throw Unknown("a negated operand");
    Register room;
    const Register* found = find_register(operand.text, room);
    if (!found) return address_of(operand.text, 0, bytes);
    if (found->bytes != bytes)
      throw Unknown(operand.text + " has " + std::to_string(found->bytes) + " bytes, where " + std::to_string(bytes) + " were expected");
    return found->at;
  }

  int width_of(const Operand& operand) const {
    Register room;
    const Register* found = find_register(operand.text, room);
    if (!found) throw Unknown("the register " + operand.text);
    return found->bytes;
  }

  // A conversion may read a register that is wider than its type says: of that the low bytes, which an instruction of their own takes.
  Operand low_bytes(const Operand& operand, int bytes, const Instruction& conversion) {
    if (operand.form != Operand::Form::name) return operand;
    const int has = width_of(operand);
    if (has <= bytes) return operand;
    const auto type = [](int width) { return ".u" + std::to_string(8 * width); };
    Instruction made = conversion;
    made.kind = Kind::plain;
    made.action = find_operation("cvt" + type(bytes) + type(has))->action;
    Operand low = operand;
    low.text = "low bytes " + std::to_string(kernel_.code.size());
    made.at[0] = take(bytes);
    made.at[1] = place(operand, has);
    scopes_.back()[low.text] = {made.at[0], bytes, 1};
    kernel_.code.push_back(made);
    return low;
  }

  void read_instruction(const std::string& prefix, std::vector<size_t>& returns) {
    Instruction made;
    made.line = program_.words_[i_].line;
    if (word() == "@") {
      ++i_;
      if (word() == "!") {
        made.unless = true;
        ++i_;
      }
      Operand guard;
      guard.text = word();
      made.guard = place(guard, 0);
      ++i_;
    }
    const std::string op = word();
    ++i_;
    std::vector<Operand> operands;
    while (word() != ";") {
      operands.push_back(read_operand());
      if (word() == ",") ++i_;
    }
    ++i_;
    std::vector<std::string> parts;
    for (size_t begin = 0; begin <= op.size();) {
      const size_t end = std::min(op.find('.', begin), op.size());
      parts.push_back(op.substr(begin, end - begin));
      begin = end + 1;
    }
    const auto has = [&](const char* part) { return std::find(parts.begin(), parts.end(), part) != parts.end(); };

    if (parts[0] == "bra") {
      made.kind = Kind::branch;
      jumps_.emplace_back(kernel_.code.size(), prefix + operands.at(0).text);
    } else if (parts[0] == "ret" && !prefix.empty()) {
      made.kind = Kind::branch;
      returns.push_back(kernel_.code.size());
    } else if (parts[0] == "ret" || parts[0] == "exit") {
      made.kind = Kind::leave;
    } else if (parts[0] == "call") {
      return call(operands, made);
    } else if (parts[0] == "bar" && has("red")) {
      made.kind = Kind::barrier_or;
      made.at[0] = place(operands.at(0), 0);
      made.at[1] = place(operands.at(2), 0);
    } else if (parts[0] == "bar" && parts[1] == "sync") {
      made.kind = Kind::barrier;
      if (operands.size() != 1 || operands[0].text != "0") throw Unknown("a barrier with a number");
    } else if (parts[0] == "membar" || parts[0] == "fence") {
      return;  // what is written is seen at once
    } else if (parts[0] == "ld" || parts[0] == "st") {
      return load_or_store(parts, operands, made);
    } else if (parts[0] == "atom") {
      if (op != "atom.shared.add.u32" && op != "atom.global.add.u32") throw Unknown(op);
      made.action = actions::atomic_add;
      made.at[0] = place(operands.at(0), 4);
      address(operands.at(1), has("shared") ? Space::shared : Space::global, made, 1);
      made.at[2] = place(operands.at(2), 4);
    } else if (parts[0] == "mma") {
      matrices(op, operands, made);
    } else if (parts[0] == "mov" && (operands.at(0).form == Operand::Form::list || operands.at(1).form == Operand::Form::list)) {
      const bool packs = operands[1].form == Operand::Form::list;
      const std::vector<Operand>& small = operands[packs ? 1 : 0].items;
      const int bytes = bytes_of_type(parts.back());
      if (small.size() != 2 || bytes < 4) throw Unknown(op + " with other than two halves");
      made.action = actions::packs(bytes, !packs);
      made.at[0] = place(operands[packs ? 0 : 1], bytes);
      for (size_t k = 0; k < 2; ++k) made.at[k + 1] = place(small[k], bytes / 2);
    } else if (parts[0] == "mov" && parts[1] != "pred") {
      const int bytes = bytes_of_type(parts[1]);
      made.action = actions::moves(bytes);
      made.at[0] = place(operands.at(0), bytes);
      made.at[1] = place(operands.at(1), bytes);
    } else if (parts[0] == "cvta") {  // addresses of global memory are the same either way
      made.action = parts[1] == "shared" ? actions::generic_of_shared : actions::moves(8);
      if (parts[1] != "shared" && op != "cvta.to.global.u64") throw Unknown(op);
      made.at[0] = place(operands.at(0), 8);
      made.at[1] = place(operands.at(1), 8);
    } else {
      const Operation* known = find_operation(op);
      if (!known) throw Unknown(op);
      made.kind = known->among_lanes ? Kind::among_lanes : Kind::plain;
      made.action = known->action;
      std::vector<Operand> flat;
      for (Operand& operand : operands) {
        if (operand.form == Operand::Form::pair) {
          Operand second;
          second.text = operand.second;
          made.at[kSecondResult] = place(second, 0);
          operand.form = Operand::Form::name;
          made.count = 2;
        }
        flat.push_back(operand);
      }
      if (flat.size() != known->bytes.size()) throw Unknown(op + " with " + std::to_string(flat.size()) + " operands");
      if (parts[0] == "cvt") flat[1] = low_bytes(flat[1], known->bytes[1], made);
      for (size_t k = 0; k < flat.size(); ++k) made.at[k] = place(flat[k], known->bytes[k]);
      if (known->among_lanes) made.target = made.at[flat.size() - 1];
    }
    kernel_.code.push_back(made);
  }

  // The operand [name + offset] as made.at[where] and made.offset.
  void address(const Operand& operand, Space space, Instruction& made, size_t where) {
    if (operand.form != Operand::Form::memory) throw Unknown("an address without brackets");
    made.space = space;
    Register room;
    if (const Register* found = find_register(operand.text, room)) {
      made.address_bytes = found->bytes;
      made.at[where] = found->at;
      made.offset = operand.offset;
      return;
    }
    made.address_bytes = 8;
    made.at[where] = address_of(operand.text, operand.offset, 8, &made.space);
  }

  void load_or_store(const std::vector<std::string>& parts, std::vector<Operand>& operands, Instruction& made) {
    const bool loads = parts[0] == "ld";
    const std::string& type = parts.back();
    Space space = Space::generic;
    for (size_t k = 1; k + 1 < parts.size(); ++k) {
      if (parts[k] == "global")
        space = Space::global;
      else if (parts[k] == "shared")
        space = Space::shared;
      else if (parts[k] == "local")
        space = Space::local;
      else if (parts[k] == "param")
        space = Space::param;
      else if (parts[k] == "volatile")
        made.is_volatile = true;
      else if (parts[k] == "v2")
        made.count = 2;
      else if (parts[k] == "v4")
        made.count = 4;
      else if (parts[k] != "wb")  // written back, as stores are that say nothing
        throw Unknown(parts[0] + " with " + parts[k]);
    }
    Operand& memory = operands.at(loads ? 1 : 0);
    Operand& value = operands.at(loads ? 0 : 1);
    // Parameters of functions, which are registers here.
    Register room;
    if (space == Space::param && memory.offset == 0) {
      if (const Register* param = find_register(memory.text, room); param && memory.text[0] != '%') {
        made.action = actions::moves(param->bytes);
        made.at[0] = loads ? place(value, param->bytes) : param->at;
        made.at[1] = loads ? param->at : place(value, param->bytes);
        kernel_.code.push_back(made);
        return;
      }
    }
    const int bytes = bytes_of_type(type);
    address(memory, space, made, 0);
    std::vector<Operand> values = made.count == 1 ? std::vector{value} : value.items;
    if (static_cast<int>(values.size()) != made.count) throw Unknown("a vector of another length");
    int width = 0;  // of a register
    for (size_t k = 0; k < values.size(); ++k) {
      const int its = values[k].form == Operand::Form::number ? std::max(bytes, 2) : width_of(values[k]);
      if (its < bytes || (k > 0 && its != width)) throw Unknown("registers of another width");
      made.at[k + 1] = place(values[k], width = its);
    }
    made.action = actions::numbers(loads, bytes, type[0] == 's', width);
    kernel_.code.push_back(made);
  }

  void matrices(const std::string& op, const std::vector<Operand>& operands, Instruction& made) {
    if (op != "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32") throw Unknown(op);
    made.kind = Kind::among_lanes;
    made.action = actions::multiply_matrices;
    size_t at = 0;
    for (const auto& [operand, count] : {std::pair<size_t, size_t>{0, 4}, {1, 4}, {2, 2}, {3, 4}}) {
      if (operands.at(operand).items.size() != count) throw Unknown(op + " with another number of registers");
      for (const Operand& item : operands[operand].items) made.at[at++] = place(item, 4);
    }
  }

  void call(const std::vector<Operand>& operands, const Instruction& made) {
    if (made.guard >= 0) throw Unknown("a call with a guard");
    // (result), name, (arguments)
    const std::string& name = operands.at(1).text;
    const auto found = program_.functions_.find(name);
    if (found == program_.functions_.end()) throw Unknown("the function " + name);
    const Program::Function& function = found->second;
    const auto copy = [&](int to, int from) {
      Instruction move;
      move.line = made.line;
      move.action = actions::moves(8);
      move.at[0] = to;
      move.at[1] = from;
      kernel_.code.push_back(move);
    };
    scopes_.emplace_back();
    for (size_t k = 0; k < function.params.size(); ++k) {
      const int from = place(operands.at(2).items.at(k), 8);
      const int to = take(8);
      scopes_.back()[function.params[k].first] = {to, 8, 1};
      copy(to, from);
    }
    const int result = take(8);
    scopes_.back()[function.result] = {result, 8, 1};
    read_body(function, "call" + std::to_string(++calls_) + ":");
    scopes_.pop_back();
    copy(place(operands.at(0).items.at(0), 8), result);
  }

  Program& program_;
  Kernel& kernel_;
  size_t i_ = 0;  // the next word
  int next_ = 0;  // of the file
  int calls_ = 0;
  std::vector<std::map<std::string, Register>> scopes_;
  std::map<std::string, Symbol> symbols_;
  std::map<std::string, int64_t> shared_at_;
  std::map<std::pair<uint64_t, int>, int> constants_;
  std::vector<size_t> dynamic_;  // constants that are addresses in dynamic shared memory
  std::map<std::string, int> labels_;
  std::vector<std::pair<size_t, std::string>> jumps_;
};

const Kernel* Program::find(const std::string& name) {
  if (const auto found = ready_.find(name); found != ready_.end()) return found->second.get();
  const auto function = functions_.find(name);
  if (function == functions_.end() || !function->second.entry) return nullptr;
  auto kernel = std::make_unique<Kernel>();
  kernel->name = name;
  try {
    Reader(*this, *kernel).read(function->second);
  } catch (const std::exception& unknown) {  // of the standard library: what was looked for is not there
    kernel->unknown = unknown.what();
    if (!kernel->code.empty()) kernel->unknown += " (behind line " + std::to_string(kernel->code.back().line) + ")";
  }
  return (ready_[name] = std::move(kernel)).get();
}

}  // namespace comera::ptx
