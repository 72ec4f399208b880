#include "core/records/events.h"

#include "core/base/json.h"

namespace comera {
namespace {

struct Writer {
  Json out = Json::object();
  template <class T>
  void operator()(const char* key, const T& value) {
    out[key] = value;
  }
  template <class T>
  void operator()(const char* key, const std::optional<T>& value) {
    if (value) out[key] = *value;
  }
};

struct Reader {
  const Json& in;
  template <class T>
  void operator()(const char* key, T& value) const {
    if (const auto found = in.find(key); found != in.end()) try {
        value = found->get<T>();
      } catch (const nlohmann::json::exception&) {
      }
  }
  template <class T>
  void operator()(const char* key, std::optional<T>& value) const {
    if (const auto found = in.find(key); found != in.end() && !found->is_null()) try {
        value = found->get<T>();
      } catch (const nlohmann::json::exception&) {
      }
  }
};

}  // namespace

template <class Event>
Json json_of(const Event& event) {
  Writer writer;
  Event::fields(event, writer);
  return std::move(writer.out);
}

template <class Event>
Event read_event(const Json& body) {
  Event event;
  Reader reader{body};
  if (body.is_object()) Event::fields(event, reader);
  return event;
}

template <class Event>
Event read_event(const std::string& body) {
  return read_event<Event>(try_parse_json(body));
}

#define E(Event)                          \
  template Json json_of(const Event&);    \
  template Event read_event(const Json&); \
  template Event read_event(const std::string&);
COMERA_EVENTS(E)
#undef E

}  // namespace comera
