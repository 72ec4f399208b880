#include "core/session/wire.h"

#include "core/base/error.h"
#include "core/session/wire_fields.h"

namespace comera {
namespace {

// By its place among the alternatives of Command.
template <size_t I = 0>
Command command_of(size_t kind, const Json& json) {
  if constexpr (I < std::variant_size_v<Command>) {
    if (kind == I) return json.get<std::variant_alternative_t<I, Command>>();
    return command_of<I + 1>(kind, json);
  } else {
    throw Error(ErrorCode::storage, "a message has an unknown command");
  }
}

template <class Read>
auto read(const char* what, const Read& body) try {
  return body();
} catch (const nlohmann::json::exception& error) {
  throw Error(ErrorCode::storage, std::string("a message is not ") + what, error.what());
}

}  // namespace

Json wire_start(const SessionStart& start) {
  Json json = start;
  json["config"] = config_to_json(start.config);
  return json;
}

Json wire_command(const Command& command) {
  return std::visit([&](const auto& one) { return Json{{"kind", command.index()}, {"fields", one}}; }, command);
}

Json wire_snapshot(const Snapshot& snapshot) {
  Json json = snapshot;
  if (snapshot.step_memory) json["step_memory"] = *snapshot.step_memory;
  return json;
}

Json wire_records(const Records& records) { return records; }

SessionStart start_of_wire(const Json& json) {
  return read("the start of a session", [&] {
    auto start = json.get<SessionStart>();
    start.config = config_from_json(json.at("config"), "a message");
    return start;
  });
}

Command command_of_wire(const Json& json) {
  return read("a command", [&] { return command_of(json.at("kind").get<size_t>(), json.at("fields")); });
}

Snapshot snapshot_of_wire(const Json& json) {
  return read("a snapshot", [&] {
    auto snapshot = json.get<Snapshot>();
    if (json.contains("step_memory")) snapshot.step_memory = std::make_shared<const StepMemory>(json.at("step_memory").get<StepMemory>());
    return snapshot;
  });
}

Records records_of_wire(const Json& json) {
  return read("records", [&] { return json.get<Records>(); });
}

}  // namespace comera
