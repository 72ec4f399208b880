// The GPU in software (ptx/warp.h): that it computes what PTX says, and that what a GPU does silently wrong is found. Each
// fault is planted in a kernel that runs without it.
#include "tests/gpu/ptx/warp.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

namespace comera::test {
namespace {

using ptx::Fault;

alignas(128) std::array<float, 256> memory;

bool allowed(uintptr_t address, int64_t bytes) {
  const auto begin = std::bit_cast<uintptr_t>(memory.data());
  return address >= begin && address + static_cast<uintptr_t>(bytes) <= begin + sizeof memory;
}

// A kernel of one parameter, the address of `memory`, which is %rd1; %r1 is the thread, %rd2 the address of its number.
std::string kernel(const std::string& body) {
  return R"(
.version 9.0
.target sm_100
.address_size 64
.extern .shared .align 128 .b8 room[];
.func (.param .b64 func_retval0) twice(.param .b64 twice_param_0)
{
 .reg .b64 %fd<3>;
 ld.param.f64 %fd1, [twice_param_0];
 add.f64 %fd2, %fd1, %fd1;
 st.param.f64 [func_retval0], %fd2;
 ret;
}
.visible .entry k(.param .u64 k_param_0)
.maxntid 256
{
 .reg .pred %p<9>;
 .reg .b16 %rs<9>;
 .reg .b32 %r<29>;
 .reg .b32 %f<29>;
 .reg .b64 %rd<9>;
 .reg .b64 %fd<9>;
 ld.param.u64 %rd8, [k_param_0];
 cvta.to.global.u64 %rd1, %rd8;
 mov.u32 %r1, %tid.x;
 mul.wide.u32 %rd2, %r1, 4;
 add.s64 %rd2, %rd1, %rd2;
 mov.b32 %r2, room;
 shl.b32 %r3, %r1, 2;
 add.s32 %r3, %r2, %r3;
)" + body +
         "\n ret;\n}\n";
}

// memory = 0, 1, 2, ...; then the kernel.
void run(const std::string& body, int threads = 64, int64_t shared_bytes = 1024, int64_t blocks = 1) {
  std::iota(memory.begin(), memory.end(), 0.0f);
  ptx::Program program(kernel(body));
  const ptx::Kernel* k = program.find("k");
  ASSERT_NE(k, nullptr);
  const float* at = memory.data();
  char params[8];
  std::memcpy(params, &at, sizeof at);
  ptx::run(program, *k, {blocks, threads, shared_bytes, params}, allowed);
}

std::string fault_of(const std::string& body, int threads = 64, int64_t shared_bytes = 1024, int64_t blocks = 1) {
  try {
    run(body, threads, shared_bytes, blocks);
  } catch (const Fault& fault) {
    return fault.what();
  }
  return "";
}

::testing::AssertionResult is(const std::string& fault, const char* expected) {
  if (fault.find(expected) != std::string::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << (fault.empty() ? "nothing was found" : fault) << "; expected: " << expected;
}

TEST(Ptx, Computes) {
  run("ld.global.f32 %f1, [%rd2]; fma.rn.f32 %f2, %f1, 0f40000000, 0f3F800000; st.global.f32 [%rd2], %f2;");
  for (size_t i = 0; i < 64; ++i) EXPECT_EQ(memory[i], 2 * static_cast<float>(i) + 1);
  EXPECT_EQ(memory[64], 64);

  // Whole numbers: rounding towards zero, signs that are kept, wide products, the halves of a double, a call.
  run(R"(
 cvt.u32.u64 %r4, %rd1;
 mov.b32 %r5, -7; div.s32 %r6, %r5, 2; rem.s32 %r7, %r5, 2; shr.s32 %r8, %r5, 1; shr.u32 %r9, %r5, 28;
 cvt.rn.f32.s32 %f1, %r6; cvt.rn.f32.s32 %f2, %r7; cvt.rn.f32.s32 %f3, %r8; cvt.rn.f32.u32 %f4, %r9;
 mul.wide.s32 %rd3, %r5, %r5; cvt.rn.f32.s64 %f5, %rd3;
 mov.f64 %fd1, 0d4008000000000000;
 {
 .reg .b32 %temp;
 mov.b64 {%temp, %r10}, %fd1;
 }
 cvt.rn.f32.u32 %f6, %r10;
 { // a call
 .param .b64 param0;
 st.param.f64 [param0], %fd1;
 .param .b64 retval0;
 call.uni (retval0),
 twice,
 (
 param0
 );
 ld.param.f64 %fd2, [retval0];
 }
 cvt.rn.f32.f64 %f7, %fd2;
 cvt.rzi.s32.f32 %r11, 0fC0E00000; cvt.rn.f32.s32 %f8, %r11;
 st.global.v4.f32 [%rd1], {%f1, %f2, %f3, %f4};
 st.global.v4.f32 [%rd1+16], {%f5, %f6, %f7, %f8};
 mov.b64 %rd4, 38654705659; // 9 in its upper half, -5 in its lower
 cvt.rn.f32.s32 %f9, %rd4; cvt.s64.s32 %rd5, %rd4; cvt.rn.f32.s64 %f10, %rd5;
 st.global.v2.f32 [%rd1+32], {%f9, %f10};
 bfe.u32 %r5, 1748, 4, 6; cvt.rn.f32.u32 %f1, %r5; // 1748 = 0b11011010100
 bfe.u32 %r5, 1748, 9, 40; cvt.rn.f32.u32 %f2, %r5;
 st.global.v2.f32 [%rd1+40], {%f1, %f2};
)",
      1);
  const std::vector<float> expected{-3, -1, -4, 15, 49, static_cast<float>(0x40080000), 6, -7, -5, -5, 45, 3};
  EXPECT_EQ(std::vector<float>(memory.begin(), memory.begin() + 12), expected);
}

// Lanes that part and meet: thread i goes i % 5 times around, odd ones by another way, and all exchange behind it.
TEST(Ptx, LanesPartAndMeet) {
  run(R"(
 rem.u32 %r4, %r1, 5;
 mov.f32 %f1, 0f00000000;
$L_loop:
 setp.eq.s32 %p1, %r4, 0;
 @%p1 bra $L_done;
 and.b32 %r5, %r1, 1;
 setp.eq.s32 %p2, %r5, 1;
 @%p2 bra $L_odd;
 add.f32 %f1, %f1, 0f3F800000;
 bra.uni $L_next;
$L_odd:
 add.f32 %f1, %f1, 0f41200000;
$L_next:
 sub.s32 %r4, %r4, 1;
 bra.uni $L_loop;
$L_done:
 mov.b32 %r6, %f1;
 shfl.sync.bfly.b32 %r7|%p3, %r6, 1, 31, -1;
 mov.b32 %f2, %r7;
 st.global.f32 [%rd2], %f2;
)");
  for (int i = 0; i < 64; ++i) EXPECT_EQ(memory[static_cast<size_t>(i)], static_cast<float>((i ^ 1) % 5 * (i % 2 == 0 ? 10 : 1))) << i;
}

// The last thread's number to all, by shared memory.
const char* const kTurn =
    "cvt.rn.f32.u32 %f1, %r1; st.shared.f32 [%r3], %f1; BARRIER ld.shared.f32 %f2, [room+252]; st.global.f32 [%rd2], %f2;";
std::string turn(const std::string& barrier) {
  std::string body = kTurn;
  return body.replace(body.find("BARRIER"), 7, barrier);
}

TEST(Ptx, SharedMemoryWantsABarrier) {
  run(turn("bar.sync 0;"));
  for (size_t i = 0; i < 64; ++i) EXPECT_EQ(memory[i], 63);
  EXPECT_TRUE(is(fault_of(turn("")), "without a barrier between"));
  EXPECT_TRUE(is(fault_of(turn("bar.sync 0;") + " st.shared.f32 [%r3], %f2;"), "writes shared memory that another thread reads"));
  run(turn("bar.sync 0;") + " bar.sync 0; st.shared.f32 [%r3], %f2;");
  EXPECT_TRUE(is(fault_of("st.shared.f32 [room], 0f00000000;"), "another thread writes"));
  // Inside a warp its lanes may wait for each other alone; then nothing is known of them until the next barrier.
  EXPECT_EQ(fault_of(turn("bar.warp.sync -1;"), 32).find("shared"), std::string::npos);
  EXPECT_TRUE(is(fault_of(turn("bar.warp.sync -1;"), 64), "without a barrier between"));
  run("st.shared.u32 [%r3], 0; bar.sync 0; atom.shared.add.u32 %r4, [%r2], 1; bar.sync 0; ld.shared.u32 %r5, [room]; "
      "cvt.rn.f32.u32 %f1, %r5; st.global.f32 [%rd2], %f1;");
  EXPECT_EQ(memory[3], 64);
}

// %rd3 is the address of the thread's own number, %rd2 that of the same thread in the first block.
TEST(Ptx, ABlockUsesNothingThatAnotherOneWrites) {
  const auto fault_of_two = [](const std::string& body) {
    return fault_of("mov.u32 %r4, %ctaid.x; mul.wide.u32 %rd3, %r4, 256; add.s64 %rd3, %rd2, %rd3; mov.b32 %f1, 0f00000000; " + body, 64,
                    1024, 2);
  };
  EXPECT_EQ(fault_of_two("ld.global.f32 %f1, [%rd3]; st.global.f32 [%rd3], %f1; ld.global.f32 %f1, [%rd3];"), "");
  EXPECT_EQ(fault_of_two("ld.global.f32 %f1, [%rd2]; st.global.f32 [%rd3+512], %f1;"), "");
  EXPECT_TRUE(is(fault_of_two("st.global.f32 [%rd2], %f1;"), "block 1, thread 0 writes memory that another block writes"));
  EXPECT_TRUE(is(fault_of_two("st.global.f32 [%rd3], %f1; ld.global.f32 %f1, [%rd2];"), "reads memory that another block writes"));
  EXPECT_TRUE(is(fault_of_two("ld.global.f32 %f1, [%rd2+256]; st.global.f32 [%rd3], %f1;"), "writes memory that another block reads"));
  EXPECT_TRUE(is(fault_of_two("ld.global.v2.f32 {%f1, %f2}, [%rd1+8]; st.global.f32 [%rd1+12], %f1;"), "memory that another block"));
  EXPECT_EQ(fault_of_two("st.volatile.global.f32 [%rd2], %f1; ld.volatile.global.f32 %f1, [%rd2];"), "");
  EXPECT_TRUE(is(fault_of_two("st.volatile.global.f32 [%rd2], %f1; ld.global.f32 %f1, [%rd2+4];"), "memory that another block writes"));
  EXPECT_TRUE(
      is(fault_of_two("ld.global.f32 %f1, [%rd2+256]; st.volatile.global.f32 [%rd3], %f1;"), "writes memory that another block reads"));
}

TEST(Ptx, WhatWasNotWrittenIsNaN) {
  run("ld.shared.f32 %f1, [%r3]; st.global.f32 [%rd2], %f1;");
  EXPECT_TRUE(std::isnan(memory[5]));
}

TEST(Ptx, MemoryEndsWhereItEnds) {
  run("ld.global.f32 %f1, [%rd1+1020];", 1);
  EXPECT_TRUE(is(fault_of("ld.global.f32 %f1, [%rd1+1024];", 1), "reads 4 bytes"));
  EXPECT_TRUE(is(fault_of("st.global.f32 [%rd1+-4], %f1;", 1), "writes 4 bytes"));
  EXPECT_TRUE(is(fault_of("ld.global.f32 %f1, [%rd2+772];"), "thread 63")) << "the last of its threads";
  run("st.shared.f32 [%r3+768], %f1;");
  EXPECT_TRUE(is(fault_of("st.shared.f32 [%r3+772], %f1;"), "of the 1024 of its shared memory"));
  EXPECT_TRUE(is(fault_of("ld.param.u64 %rd3, [k_param_0+8];"), "parameters"));
}

TEST(Ptx, AddressesAreAligned) {
  run("ld.global.v2.f32 {%f1, %f2}, [%rd1+8];", 1);
  EXPECT_TRUE(is(fault_of("ld.global.v2.f32 {%f1, %f2}, [%rd1+4];", 1), "no multiple of 8"));
  EXPECT_TRUE(is(fault_of("ld.shared.v4.f32 {%f1, %f2, %f3, %f4}, [room+8];", 1), "no multiple of 16"));
}

TEST(Ptx, LanesThatNeverComeAreFound) {
  const char* exchange = "mov.b32 %r6, 1; shfl.sync.bfly.b32 %r7, %r6, 1, 31, -1;";
  run(exchange);
  EXPECT_TRUE(is(fault_of(std::string("setp.gt.u32 %p1, %r1, 7; @%p1 bra $L_past; ") + exchange + " $L_past: bar.sync 0;"), "never come"));
  EXPECT_TRUE(is(fault_of(std::string("setp.gt.u32 %p1, %r1, 7; @%p1 exit; ") + exchange), "have left"));
  EXPECT_TRUE(is(fault_of("setp.gt.u32 %p1, %r1, 7; @%p1 bar.sync 0;"), "not all of its lanes"));
}

TEST(Ptx, WhatIsNotKnownIsSaid) {
  EXPECT_TRUE(is(fault_of("sin.approx.f32 %f1, %f2;"), "sin.approx.f32"));
  EXPECT_TRUE(is(fault_of("add.f32 %f1, %f2, %fd1;"), "%fd1 has 8 bytes"));
  EXPECT_TRUE(is(fault_of("mov.b32 %r4, elsewhere;"), "elsewhere"));
  EXPECT_TRUE(is(fault_of("bra $L_nowhere;"), "$L_nowhere"));
}

// C (16, 8) = A (16, 8) B (8, 8) + 1; memory is A by rows, and all of B is 0.1, which is another number in tf32.
TEST(Ptx, ProductsOfTiles) {
  run(R"(
 shr.u32 %r4, %r1, 2; and.b32 %r5, %r1, 3;
 shl.b32 %r6, %r4, 5; shl.b32 %r7, %r5, 2; add.s32 %r6, %r6, %r7;
 cvt.u64.u32 %rd3, %r6; add.s64 %rd3, %rd1, %rd3;
 ld.global.b32 %r8, [%rd3]; ld.global.b32 %r9, [%rd3+256]; ld.global.b32 %r10, [%rd3+16]; ld.global.b32 %r11, [%rd3+272];
 mov.f32 %f5, 0f3DCCCCCD; cvt.rna.tf32.f32 %r12, %f5;
 mov.f32 %f1, 0f3F800000;
 mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f7, %f8, %f9, %f10}, {%r8, %r9, %r10, %r11}, {%r12, %r12}, {%f1, %f1, %f1, %f1};
 bar.sync 0;
 shl.b32 %r6, %r4, 5; shl.b32 %r7, %r5, 3; add.s32 %r6, %r6, %r7;
 cvt.u64.u32 %rd4, %r6; add.s64 %rd4, %rd1, %rd4;
 st.global.f32 [%rd4], %f7; st.global.f32 [%rd4+4], %f8; st.global.f32 [%rd4+256], %f9; st.global.f32 [%rd4+260], %f10;
)",
      32);
  const float tenth = std::bit_cast<float>(uint32_t{0x3dccc000});
  EXPECT_NE(tenth, 0.1f);
  for (int row = 0; row < 16; ++row) {
    float sum = 1;
    for (int term = 0; term < 8; ++term) sum += static_cast<float>(row * 8 + term) * tenth;
    for (int column = 0; column < 8; ++column)
      EXPECT_NEAR(memory[static_cast<size_t>(row * 8 + column)], sum, 1e-4f * sum) << row << " " << column;
  }
}

TEST(Ptx, RoundingToTf32) {
  const auto rounded = [](const std::string& from) {
    run("mov.f32 %f1, 0f" + from + "; cvt.rna.tf32.f32 %r4, %f1; mov.b32 %f2, %r4; st.global.f32 [%rd1], %f2;", 1);
    return std::bit_cast<uint32_t>(memory[0]);
  };
  EXPECT_EQ(rounded("3F800FFF"), 0x3f800000u);
  EXPECT_EQ(rounded("3F801000"), 0x3f802000u);  // a tie
  EXPECT_EQ(rounded("BF801000"), 0xbf802000u);
  EXPECT_EQ(rounded("FF800000"), 0xff800000u);
  EXPECT_TRUE(std::isnan(std::bit_cast<float>(rounded("7F800001"))));  // none of the bits that are kept
}

TEST(Ptx, PermutedBytes) {
  const auto permuted = [](const std::string& selector) {
    run("mov.b32 %r4, 0x44332211; mov.b32 %r5, 0x887766d5; prmt.b32 %r6, %r4, %r5, " + selector + "; st.global.b32 [%rd1], %r6;", 1);
    return std::bit_cast<uint32_t>(memory[0]);
  };
  EXPECT_EQ(permuted("0x3210U"), 0x44332211u);
  EXPECT_EQ(permuted("0x7654U"), 0x887766d5u);
  EXPECT_EQ(permuted("0x5410U"), 0x66d52211u);
  EXPECT_EQ(permuted("0xFC80U"), 0xffff0011u);  // signs
}

TEST(Ptx, FieldsOfBits) {
  const auto field = [](const std::string& from, const std::string& width) {
    run("mov.b32 %r4, 0x44332211; bfe.u32 %r6, %r4, " + from + ", " + width + "; st.global.b32 [%rd1], %r6;", 1);
    return std::bit_cast<uint32_t>(memory[0]);
  };
  EXPECT_EQ(field("8", "8"), 0x22u);
  EXPECT_EQ(field("0", "32"), 0x44332211u);
  EXPECT_EQ(field("24", "16"), 0x44u);
  EXPECT_EQ(field("4", "0"), 0u);
  EXPECT_EQ(field("32", "8"), 0u);
}

TEST(Ptx, BlocksHaveTheirNumbers) {
  run("mov.u32 %r4, %ctaid.x; mov.u32 %r5, %nctaid.x; mad.lo.s32 %r6, %r5, 100, %r4; cvt.rn.f32.u32 %f1, %r6; "
      "mul.wide.u32 %rd3, %r4, 4; add.s64 %rd3, %rd1, %rd3; setp.ne.s32 %p1, %r1, 0; @%p1 bra $L_end; st.global.f32 [%rd3], %f1; $L_end:",
      64, 0, 3);
  EXPECT_EQ(memory[0], 300);
  EXPECT_EQ(memory[2], 302);
  EXPECT_EQ(memory[3], 3);
}

}  // namespace
}  // namespace comera::test
