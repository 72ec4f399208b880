#include "core/store/csv.h"

#include "core/base/error.h"

namespace comera {

CsvReader::CsvReader(std::istream& in) : in_(in) {
  for (int byte : {0xEF, 0xBB, 0xBF}) {
    if (in_.peek() != byte) break;
    in_.get();
  }
}

bool CsvReader::next(std::vector<std::string>& fields) {
  fields.assign(1, "");
  line_ = at_line_;
  if (in_.peek() == std::istream::traits_type::eof()) return false;
  bool quoted = false;
  for (int c; (c = in_.get()) != std::istream::traits_type::eof();) {
    if (c == '\n') ++at_line_;
    if (quoted) {
      if (c != '"')
        fields.back() += static_cast<char>(c);
      else if (in_.peek() == '"')
        fields.back() += static_cast<char>(in_.get());
      else
        quoted = false;
    } else if (c == '"' && fields.back().empty()) {
      quoted = true;
    } else if (c == ',') {
      fields.emplace_back();
    } else if (c == '\n') {
      return true;
    } else if (c != '\r' || in_.peek() != '\n') {
      fields.back() += static_cast<char>(c);
    }
  }
  if (quoted)
    throw Error(ErrorCode::config, "the CSV is not complete", "the quote of line " + std::to_string(line_) + " never ends",
                "check the file");
  return true;
}

}  // namespace comera
