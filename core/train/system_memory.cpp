#include "core/train/system_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

#include "core/ops/device.h"

namespace comera {

MemoryLevel machine_memory() {
  std::ifstream meminfo("/proc/meminfo");
  std::string key, unit;
  int64_t kib = 0, total = 0, available = -1;
  while (meminfo >> key >> kib && std::getline(meminfo, unit)) {
    if (key == "MemTotal:") total = kib * 1024;
    if (key == "MemAvailable:") available = kib * 1024;
    if (total > 0 && available >= 0) break;
  }
  MemoryLevel level;
  if (total > 0 && available >= 0) level = {total - available, total};
  std::ifstream limit_file("/sys/fs/cgroup/memory.max"), used_file("/sys/fs/cgroup/memory.current");
  int64_t limit = 0, used = 0;  // a group without a limit says "max"
  if (limit_file >> limit && used_file >> used && (level.total == 0 || limit - used < level.available())) level = {used, limit};
  return level;
}

MemoryLevel memory_of(const Device& device) {
  const int64_t free = device.free_bytes(), total = device.total_bytes();
  return free >= 0 && total >= free ? MemoryLevel{total - free, total} : machine_memory();
}

int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  int64_t pages = 0, resident = 0;
  return file >> pages >> resident ? resident * sysconf(_SC_PAGESIZE) : 0;
}

int64_t available_memory() {
  const MemoryLevel level = machine_memory();
  return level.total > 0 ? level.available() : std::numeric_limits<int64_t>::max();
}

int64_t available_on(const Device& device) {
  const int64_t own = device.free_bytes();
  return own >= 0 ? own : available_memory();
}

}  // namespace comera
