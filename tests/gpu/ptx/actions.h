// What single instructions do, lane by lane.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tests/gpu/ptx/program.h"

namespace comera::ptx {

// Generic addresses of shared and local memory carry their space above all bits that a pointer has.
inline constexpr uint64_t kWindowBits = uint64_t{0xffff} << 48, kSharedWindow = uint64_t{0x5a5a} << 48,
                          kLocalWindow = uint64_t{0x1c1c} << 48;

inline constexpr size_t kSecondResult = 25;  // of a pair of results: the predicate's place in Instruction::at

// Instructions whose operands are registers and numbers alone.
struct Operation {
  Action action;
  std::vector<int> bytes;    // of each operand; 0: a predicate
  bool among_lanes = false;  // its last operand says which lanes come together
};
// By all of its name, "add.s32". Null where it is not known.
const Operation* find_operation(const std::string& name);

namespace actions {
Action moves(int bytes);                // at[0] = at[1]
Action packs(int bytes, bool unpacks);  // at[0] (of so many bytes) = {at[1], at[2]}, or the other way
void generic_of_shared(Warp& warp, const Instruction& i, uint32_t lanes);
// Loads or stores numbers of so many bytes. The address is at[0], the registers follow.
Action numbers(bool loads, int bytes, bool is_signed, int register_bytes);
void atomic_add(Warp& warp, const Instruction& i, uint32_t lanes);         // result, address, number
void multiply_matrices(Warp& warp, const Instruction& i, uint32_t lanes);  // mma.m16n8k8 in tf32: 4 registers of D, 4 of A, 2 of B, 4 of C
}  // namespace actions

}  // namespace comera::ptx
