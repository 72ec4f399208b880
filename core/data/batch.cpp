// make_batch. A cursor counts examples: epoch = cursor / rows, place in the epoch = cursor % rows; a batch never
// holds rows of two epochs. With drop_last a batch that the end of the epoch cut short is skipped: the batch that
// is made starts the next epoch then, and `out.cursor` says so. The first batch of an epoch is never skipped, so a
// set smaller than one batch still trains. `out.next_cursor` is what to ask for next.
#include <algorithm>
#include <set>

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
  if (!info.fields.has_tokens()) return {options.batch_size, 0, options.length};
  if (!options.pack) return {options.batch_size, all, options.length};
  // One sequence of the full length always fits.
  return {options.batch_size, std::max(options.token_budget > 0 ? options.token_budget : all / 2, options.length), options.length};
}

// Padding of a token field. The gradients of padding are zeros, but a GPU adds those of one row of a table one after another, and most
// of a batch may be padding.
void pad(const BatchField& field, std::vector<int32_t>& values) {
  if (!field.spread) return;
  const int64_t different = std::clamp<int64_t>(field.high, 1, kPadding);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<int32_t>(static_cast<int64_t>(i) / field.width % different * (field.high / different));
}

void clear(const DatasetInfo& info, const Sizes& sizes, Batch& out) {
  out.sequences = out.tokens = 0;
  const bool tokens = info.fields.has_tokens();
  const auto s = static_cast<size_t>(sizes.sequences), t = static_cast<size_t>(sizes.tokens);
  std::set<std::string> names;
  if (tokens) names = {"positions", "starts", "lengths"};
  for (const BatchField& field : info.fields.fields) names.insert(field.name);
  std::erase_if(out.ints, [&](const auto& column) { return !names.contains(column.first); });
  std::erase_if(out.reals, [&](const auto& column) { return !names.contains(column.first); });
  for (const BatchField& field : info.fields.fields) {
    const size_t count = (field.per == Per::token ? t : s) * static_cast<size_t>(field.width);
    if (field.dtype == DType::i32) {
      out.ints[field.name].assign(count, static_cast<int32_t>(field.low));
      if (field.per == Per::token) pad(field, out.ints[field.name]);
    } else {
      out.reals[field.name].assign(count, 0.0f);
    }
  }
  out.rows.assign(s, -1);
  if (!tokens) return;
  for (const char* name : {"starts", "lengths"}) out.ints[name].assign(s, 0);
  std::vector<int32_t>& positions = out.ints["positions"];
  positions.resize(t);
  for (size_t i = 0; i < t; ++i) positions[i] = static_cast<int32_t>(static_cast<int64_t>(i) % sizes.length);
}

// Tokens of a row, the same in all of its token fields; -1: it has none.
int64_t tokens_of(const BatchLayout& layout, const Columns& row) {
  int64_t count = -1;
  for (const BatchField& field : layout.fields) {
    if (field.per != Per::token) continue;
    const auto values = static_cast<int64_t>(field.dtype == DType::i32 ? row.ints.at(field.name).size() : row.reals.at(field.name).size());
    CHECK(values % field.width == 0 && (count < 0 || count == values / field.width), field.name << " of a row has " << values << " values");
    count = values / field.width;
  }
  return count;
}

template <class T>
void put(const BatchField& field, const std::vector<T>& values, int64_t example, int64_t start, std::vector<T>& out) {
  const auto at = static_cast<size_t>((field.per == Per::token ? start : example) * field.width);
  CHECK(field.per == Per::token || static_cast<int64_t>(values.size()) == field.width,
        field.name << " of a row has " << values.size() << " values");
  std::copy(values.begin(), values.end(), out.begin() + static_cast<long>(at));
}

// Appends a row; false when the tokens that are left are too few.
bool append(const BatchLayout& layout, const Columns& row, const BatchOptions& options, const Sizes& sizes, Batch& out) {
  int64_t start = 0;
  if (const int64_t count = tokens_of(layout, row); count >= 0) {
    start = options.pack ? out.tokens : out.sequences * options.length;
    if (start + count > sizes.tokens) return false;
    std::vector<int32_t>& positions = out.ints["positions"];
    for (int64_t i = 0; i < count; ++i) positions[static_cast<size_t>(start + i)] = static_cast<int32_t>(i);
    out.ints["starts"][static_cast<size_t>(out.sequences)] = static_cast<int32_t>(start);
    out.ints["lengths"][static_cast<size_t>(out.sequences)] = static_cast<int32_t>(count);
    out.tokens += count;
  }
  for (const BatchField& field : layout.fields) {
    if (field.dtype == DType::i32)
      put(field, row.ints.at(field.name), out.sequences, start, out.ints.at(field.name));
    else
      put(field, row.reals.at(field.name), out.sequences, start, out.reals.at(field.name));
  }
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

// The labels become the masked tokens, -1 elsewhere; tokens around texts and their like are left. Of masked tokens 8 in 10 are read as the
// mask, 1 as any token, 1 as it is.
void mask_tokens(const DatasetInfo& info, const BatchOptions& options, int64_t epoch, int64_t row, Columns& columns) {
  const Philox chosen{options.seed, static_cast<uint32_t>(epoch), kMaskSite},
      read_as{options.seed, static_cast<uint32_t>(epoch), kMaskedAsSite};
  std::vector<int32_t>&ids = columns.ints.at("ids"), &labels = columns.ints.at("labels");
  for (size_t i = 0; i < ids.size(); ++i) {
    const uint64_t place = static_cast<uint64_t>(row) << 20 | i;
    labels[i] = -1;
    if (std::binary_search(info.special_tokens.begin(), info.special_tokens.end(), ids[i])) continue;
    if (uniform_half(chosen.word(place)) >= options.mask_share) continue;
    labels[i] = ids[i];
    const uint32_t word = read_as.word(place);
    if (word % 10 < 8)
      ids[i] = info.mask_token;
    else if (word % 10 == 8)
      ids[i] = static_cast<int32_t>(word / 10 % static_cast<uint32_t>(info.vocab_size));
  }
}

// Fills `out` from `cursor` to a full batch or the end of the epoch; true when it is full.
bool fill(const Dataset& data, const BatchOptions& options, const Sizes& sizes, int64_t cursor, Batch& out) {
  const DatasetInfo& info = data.info();
  clear(info, sizes, out);
  out.epoch = cursor / info.rows;
  out.cursor = out.next_cursor = cursor;
  Columns values;
  for (int64_t place = cursor % info.rows; place < info.rows && out.sequences < sizes.sequences; ++place) {
    const int64_t row = options.shuffle ? shuffled_row(place, info.rows, options.seed, out.epoch) : place;
    data.read(row, options.length, values);
    if (options.token_dropout > 0 && info.unknown_token >= 0) drop_tokens(info, options, out.epoch, row, values.ints.at("ids"));
    if (options.mask_share > 0) mask_tokens(info, options, out.epoch, row, values);
    if (!append(info.fields, values, options, sizes, out)) return true;
    out.rows[static_cast<size_t>(out.sequences)] = row;
    ++out.sequences;
    ++out.next_cursor;
  }
  return out.sequences == sizes.sequences || (options.pack && sizes.tokens > 0 && out.tokens == sizes.tokens);
}

bool packs(const BatchOptions& options, const Sizes& sizes) { return options.pack && sizes.tokens > 0; }

// Whether the epoch has enough rows left for all parts. Rows of a batch that is not packed are known before it is made.
bool has_rows_left(const DatasetInfo& info, const BatchOptions& options, const Sizes& sizes, int64_t cursor) {
  return options.parts == 1 || packs(options, sizes) || info.rows - cursor % info.rows >= options.batch_size * options.parts;
}

struct Extent {
  int64_t next_cursor;
  bool full;
};
// What fill() would take.
Extent packed_extent(const Dataset& data, const BatchOptions& options, const Sizes& sizes, int64_t cursor) {
  const int64_t rows = data.info().rows, epoch = cursor / rows;
  int64_t sequences = 0, tokens = 0;
  for (int64_t place = cursor % rows; place < rows && sequences < sizes.sequences; ++place, ++sequences) {
    const int64_t row = options.shuffle ? shuffled_row(place, rows, options.seed, epoch) : place;
    tokens += data.tokens(row, options.length);
    if (tokens > sizes.tokens) return {cursor + sequences, true};
  }
  return {cursor + sequences, sequences == sizes.sequences || tokens == sizes.tokens};
}
}  // namespace

int64_t Dataset::tokens(int64_t row, int64_t max_length) const {
  Columns columns;
  read(row, max_length, columns);
  return tokens_of(info().fields, columns);
}

int64_t cursor_behind(const Dataset& data, const BatchOptions& options, int64_t cursor, int64_t part) {
  const DatasetInfo& info = data.info();
  CHECK(options.shuffle && options.drop_last, "a part that is skipped is one of training");
  const Sizes sizes = sizes_of(info, options);
  if (packs(options, sizes)) {
    const Extent extent = packed_extent(data, options, sizes, cursor);
    if (extent.full || part > 0 || cursor % info.rows == 0) return extent.next_cursor;
    return packed_extent(data, options, sizes, (cursor / info.rows + 1) * info.rows).next_cursor;
  }
  const int64_t place = cursor % info.rows;
  const bool skips = part == 0 && place > 0 && (place + options.batch_size > info.rows || !has_rows_left(info, options, sizes, cursor));
  const int64_t begin = skips ? cursor - place + info.rows : cursor;
  return std::min(begin + options.batch_size, (begin / info.rows + 1) * info.rows);
}

namespace {
bool read_batch(const Dataset& data, const BatchOptions& options, int64_t cursor, Batch& out, int64_t part) {
  const DatasetInfo& info = data.info();
  CHECK(cursor >= 0 && info.rows > 0, "cursor " << cursor << ", rows " << info.rows);
  const Sizes sizes = sizes_of(info, options);
  const bool at_end = !options.shuffle && cursor >= info.rows;
  const bool left = has_rows_left(info, options, sizes, cursor);
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

}  // namespace

bool make_batch(const Dataset& data, const BatchOptions& options, int64_t cursor, Batch& out, int64_t part) {
  bool made = false;
  try {
    made = read_batch(data, options, cursor, out, part);
  } catch (const Error&) {
    data.check_unchanged();  // a changed file is the cause
    throw;
  }
  data.check_unchanged();
  return made;
}

}  // namespace comera
