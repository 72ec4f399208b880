// Which boot of this machine, and whether a process of it still lives: what makes a stored "running" true or not.
#pragma once
#include <cerrno>
#include <signal.h>
#include <unistd.h>

#include <cstdint>

#include <fstream>
#include <string>

namespace comera {

inline std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

inline bool process_lives(int64_t pid) { return pid > 0 && (::kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM); }

}  // namespace comera
