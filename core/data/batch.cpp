// make_batch. A cursor counts examples: epoch = cursor / rows, place in the epoch = cursor % rows; a batch never
// holds rows of two epochs. With drop_last a batch that the end of the epoch cut short is skipped: the batch that
// is made starts the next epoch then, and `out.cursor` says so. The first batch of an epoch is never skipped, so a
// set smaller than one batch still trains. `out.next_cursor` is what to ask for next.
#include <algorithm>

#include "core/base/error.h"
#include "core/data/dataset.h"
#include "core/data/order.h"

namespace comera {
namespace {

constexpr int64_t kPadding = 64;  // rows of a table that it is spread over

struct Sizes {
  int64_t sequences, tokens, length;  // S, T; of the longest sequence
};

Sizes sizes_of(const DatasetInfo& info, const BatchOptions& options) {
  CHECK(options.batch_size > 0 && options.length > 0 && options.token_budget >= 0);
  const int64_t all = options.batch_size * options.length;
  if (!info.text) return {options.batch_size, 0, options.length};
  if (!options.pack) return {options.batch_size, all, options.length};
  // One sequence of the full length always fits.
  return {options.batch_size, std::max(options.token_budget > 0 ? options.token_budget : all / 2, options.length), options.length};
}

void clear(const DatasetInfo& info, const Sizes& sizes, Batch& out) {
  out.sequences = out.tokens = 0;
  const auto s = static_cast<size_t>(sizes.sequences), t = static_cast<size_t>(sizes.tokens);
  for (auto* values : {&out.ids, &out.segments, &out.positions}) values->assign(t, 0);
  // Where no token will be stand ids and positions from all over the tables. Their gradients are zeros, but a GPU adds those
  // of one row one after another, and most of a batch may be padding.
  const int64_t different = info.text ? std::clamp<int64_t>(info.vocab_size, 1, kPadding) : 0;
  for (int64_t i = 0; info.text && i < sizes.tokens; ++i) {
    out.ids[static_cast<size_t>(i)] = static_cast<int32_t>(i % different * (info.vocab_size / different));
    out.positions[static_cast<size_t>(i)] = static_cast<int32_t>(i % sizes.length);
  }
  for (auto* values : {&out.starts, &out.lengths}) values->assign(info.text ? s : 0, 0);
  out.labels.assign(s, -1);
  out.rows.assign(s, -1);
  out.pixels.assign(info.text ? 0 : s * static_cast<size_t>(info.height * info.width), 0.0f);
}

// Appends a row; false when the tokens that are left are too few.
bool append_text(const TextRow& row, const BatchOptions& options, const Sizes& sizes, Batch& out) {
  const auto count = static_cast<int64_t>(row.ids.size());
  const int64_t start = options.pack ? out.tokens : out.sequences * options.length;
  if (start + count > sizes.tokens) return false;
  std::copy(row.ids.begin(), row.ids.end(), out.ids.begin() + start);
  std::copy(row.segments.begin(), row.segments.end(), out.segments.begin() + start);
  for (int64_t i = 0; i < count; ++i) out.positions[static_cast<size_t>(start + i)] = static_cast<int32_t>(i);
  out.starts[static_cast<size_t>(out.sequences)] = static_cast<int32_t>(start);
  out.lengths[static_cast<size_t>(out.sequences)] = static_cast<int32_t>(count);
  out.tokens += count;
  return true;
}

// Another draw in every epoch, the same whenever this row of this epoch is made again.
void drop_tokens(const DatasetInfo& info, const BatchOptions& options, int64_t epoch, int64_t row, std::vector<int32_t>& ids) {
  const Philox random{options.seed, static_cast<uint32_t>(epoch), kTokenDropoutSite};
  for (size_t i = 0; i < ids.size(); ++i)
    if (ids[i] != info.cls_token && ids[i] != info.sep_token &&
        uniform_half(random.word(static_cast<uint64_t>(row) << 20 | i)) < options.token_dropout)
      ids[i] = info.unknown_token;
}

// Fills `out` from `cursor` to a full batch or the end of the epoch; true when it is full.
bool fill(const Dataset& data, const BatchOptions& options, const Sizes& sizes, int64_t cursor, Batch& out) {
  const DatasetInfo& info = data.info();
  clear(info, sizes, out);
  out.epoch = cursor / info.rows;
  out.cursor = out.next_cursor = cursor;
  TextRow text;
  ImageRow image;
  for (int64_t place = cursor % info.rows; place < info.rows && out.sequences < sizes.sequences; ++place) {
    const int64_t row = options.shuffle ? shuffled_row(place, info.rows, options.seed, out.epoch) : place;
    if (info.text) {
      data.text_row(row, options.length, text);
      if (options.token_dropout > 0) drop_tokens(info, options, out.epoch, row, text.ids);
      if (!append_text(text, options, sizes, out)) return true;
    } else {
      data.image_row(row, image);
      std::copy(image.pixels.begin(), image.pixels.end(), out.pixels.begin() + out.sequences * static_cast<int64_t>(image.pixels.size()));
    }
    out.labels[static_cast<size_t>(out.sequences)] = info.text ? text.label : image.label;
    out.rows[static_cast<size_t>(out.sequences)] = row;
    ++out.sequences;
    ++out.next_cursor;
  }
  return out.sequences == sizes.sequences || (options.pack && info.text && out.tokens == sizes.tokens);
}

}  // namespace

bool make_batch(const Dataset& data, const BatchOptions& options, int64_t cursor, Batch& out, int64_t part) {
  const DatasetInfo& info = data.info();
  CHECK(cursor >= 0 && info.rows > 0, "cursor " << cursor << ", rows " << info.rows);
  const Sizes sizes = sizes_of(info, options);
  const bool at_end = !options.shuffle && cursor >= info.rows;
  // Rows of a batch that is not packed are known before it is made.
  const bool left = options.parts == 1 || (options.pack && info.text) || info.rows - cursor % info.rows >= options.batch_size * options.parts;
  const bool full = !at_end && fill(data, options, sizes, cursor, out) && left;
  if (full || (!at_end && part > 0) || (!at_end && (!options.drop_last || cursor % info.rows == 0))) return true;
  if (options.shuffle) {
    fill(data, options, sizes, (cursor / info.rows + 1) * info.rows, out);
    return true;
  }
  clear(info, sizes, out);
  out.epoch = cursor / info.rows;
  out.cursor = out.next_cursor = cursor;
  return false;
}

}  // namespace comera
