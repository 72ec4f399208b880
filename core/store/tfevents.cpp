#include "core/store/tfevents.h"

#include <array>
#include <cmath>
#include <cstring>
#include <fstream>
#include <optional>
#include <string_view>

#include "core/base/error.h"

namespace comera {
namespace {

constexpr uint32_t kCastagnoli = 0x82F63B78;  // reflected

constexpr std::array<uint32_t, 256> make_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? kCastagnoli : 0);
    table[i] = crc;
  }
  return table;
}
constexpr std::array<uint32_t, 256> kTable = make_table();

// ---- protobuf, written -------------------------------------------------------------------------------------------

template <class T>
void put_fixed(std::string& out, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);  // little-endian, as every machine we build for
  out.append(bytes, sizeof value);
}

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 128; value >>= 7) out += static_cast<char>((value & 127) | 128);
  out += static_cast<char>(value);
}

enum Wire : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
void put_key(std::string& out, uint32_t field, Wire wire) { put_varint(out, field << 3 | wire); }
void put_bytes(std::string& out, uint32_t field, const std::string& bytes) {
  put_key(out, field, kBytes);
  put_varint(out, bytes.size());
  out += bytes;
}

std::string event(double wall_time, int64_t step) {
  std::string out;
  put_key(out, 1, kFixed64);
  put_fixed(out, wall_time);
  put_key(out, 2, kVarint);
  put_varint(out, static_cast<uint64_t>(step));
  return out;
}

// ---- protobuf, read ----------------------------------------------------------------------------------------------

struct Malformed {};

struct Field {
  uint32_t number = 0;
  uint32_t wire = 0;
  uint64_t integer = 0;    // varint, fixed32, fixed64
  std::string_view bytes;  // kBytes
};

// Reads the fields of one message, checking every length.
class Message {
 public:
  explicit Message(std::string_view data) : rest_(data) {}

  std::optional<Field> next() {
    if (rest_.empty()) return std::nullopt;
    const uint64_t key = varint();
    Field field{static_cast<uint32_t>(key >> 3), static_cast<uint32_t>(key & 7), 0, {}};
    if (key >> 35 != 0 || field.number == 0) throw Malformed{};
    switch (field.wire) {
      case kVarint:
        field.integer = varint();
        break;
      case kFixed64:
        field.integer = fixed<uint64_t>();
        break;
      case kFixed32:
        field.integer = fixed<uint32_t>();
        break;
      case kBytes:
        field.bytes = take(varint());
        break;
      default:
        throw Malformed{};
    }
    return field;
  }
  bool empty() const { return rest_.empty(); }

  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= static_cast<uint64_t>(byte & 127) << shift;
      if (byte < 128) return value;
    }
    throw Malformed{};
  }
  template <class T>
  T fixed() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }

 private:
  std::string_view take(uint64_t bytes) {
    if (bytes > rest_.size()) throw Malformed{};
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }
  std::string_view rest_;
};

template <class To, class From>
To reinterpret(From bits) {
  static_assert(sizeof(To) == sizeof(From));
  To value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

double half(uint16_t bits) {
  const int exponent = (bits >> 10) & 31, mantissa = bits & 1023;
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == 31) return mantissa ? NAN : sign * INFINITY;
  return exponent == 0 ? sign * std::ldexp(mantissa, -24) : sign * std::ldexp(mantissa + 1024, exponent - 25);
}

// DataType numbers of TensorFlow's types.proto.
enum : uint64_t {
  kFloat = 1,
  kDouble = 2,
  kInt32 = 3,
  kUint8 = 4,
  kInt16 = 5,
  kInt8 = 6,
  kInt64 = 9,
  kBool = 10,
  kBfloat16 = 14,
  kHalf = 19
};

// The one value of raw little-endian content, if there is exactly one.
std::optional<double> content_value(uint64_t type, std::string_view content) {
  Message in(content);
  std::optional<double> value;
  switch (type) {
    case kFloat:
      value = in.fixed<float>();
      break;
    case kDouble:
      value = in.fixed<double>();
      break;
    case kInt32:
      value = in.fixed<int32_t>();
      break;
    case kInt64:
      value = static_cast<double>(in.fixed<int64_t>());
      break;
    case kInt16:
      value = in.fixed<int16_t>();
      break;
    case kInt8:
      value = in.fixed<int8_t>();
      break;
    case kUint8:
    case kBool:
      value = in.fixed<uint8_t>();
      break;
    case kHalf:
      value = half(in.fixed<uint16_t>());
      break;
    case kBfloat16:
      value = reinterpret<float>(static_cast<uint32_t>(in.fixed<uint16_t>()) << 16);
      break;
    default:
      return std::nullopt;
  }
  return in.empty() ? value : std::nullopt;
}

double typed(uint64_t type, uint64_t integer) {
  switch (type) {
    case kFloat:
      return reinterpret<float>(static_cast<uint32_t>(integer));
    case kDouble:
      return reinterpret<double>(integer);
    case kHalf:
      return half(static_cast<uint16_t>(integer));
    case kBfloat16:
      return reinterpret<float>(static_cast<uint32_t>(integer) << 16);
    default:
      return static_cast<double>(static_cast<int64_t>(integer));
  }
}

// A tensor with exactly one number: 1 dtype, 2 shape, 4 raw content, 5.. values by type (packed or not).
std::optional<double> scalar_of_tensor(std::string_view data) {
  uint64_t type = 0, elements = 1;
  std::string_view content;
  std::optional<Field> values;
  Message tensor(data);
  while (const auto field = tensor.next()) {
    if (field->number == 1) type = field->integer;
    if (field->number == 2) {
      Message shape(field->bytes);
      while (const auto dim = shape.next()) {
        if (dim->number != 2) continue;
        Message size(dim->bytes);
        uint64_t length = 0;
        while (const auto part = size.next())
          if (part->number == 1) length = part->integer;
        elements = length == 1 ? elements : 0;  // anything but ones is no scalar
      }
    }
    if (field->number == 4) content = field->bytes;
    const bool number_list =
        (field->number >= 5 && field->number <= 7) || field->number == 10 || field->number == 11 || field->number == 13;
    if (number_list) {
      if (values) elements = 0;
      values = field;
    }
  }
  if (elements != 1) return std::nullopt;
  if (!content.empty()) return content_value(type, content);
  if (!values) return std::nullopt;
  if (values->wire != kBytes) return typed(type, values->integer);
  Message packed(values->bytes);
  if (packed.empty()) return std::nullopt;
  const uint64_t integer = type == kFloat ? packed.fixed<uint32_t>() : type == kDouble ? packed.fixed<uint64_t>() : packed.varint();
  return packed.empty() ? std::optional<double>(typed(type, integer)) : std::nullopt;
}

void read_summary(std::string_view data, double wall_time, int64_t step, TfeventsContents& out) {
  Message summary(data);
  while (const auto item = summary.next()) {
    if (item->number != 1 || item->wire != kBytes) continue;
    std::string tag;
    std::optional<double> value;
    Message fields(item->bytes);
    while (const auto field = fields.next()) {
      if (field->number == 1) tag = std::string(field->bytes);
      if (field->number == 2 && field->wire == kFixed32) value = reinterpret<float>(static_cast<uint32_t>(field->integer));
      if (field->number == 8 && field->wire == kBytes) value = scalar_of_tensor(field->bytes);
    }
    if (value && !tag.empty())
      out.scalars.push_back({wall_time, step, tag, *value});
    else
      ++out.other_values;
  }
}

void read_event(std::string_view data, TfeventsContents& out) {
  double wall_time = 0;
  int64_t step = 0;
  std::string_view summary;
  Message event(data);
  while (const auto field = event.next()) {
    if (field->number == 1 && field->wire == kFixed64) wall_time = reinterpret<double>(field->integer);
    if (field->number == 2) step = static_cast<int64_t>(field->integer);
    if (field->number == 5) summary = field->bytes;
  }
  read_summary(summary, wall_time, step, out);
}

constexpr size_t kHeadBytes = 12;  // length and its checksum

struct Head {
  uint64_t length = 0;
  bool sound = false;
};

Head head_of(const char* bytes) {
  Head head;
  uint32_t crc = 0;
  std::memcpy(&head.length, bytes, 8);
  std::memcpy(&crc, bytes + 8, 4);
  head.sound = crc == masked_crc32c(bytes, 8);
  return head;
}

}  // namespace

uint32_t crc32c(const void* data, size_t bytes) {
  uint32_t crc = ~0u;
  for (const auto* at = static_cast<const unsigned char*>(data); bytes > 0; --bytes) crc = (crc >> 8) ^ kTable[(crc ^ *at++) & 255];
  return ~crc;
}

uint32_t masked_crc32c(const void* data, size_t bytes) {
  const uint32_t crc = crc32c(data, bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

// ---- writing -----------------------------------------------------------------------------------------------------

TfeventsWriter::TfeventsWriter(std::ostream& out, double wall_time) : out_(out) {
  std::string data = event(wall_time, 0);
  put_bytes(data, 3, "brain.Event:2");
  record(data);
}

void TfeventsWriter::scalars(int64_t step, double wall_time, const NamedValues& values) {
  std::string summary;
  for (const auto& [name, value] : values) {
    std::string item;
    put_bytes(item, 1, name);
    put_key(item, 2, kFixed32);
    put_fixed(item, static_cast<float>(value));
    put_bytes(summary, 1, item);
  }
  std::string data = event(wall_time, step);
  put_bytes(data, 5, summary);
  record(data);
}

void TfeventsWriter::record(const std::string& data) {
  std::string out;
  put_fixed(out, static_cast<uint64_t>(data.size()));
  put_fixed(out, masked_crc32c(out.data(), 8));
  out += data;
  put_fixed(out, masked_crc32c(data.data(), data.size()));
  out_.write(out.data(), static_cast<std::streamsize>(out.size()));
}

// ---- reading -----------------------------------------------------------------------------------------------------

TfeventsContents read_tfevents(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) throw Error(ErrorCode::not_found, "cannot read " + path, std::strerror(errno), "check the path");
  const auto size = static_cast<uint64_t>(file.tellg());
  file.seekg(0);
  const auto bad = [&](uint64_t at, const char* why) {
    throw Error(ErrorCode::config, path + " is not a sound event file", std::string(why) + " of the record at byte " + std::to_string(at),
                "the file may be damaged: use another copy");
  };
  TfeventsContents out;
  std::string data;
  for (uint64_t at = 0; at < size;) {
    char head_bytes[kHeadBytes];
    if (size - at < kHeadBytes || !file.read(head_bytes, kHeadBytes)) {
      out.cut_short = true;
      break;
    }
    const Head head = head_of(head_bytes);
    if (!head.sound) bad(at, "wrong checksum of the length");
    const uint64_t left = size - at - kHeadBytes;
    if (left < 4 || head.length > left - 4) {
      out.cut_short = true;
      break;
    }
    data.resize(head.length + 4);
    if (!file.read(data.data(), static_cast<std::streamsize>(data.size()))) bad(at, "cannot read the data");
    uint32_t crc = 0;
    std::memcpy(&crc, data.data() + head.length, 4);
    if (crc != masked_crc32c(data.data(), head.length)) bad(at, "wrong checksum of the data");
    try {
      read_event(std::string_view(data.data(), head.length), out);
    } catch (const Malformed&) {
      bad(at, "wrong structure");
    }
    at += kHeadBytes + head.length + 4;
  }
  return out;
}

bool looks_like_tfevents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  char bytes[kHeadBytes];
  return file.read(bytes, kHeadBytes) && head_of(bytes).sound;
}

}  // namespace comera
