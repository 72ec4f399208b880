// Rows of a Parquet file by Arrow, a few at a time: what is decoded is a batch of rows, not the file.
#include <arrow/api.h>
#include <arrow/io/file.h>
#include <arrow/util/config.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/schema.h>
#include <parquet/properties.h>

#include <algorithm>
#include <charconv>
#include <exception>
#include <memory>
#include <numeric>

#include "core/data/parquet_rows.h"

namespace comera {
namespace {

constexpr int64_t kBatch = 1024;  // rows that are decoded at once

std::string one_line(std::string text) {
  constexpr size_t kMost = 200;
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < ' '; }, ' ');
  if (text.size() > kMost) text.resize(kMost);
  while (text.ends_with('.') || text.ends_with(' ')) text.pop_back();
  return text;
}

bool is_text(const arrow::DataType& type) {
  switch (type.id()) {
    case arrow::Type::NA:
    case arrow::Type::BOOL:
    case arrow::Type::INT8:
    case arrow::Type::INT16:
    case arrow::Type::INT32:
    case arrow::Type::INT64:
    case arrow::Type::UINT8:
    case arrow::Type::UINT16:
    case arrow::Type::UINT32:
    case arrow::Type::UINT64:
    case arrow::Type::HALF_FLOAT:
    case arrow::Type::FLOAT:
    case arrow::Type::DOUBLE:
    case arrow::Type::STRING:
    case arrow::Type::LARGE_STRING:
    case arrow::Type::STRING_VIEW:
    case arrow::Type::DECIMAL128:
    case arrow::Type::DECIMAL256:
    case arrow::Type::DATE32:
    case arrow::Type::DATE64:
    case arrow::Type::TIME32:
    case arrow::Type::TIME64:
    case arrow::Type::TIMESTAMP:
    case arrow::Type::DURATION:
      return true;
    case arrow::Type::DICTIONARY:
      return is_text(*static_cast<const arrow::DictionaryType&>(type).value_type());
    case arrow::Type::EXTENSION:
      return is_text(*static_cast<const arrow::ExtensionType&>(type).storage_type());
    default:
      return false;
  }
}

// The shortest text that stands for the same number.
template <class Number>
void write_number(Number value, std::string& out) {
  char room[64];
  out.assign(room, std::to_chars(room, room + sizeof room, value).ptr);
}

template <class Array>
const Array& as(const arrow::Array& array) {
  return static_cast<const Array&>(array);
}

arrow::Status write_cell(const arrow::Array& array, int64_t row, std::string& out) {
  out.clear();
  if (array.IsNull(row)) return arrow::Status::OK();
  switch (array.type_id()) {
    case arrow::Type::STRING:
      out = as<arrow::StringArray>(array).GetView(row);
      break;
    case arrow::Type::LARGE_STRING:
      out = as<arrow::LargeStringArray>(array).GetView(row);
      break;
    case arrow::Type::STRING_VIEW:
      out = as<arrow::StringViewArray>(array).GetView(row);
      break;
    case arrow::Type::DICTIONARY: {
      const auto& coded = as<arrow::DictionaryArray>(array);
      const int64_t value = coded.GetValueIndex(row);
      if (value < 0 || value >= coded.dictionary()->length()) return arrow::Status::Invalid("a value that its dictionary does not have");
      return write_cell(*coded.dictionary(), value, out);
    }
    case arrow::Type::EXTENSION:
      return write_cell(*as<arrow::ExtensionArray>(array).storage(), row, out);
    case arrow::Type::BOOL:
      out = as<arrow::BooleanArray>(array).Value(row) ? "true" : "false";
      break;
    case arrow::Type::INT8:
      write_number(int{as<arrow::Int8Array>(array).Value(row)}, out);
      break;
    case arrow::Type::INT16:
      write_number(as<arrow::Int16Array>(array).Value(row), out);
      break;
    case arrow::Type::INT32:
      write_number(as<arrow::Int32Array>(array).Value(row), out);
      break;
    case arrow::Type::INT64:
      write_number(as<arrow::Int64Array>(array).Value(row), out);
      break;
    case arrow::Type::UINT8:
      write_number(unsigned{as<arrow::UInt8Array>(array).Value(row)}, out);
      break;
    case arrow::Type::UINT16:
      write_number(as<arrow::UInt16Array>(array).Value(row), out);
      break;
    case arrow::Type::UINT32:
      write_number(as<arrow::UInt32Array>(array).Value(row), out);
      break;
    case arrow::Type::UINT64:
      write_number(as<arrow::UInt64Array>(array).Value(row), out);
      break;
    case arrow::Type::FLOAT:
      write_number(as<arrow::FloatArray>(array).Value(row), out);
      break;
    case arrow::Type::DOUBLE:
      write_number(as<arrow::DoubleArray>(array).Value(row), out);
      break;
    default: {  // dates, times, decimals
      ARROW_ASSIGN_OR_RAISE(const auto value, array.GetScalar(row));
      out = value->ToString();
    }
  }
  return arrow::Status::OK();
}

class ArrowRows final : public ParquetRows {
 public:
  arrow::Status open(const std::string& path) {
    ARROW_ASSIGN_OR_RAISE(auto file, arrow::io::ReadableFile::Open(path));
    parquet::ReaderProperties reads;
    reads.enable_buffered_stream();  // pages of a column one after another, not the column of a whole row group
    reads.set_page_checksum_verification(true);
    parquet::ArrowReaderProperties properties(/*use_threads=*/false);
    properties.set_batch_size(kBatch);
    properties.set_pre_buffer(false);
    parquet::arrow::FileReaderBuilder builder;
    ARROW_RETURN_NOT_OK(builder.Open(std::move(file), reads));
    builder.properties(properties);
    ARROW_ASSIGN_OR_RAISE(reader_, builder.Build());
    rows_ = reader_->parquet_reader()->metadata()->num_rows();
    std::vector<int> leaves;
    for (const parquet::arrow::SchemaField& field : reader_->manifest().schema_fields) {
      const bool text = field.is_leaf() && is_text(*field.field->type());
      columns_.push_back({field.field->name(), field.field->type()->ToString(), text});
      if (text) leaves.push_back(field.column_index);
    }
    texts_ = leaves.size();
    if (texts_ == 0) return arrow::Status::OK();
    std::vector<int> groups(static_cast<size_t>(reader_->num_row_groups()));
    std::iota(groups.begin(), groups.end(), 0);
    ARROW_ASSIGN_OR_RAISE(batches_, reader_->GetRecordBatchReader(groups, leaves));
    return arrow::Status::OK();
  }

  const std::vector<ParquetColumn>& columns() const override { return columns_; }
  int64_t rows() const override { return rows_; }

  bool next(std::vector<std::string>& cells, std::string& error) override try {
    bool is_row = false;
    const arrow::Status status = read(cells, is_row);
    if (status.ok()) return is_row;
    error = one_line(status.message());
    return false;
  } catch (const std::exception& exception) {
    error = one_line(exception.what());
    return false;
  }

 private:
  arrow::Status read(std::vector<std::string>& cells, bool& is_row) {
    while (!batch_ || at_ == batch_->num_rows()) {
      at_ = 0;
      if (!batches_) return arrow::Status::OK();
      ARROW_RETURN_NOT_OK(batches_->ReadNext(&batch_));
      if (!batch_) return arrow::Status::OK();
      if (static_cast<size_t>(batch_->num_columns()) != texts_) return arrow::Status::Invalid("rows with other columns than the file's");
      ARROW_RETURN_NOT_OK(batch_->Validate());
    }
    cells.resize(texts_);
    for (size_t i = 0; i < texts_; ++i) ARROW_RETURN_NOT_OK(write_cell(*batch_->column(static_cast<int>(i)), at_, cells[i]));
    ++at_;
    is_row = true;
    return arrow::Status::OK();
  }

  std::unique_ptr<parquet::arrow::FileReader> reader_;
  std::vector<ParquetColumn> columns_;
  size_t texts_ = 0;  // columns that are text
  int64_t rows_ = 0;
  std::shared_ptr<arrow::RecordBatchReader> batches_;
  std::shared_ptr<arrow::RecordBatch> batch_;
  int64_t at_ = 0;  // the next row of the batch
};

}  // namespace
}  // namespace comera

extern "C" {  // core/data/parquet.cpp
const char* comera_parquet_library() { return "Arrow " ARROW_VERSION_STRING; }

comera::ParquetRows* comera_parquet_open(const std::string& path, std::string& error) try {
  auto rows = std::make_unique<comera::ArrowRows>();
  const arrow::Status status = rows->open(path);
  if (status.ok()) return rows.release();
  error = comera::one_line(status.message());
  return nullptr;
} catch (const std::exception& exception) {
  error = comera::one_line(exception.what());
  return nullptr;
}
}
