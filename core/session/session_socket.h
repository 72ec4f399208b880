// Messages between a session and a program that watches it, over a Unix socket of this machine: JSON as CBOR behind its length.
#pragma once
#include <optional>
#include <string>

#include "core/base/json.h"

namespace comera {

class SessionSocket {
 public:
  explicit SessionSocket(int descriptor) : descriptor_(descriptor) {}
  SessionSocket(SessionSocket&& other) noexcept;
  SessionSocket& operator=(SessionSocket&&) = delete;
  ~SessionSocket();
  // To a SessionListener. Throws Error(storage).
  static SessionSocket connect(const std::string& path);

  // Waits until the message is taken. Throws Error(storage) where the other end is gone.
  void send(const Json& message);
  // The next message; null: none came within `wait_ms`. Throws Error(storage) where the other end is gone.
  std::optional<Json> receive(int wait_ms);

 private:
  int descriptor_;
  std::string received_;
};

// Where a session connects to: a socket in a new folder that no other user can read.
class SessionListener {
 public:
  SessionListener();  // throws Error(storage)
  ~SessionListener();
  SessionListener(const SessionListener&) = delete;
  const std::string& path() const { return path_; }
  std::optional<SessionSocket> accept(int wait_ms);

 private:
  std::string folder_, path_;
  int descriptor_ = -1;
};

}  // namespace comera
