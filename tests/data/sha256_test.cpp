#include "core/data/sha256.h"

#include "tests/data/support.h"

namespace comera {
namespace {

// FIPS 180-4's examples, and lengths around the 64-byte block (expected values: coreutils' sha256sum).
struct Vector {
  std::string data, hex;
};
const std::vector<Vector> kVectors = {
    {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    {std::string(1000000, 'a'), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
    {std::string(55, 'x'), "d5e285683cd4efc02d021a5c62014694958901005d6f71e89e0989fac77e4072"},
    {std::string(56, 'x'), "04c26261370ee7541549d16dee320c723e3fd14671e66a099afe0a377c16888e"},
    {std::string(63, 'x'), "75220b47218278e656f2013bb8f0c455a25eaf01e86c64924e9d48d89776d6f2"},
    {std::string(64, 'x'), "7ce100971f64e7001e8fe5a51973ecdfe1ced42befe7ee8d5fd6219506b5393c"},
    {std::string(65, 'x'), "9537c5fdf120482f7d58d25e9ed583f52c02b4e304ea814db1633ad565aed7e9"},
    {std::string(119, 'x'), "000b48d4edf0fa7bee3c6236ecd2785baa5db4eeb8bb54341b029e0d9fa5fb0c"},
    {std::string(120, 'x'), "13f05a0b594787f5ecd315edc96141bd3243203d1b7d4f0836f37308b276ba98"},
};

TEST(Sha256, KnownVectors) {
  for (const Vector& v : kVectors) EXPECT_EQ(sha256_hex(v.data), v.hex) << v.data.size() << " bytes";
}

TEST(Sha256, PiecesGiveTheSameSum) {
  std::string data;
  for (int i = 0; i < 1000; ++i) data.push_back(static_cast<char>(i * 7));
  for (size_t piece : {1, 3, 63, 64, 65, 128, 999}) {
    Sha256 sum;
    for (size_t at = 0; at < data.size(); at += piece) sum.update(std::string_view(data).substr(at, piece));
    EXPECT_EQ(sum.hex(), sha256_hex(data)) << piece;
  }
}

TEST(Sha256, TheVocabularyInTheRepositoryIsThePublishedOne) {
  EXPECT_EQ(sha256_hex(test::read_file(test::kVocab)), "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3");
}

}  // namespace
}  // namespace comera
