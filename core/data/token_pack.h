// The ids of long texts: made by several threads, kept in the cache folder and mapped, so that the next start makes none and memory holds
// none.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/mapped_file.h"
#include "core/data/documents.h"
#include "core/data/tokenizer.h"

namespace comera {

// Ids of all texts in pieces, in their order; the same whatever the number of threads (0: as many as the machine has). `progress` gets the
// share that is done, 0..1.
void encode_pieces(const Tokenizer& tokenizer, const Documents& texts, int threads,
                   const std::function<void(const std::vector<int32_t>&)>& each, const std::function<void(double)>& progress = {});

// Immutable after construction; any thread may read.
class TokenPack {
 public:
  // Where nothing can be written, the ids are held in memory. Throws as Documents::ids().
  TokenPack(const Documents& texts, const Tokenizer& tokenizer, const std::function<void(double)>& progress = {}, int threads = 0);

  std::span<const int32_t> ids() const { return ids_; }
  bool mapped() const { return file_ != nullptr; }

 private:
  bool open(const std::string& packed, const std::string& key, int64_t tokens);

  std::unique_ptr<const MappedFile> file_;
  std::vector<int32_t> held_;
  std::span<const int32_t> ids_;
};

}  // namespace comera
