// What the system says of memory: how much there is, how much of it is taken, and by this process.
#pragma once
#include <cstdint>

namespace comera {

class Device;

// Bytes, with what every process takes. Both 0 where the system does not tell.
struct MemoryLevel {
  int64_t used = 0, total = 0;
  int64_t available() const { return total - used; }
};
// Of this machine; where the limit of the control group leaves less, that limit and what is taken of it.
MemoryLevel machine_memory();
// Of what the run takes its memory from: the device's own, else the machine's. Throws Error(device).
MemoryLevel memory_of(const Device& device);
// Bytes of this process that are in memory; 0 where the system does not tell.
int64_t resident_bytes();

// Bytes this machine can still give; as many as there are numbers where the system does not tell.
int64_t available_memory();
// The same of the device: of its own memory, where it has one.
int64_t available_on(const Device& device);

}  // namespace comera
