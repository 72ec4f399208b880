// Links between the devices of processes that train together.
#pragma once
#include "core/comm/communicator.h"
#include "core/ops/device.h"
#include "core/ops/device_link.h"

namespace comera {

// Links the devices of all processes where all can be linked, and leaves them as they are otherwise: on every process alike. The first
// messages are sent here, so that the memory which a library takes for them is taken before that of a run is looked at. Throws
// Error(device) where no process has begun to wait for others; a later error ends all of them (Communicator::abort).
void link_devices(Device& device, Communicator& others);

// Null: messages go through the hosts. Of a plan (Communicator::plans): one through which nothing can be sent, if the device could be
// linked.
DeviceLink* link_of(Device& device, const Communicator& others);
// "NCCL 2.28.9", or "" where there is no link.
std::string link_name(Device& device, const Communicator& others);

}  // namespace comera
