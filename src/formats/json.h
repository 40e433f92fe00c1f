// JSON of files, read strictly: a key twice is an Error, as is what is no UTF-8.
#pragma once

#include <nlohmann/json.hpp>

#include <string_view>

namespace tilewright::formats {

// `what` is called so in errors: "its header".
nlohmann::json parse_json(std::string_view text, std::string_view what);
// A string as it stands in JSON; throws Error where it is not UTF-8.
std::string json_string(const std::string& text);

}  // namespace tilewright::formats
