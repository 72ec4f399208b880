// What the double of NCCL (nccl.cpp) saw, and what it shall do wrong. A test finds it in the program by its name, since a program with
// NVIDIA's library has none.
#pragma once
#include <dlfcn.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace comera::ptx {

struct NcclDouble {
  bool here = false;  // else there is no NCCL: processes that are no threads would wait for each other in vain
  int version = 2'28'09;
  int fails_in = -1, fails_at = -1;  // the process and the number of its group, from 0, whose end is an error

  struct Group {  // bytes to other processes and from them, as they were called
    std::vector<std::pair<int, int64_t>> sent, received;
    bool captured = false;
  };
  std::mutex mutex;                               // of what follows
  std::map<int, std::vector<Group>> groups;       // by process
  std::map<int, int64_t> sent;                    // bytes that streams really gave to others, also by replayed graphs
  std::map<int, std::vector<std::string>> ended;  // "destroyed", "aborted"
  std::vector<std::string> wrong;                 // calls that NVIDIA's documentation forbids
  void clear() {
    here = true;
    version = 2'28'09;
    fails_in = fails_at = -1;
    groups.clear();
    sent.clear();
    ended.clear();
    wrong.clear();
  }
};

}  // namespace comera::ptx

extern "C" comera::ptx::NcclDouble* comera_nccl_double();

namespace comera::ptx {

// Null: this program has NVIDIA's library.
inline NcclDouble* nccl_double() {
  auto* const get = reinterpret_cast<NcclDouble* (*)()>(dlsym(RTLD_DEFAULT, "comera_nccl_double"));
  return get ? get() : nullptr;
}

}  // namespace comera::ptx
