#include "core/data/token_pack.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <future>
#include <thread>

#include "core/base/error.h"
#include "core/data/packed_file.h"
#include "core/data/sha256.h"

namespace comera {
namespace {

constexpr size_t kPiece = 1 << 19;  // bytes of a text that a thread takes at once, and a little more up to a place for a cut

// Head of a packed file; the ids follow, i32.
struct PackedTokens {
  char magic[8] = {'t', 'o', 'k', 'e', 'n', 's', '0', '1'};
  char key[64] = {};
  int64_t count = 0;
  uint64_t sum = 0;  // of the ids
};

// Finds damage: each id moves all bits of those before it (FNV-1a, by 32 bits at once).
uint64_t sum_of(std::span<const int32_t> ids, uint64_t sum) {
  for (const int32_t id : ids) {
    sum = (sum ^ static_cast<uint32_t>(id)) * 0x100000001b3u;
    sum ^= sum >> 29;
  }
  return sum;
}
constexpr uint64_t kNoSum = 0xcbf29ce484222325u;

}  // namespace

void encode_pieces(const Tokenizer& tokenizer, const Documents& texts, int threads,
                   const std::function<void(const std::vector<int32_t>&)>& each, const std::function<void(double)>& progress) {
  const size_t at_once = threads > 0 ? static_cast<size_t>(threads) : std::max(1u, std::thread::hardware_concurrency());
  struct Piece {
    size_t end;
    std::future<std::vector<int32_t>> ids;
  };
  std::deque<Piece> pieces;  // in the making
  for (size_t begin = 0; begin < texts.size() || !pieces.empty();) {
    while (begin < texts.size() && pieces.size() < at_once) {
      const size_t end = texts.size() - begin <= kPiece ? texts.size() : texts.cut(tokenizer, begin + kPiece);
      pieces.push_back(
          {end, std::async(std::launch::async, [&texts, &tokenizer, begin, end] { return texts.ids(tokenizer, begin, end); })});
      begin = end;
    }
    const std::vector<int32_t> ids = pieces.front().ids.get();
    if (progress) progress(static_cast<double>(pieces.front().end) / static_cast<double>(texts.size()));
    pieces.pop_front();
    each(ids);
  }
}

bool TokenPack::open(const std::string& packed, const std::string& key, int64_t tokens) {
  std::unique_ptr<const MappedFile> file;
  try {
    file = std::make_unique<const MappedFile>(packed);
  } catch (const Error&) {  // a packed file that cannot be read is made again
    return false;
  }
  const std::string_view bytes = file->bytes();
  PackedTokens head;
  const std::string magic(head.magic, sizeof head.magic);
  if (bytes.size() < sizeof head) return false;
  std::memcpy(&head, bytes.data(), sizeof head);
  if (magic != std::string_view(head.magic, sizeof head.magic) || key != std::string_view(head.key, sizeof head.key)) return false;
  if (head.count < 0 || (bytes.size() - sizeof head) / sizeof(int32_t) != static_cast<size_t>(head.count) ||
      bytes.size() % sizeof(int32_t) != 0)
    return false;
  const std::span<const int32_t> ids(reinterpret_cast<const int32_t*>(bytes.data() + sizeof head), static_cast<size_t>(head.count));
  if (sum_of(ids, kNoSum) != head.sum || std::any_of(ids.begin(), ids.end(), [&](int32_t id) { return id < 0 || id >= tokens; }))
    return false;
  ids_ = ids;
  file_ = std::move(file);
  return true;
}

TokenPack::TokenPack(const Documents& texts, const Tokenizer& tokenizer, const std::function<void(double)>& progress, int threads) {
  const std::string key = sha256_hex(texts.fingerprint() + "/" + tokenizer.fingerprint());
  try {
    open_packed(
        "tokens-" + key.substr(0, 32) + ".pack", texts.path(), [&](const std::string& path) { return open(path, key, tokenizer.size()); },
        [&](PackedOutput& out) {
          PackedTokens head;
          std::memcpy(head.key, key.data(), sizeof head.key);
          head.sum = kNoSum;
          out.write(&head, sizeof head);
          encode_pieces(
              tokenizer, texts, threads,
              [&](const std::vector<int32_t>& ids) {
                head.count += static_cast<int64_t>(ids.size());
                head.sum = sum_of(ids, head.sum);
                out.write(ids.data(), ids.size() * sizeof(int32_t));
              },
              progress);
          texts.check_unchanged();
          out.write_at_begin(&head, sizeof head);
        });
  } catch (const Error& error) {
    if (error.code() != ErrorCode::storage) throw;
    encode_pieces(
        tokenizer, texts, threads, [&](const std::vector<int32_t>& ids) { held_.insert(held_.end(), ids.begin(), ids.end()); }, progress);
    texts.check_unchanged();
    ids_ = held_;
  }
}

}  // namespace comera
