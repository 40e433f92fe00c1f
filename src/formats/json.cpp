// nlohmann's parser, which would take the last of two values of a key; see json.h.
#include "formats/json.h"

#include "base/plain_message.h"

#include <tilewright/base/error.h>

#include <fmt/format.h>

#include <set>
#include <string>
#include <vector>

namespace tilewright::formats {

using nlohmann::json;

json parse_json(std::string_view text, std::string_view what) {
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const auto note = [&](int, json::parse_event_t event, json& value) {
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second)
      throw Error(fmt::format("{} has \"{}\" twice", what, value.get<std::string>()));
    return true;
  };
  try {
    return json::parse(text.begin(), text.end(), note);
  } catch (const json::exception& e) {
    throw Error(fmt::format("{} cannot be read: {}", what, plain_message(e)));
  }
}

std::string json_string(const std::string& text) {
  try {
    return json(text).dump();
  } catch (const json::exception&) {
    throw Error("a name, a key or a value is not UTF-8");
  }
}

}  // namespace tilewright::formats
