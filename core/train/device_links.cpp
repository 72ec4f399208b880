#include "core/train/device_links.h"

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

namespace comera {
namespace {

class PlannedLink final : public DeviceLink {
  void do_start(std::span<const Piece>, std::span<const Piece>) override { CHECK(false, "a plan sends nothing"); }
  void finish() override { CHECK(false, "a plan sends nothing"); }
};

// Each process sends its number to all others.
void greet(Device& device, DeviceLink& link, const Communicator& others) {
  const int me = others.process(), processes = others.processes();
  constexpr int64_t kBytes = sizeof(int32_t);
  const auto release = [&device](int32_t* data) { device.release(data); };
  const std::unique_ptr<int32_t, decltype(release)> memory(static_cast<int32_t*>(device.allocate(processes * kBytes)), release);
  std::vector<int32_t> numbers(static_cast<size_t>(processes), -1);
  numbers[static_cast<size_t>(me)] = me;
  device.upload(memory.get(), numbers.data(), processes * kBytes);
  std::vector<DeviceLink::Piece> sent, received;
  for (int p = 0; p < processes; ++p) {
    if (p == me) continue;
    sent.push_back({p, memory.get() + me, kBytes});
    received.push_back({p, memory.get() + p, kBytes});
  }
  link.start(sent, received);
  link.finish();
  device.download(numbers.data(), memory.get(), processes * kBytes);
  for (int p = 0; p < processes; ++p)
    if (const int32_t said = numbers[static_cast<size_t>(p)]; said != p)
      throw Error(ErrorCode::device, "messages between devices do not arrive as they were sent",
                  "process " + std::to_string(p) + " gave " + std::to_string(said) + " as its number", "report it");
}

}  // namespace

void link_devices(Device& device, Communicator& others) {
  auto* const own = dynamic_cast<LinkableDevice*>(&device);
  const LinkEnd end = own ? own->link_end() : LinkEnd();
  const std::string linked = own && own->link() ? "linked" : "";
  const std::vector<std::string> ends = others.exchange(linked + "\n" + end.library + "\n" + end.device);
  const auto library_of = [](const std::string& text) { return text.substr(0, text.rfind('\n')); };
  if (end.library.empty() || !linked.empty()) return;
  if (!std::all_of(ends.begin(), ends.end(), [&](const std::string& text) { return library_of(text) == library_of(ends[0]); })) return;
  if (std::set<std::string>(ends.begin(), ends.end()).size() < ends.size()) return;  // two have one device
  const std::string made = others.exchange(others.process() == 0 ? own->new_link() : "")[0];
  try {
    own->join_link(made, others.process(), others.processes());
    greet(device, *own->link(), others);
  } catch (const Error& error) {  // others may wait inside of the library
    others.abort(error.what());
  }
}

DeviceLink* link_of(Device& device, const Communicator& others) {
  auto* const own = dynamic_cast<LinkableDevice*>(&device);
  if (!own) return nullptr;
  if (!others.plans()) return own->link();
  static PlannedLink planned;
  return own->link_end().library.empty() ? nullptr : &planned;
}

std::string link_name(Device& device, const Communicator& others) {
  return link_of(device, others) ? dynamic_cast<LinkableDevice&>(device).link_end().library : "";
}

}  // namespace comera
