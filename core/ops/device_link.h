// Messages between the memories of the devices of several processes, in the order of the work that each device was given. The host neither
// reads them nor waits for them.
#pragma once
#include <cstdint>
#include <span>
#include <string>

namespace comera {

class DeviceLink {
 public:
  virtual ~DeviceLink() = default;

  struct Piece {  // for another process, or from it
    int process;
    void* data;  // of the own device
    int64_t bytes;
  };
  // Sends and receives all pieces at the same time, behind all work issued before, while the device goes on with work issued afterwards:
  // until finish(), this may not write what is sent, nor touch what is received. May return earlier, and may be captured together with its
  // finish(). All processes call it in the same order, all of them inside of a capture or none. Pieces from one process to another arrive
  // in their order. Throws Error(device).
  void start(std::span<const Piece> sent, std::span<const Piece> received) {
    for (const Piece& piece : sent) sent_bytes_ += piece.bytes;
    do_start(sent, received);
  }
  // Work issued from now on comes after all pieces have arrived. One finish() for each start(), before the next one.
  virtual void finish() = 0;
  // What the calls of start() gave to others. A captured call counts once, however often it is replayed.
  int64_t sent_bytes() const { return sent_bytes_; }

 protected:
  virtual void do_start(std::span<const Piece> sent, std::span<const Piece> received) = 0;

 private:
  int64_t sent_bytes_ = 0;
};

// What processes tell each other of their devices, to know whether they can be linked: all need the same library, and a device of their
// own.
struct LinkEnd {
  std::string library;  // with its version: "NCCL 2.28.9"; "": this device cannot be linked
  std::string device;   // its name among the devices of all machines
};

// A device that can be linked, if what that needs is at hand (core/train/device_links.h).
class LinkableDevice {
 public:
  virtual ~LinkableDevice() = default;
  virtual LinkEnd link_end() const = 0;
  // What every process gives to join_link(), in any bytes; made by one of them. Throws Error(device).
  virtual std::string new_link() = 0;
  // Waits until all have called it. Throws Error(device).
  virtual void join_link(const std::string& made, int process, int processes) = 0;
  virtual DeviceLink* link() = 0;  // null before join_link()
};

struct NcclStatus {
  bool here = false;    // the library can be used
  std::string version;  // "2.28.9"
  std::string reason;   // for people: why it cannot be used
};
NcclStatus nccl_status();  // gpu/

}  // namespace comera
