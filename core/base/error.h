// The project's one error system. `Error` is for the world (bad input, full disk): what, why, what to do.
// `CHECK` is for our own bugs; it throws too, so a run ends with a message and its store intact.
#pragma once
#include <sstream>
#include <stdexcept>
#include <string>

namespace comera {

// Values are the process exit codes of the command line (app/cli/README.md).
enum class ErrorCode : int {
  other = 1,
  usage = 2,
  config = 3,  // bad config or data
  device = 4,
  memory = 5,
  diverged = 6,
  storage = 7,
  not_found = 8,
};

namespace detail {
// Texts of a file may be part of an error: their line breaks and other control characters become spaces.
inline std::string one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = ' ';
  return text;
}
}  // namespace detail

class Error : public std::runtime_error {
 public:
  // Each text is one line without a final full stop: `what` happened, `why`, and `hint`, what to do about it.
  Error(ErrorCode code, const std::string& what, std::string why = "", std::string hint = "")
      : std::runtime_error(detail::one_line(what)),
        code_(code),
        why_(detail::one_line(std::move(why))),
        hint_(detail::one_line(std::move(hint))) {}

  ErrorCode code() const { return code_; }
  const std::string& why() const { return why_; }
  const std::string& hint() const { return hint_; }

 private:
  ErrorCode code_;
  std::string why_, hint_;
};

namespace detail {
[[noreturn]] inline void check_failed(const char* file, int line, const char* condition, const std::string& text) {
  std::ostringstream out;
  out << "internal check failed: " << condition;
  if (!text.empty()) out << " (" << text << ")";
  std::ostringstream where;
  where << file << ":" << line;
  throw Error(ErrorCode::other, out.str(), where.str(), "this is a bug in CoMERA Studio: please report it with this text");
}
}  // namespace detail

// CHECK(condition, text parts...): the parts are streamed only on failure.
#define COMERA_CHECK_TEXT_(...)             \
  ([&]() -> std::string {                   \
    std::ostringstream comera_check_text_;  \
    comera_check_text_ << __VA_ARGS__;      \
    return comera_check_text_.str();        \
  }())
#define CHECK(condition, ...)                                                                            \
  do {                                                                                                   \
    if (!(condition)) [[unlikely]]                                                                       \
      ::comera::detail::check_failed(__FILE__, __LINE__, #condition, COMERA_CHECK_TEXT_("" __VA_OPT__(<<) __VA_ARGS__)); \
  } while (0)

}  // namespace comera
