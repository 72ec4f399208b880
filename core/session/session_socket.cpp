#include "core/session/session_socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/error.h"

namespace comera {
namespace {

constexpr size_t kLongest = size_t{1} << 30;  // of a message; a longer one is not one of ours

[[noreturn]] void lost(const std::string& why) { throw Error(ErrorCode::storage, "the connection to the session is lost", why); }

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    throw Error(ErrorCode::storage, "the path of a socket is too long: " + path, "", "set TMPDIR to a short path");
  path.copy(address.sun_path, path.size());
  return address;
}

// Whether something can be read; false = nothing came.
bool comes(int descriptor, int wait_ms) {
  pollfd polled = {descriptor, POLLIN, 0};
  return ::poll(&polled, 1, wait_ms) > 0;
}

}  // namespace

SessionSocket::SessionSocket(SessionSocket&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), received_(std::move(other.received_)) {}

SessionSocket::~SessionSocket() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

SessionSocket SessionSocket::connect(const std::string& path) {
  const sockaddr_un address = address_of(path);
  SessionSocket socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (socket.descriptor_ < 0 || ::connect(socket.descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    throw Error(ErrorCode::storage, "no program listens at " + path, std::strerror(errno));
  return socket;
}

void SessionSocket::send(const Json& message) {
  std::string bytes(sizeof(uint32_t), '\0');
  Json::to_cbor(message, bytes);
  const auto length = static_cast<uint32_t>(bytes.size() - sizeof(uint32_t));
  std::memcpy(bytes.data(), &length, sizeof length);
  for (size_t sent = 0; sent < bytes.size();) {
    const ssize_t some = ::send(descriptor_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (some < 0 && errno == EINTR) continue;
    if (some < 0) lost(std::strerror(errno));
    sent += static_cast<size_t>(some);
  }
}

std::optional<Json> SessionSocket::receive(int wait_ms) {
  for (;;) {
    if (uint32_t length = 0; received_.size() >= sizeof length) {
      std::memcpy(&length, received_.data(), sizeof length);
      if (length > kLongest) lost("a message of " + std::to_string(length) + " bytes");
      if (received_.size() - sizeof length >= length) {
        const auto begin = received_.begin() + sizeof length, end = begin + length;
        Json message = Json::from_cbor(begin, end, true, false);
        if (message.is_discarded()) lost("a message is not CBOR");
        received_.erase(received_.begin(), end);
        return message;
      }
    }
    if (!comes(descriptor_, wait_ms)) return std::nullopt;
    char part[1 << 16];
    const ssize_t size = ::recv(descriptor_, part, sizeof part, 0);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) lost(size == 0 ? "the other program has ended" : std::strerror(errno));
    received_.append(part, static_cast<size_t>(size));
  }
}

SessionListener::SessionListener() {
  std::error_code error;
  folder_ = (std::filesystem::temp_directory_path(error) / "comera-XXXXXX").string();
  if (error || !::mkdtemp(folder_.data())) throw Error(ErrorCode::storage, "no folder for a socket in " + folder_, std::strerror(errno));
  path_ = folder_ + "/session";
  const sockaddr_un address = address_of(path_);
  descriptor_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor_ < 0 || ::bind(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(descriptor_, 1) != 0)
    throw Error(ErrorCode::storage, "no socket at " + path_, std::strerror(errno));
}

SessionListener::~SessionListener() {
  if (descriptor_ >= 0) ::close(descriptor_);
  std::error_code error;
  std::filesystem::remove_all(folder_, error);
}

std::optional<SessionSocket> SessionListener::accept(int wait_ms) {
  if (!comes(descriptor_, wait_ms)) return std::nullopt;
  const int accepted = ::accept4(descriptor_, nullptr, nullptr, SOCK_CLOEXEC);
  if (accepted < 0) return std::nullopt;
  return SessionSocket(accepted);
}

}  // namespace comera
