#include "core/store/process.h"

#include <sys/random.h>
#include <unistd.h>

#include <chrono>
#include <fstream>

namespace comera {

double now_s() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

int64_t own_pid() { return ::getpid(); }

const std::string& boot_id() {
  static const std::string id = [] {
    std::ifstream file("/proc/sys/kernel/random/boot_id");
    std::string line;
    std::getline(file, line);
    return line;
  }();
  return id;
}

std::string random_text(int length) {
  static constexpr char kDigits[] = "0123456789abcdefghjkmnpqrstvwxyz";
  std::string text(static_cast<size_t>(length), '0');
  // 32 divides 256: no digit is likelier. Requests this small are always served whole.
  if (::getrandom(text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    uint64_t mix = static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()) * 0x9E3779B97F4A7C15ull +
                   static_cast<uint64_t>(::getpid());
    for (char& c : text) c = static_cast<char>((mix = mix * 6364136223846793005ull + 1442695040888963407ull) >> 56);
  }
  for (char& c : text) c = kDigits[static_cast<unsigned char>(c) & 31];
  return text;
}

}  // namespace comera
