// Reading and writing ceiling files.
#include <tilewright/perf/ceiling_file.h>

#include "base/plain_message.h"
#include "base/read_file.h"
#include "base/safe_file.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace tilewright::perf {

namespace {

using Json = nlohmann::ordered_json;
using Kind = Failure::Kind;

Measurement measurement_from(const Json& entry) {
  return {entry.at("what").get<std::string>(), entry.at("value").get<double>(),
          entry.at("how").get<std::string>()};
}

}  // namespace

Hardware to_hardware(const Ceilings& ceilings) {
  return from_measured(ceilings.name, ceilings.title, ceilings.measurements);
}

std::string to_json(const Ceilings& ceilings) {
  Json out = {{"name", ceilings.name}, {"title", ceilings.title}, {"measurements", Json::array()}};
  for (const Measurement& m : ceilings.measurements) {
    out["measurements"].push_back({{"what", m.what}, {"value", m.value}, {"how", m.how}});
  }
  return out.dump(2) + "\n";
}

Result<Ceilings> parse_ceilings(std::string_view json, std::string_view origin) {
  std::size_t index = 0;
  bool in_entries = false;
  try {
    const Json in = Json::parse(json);
    Ceilings ceilings{in.at("name").get<std::string>(), in.at("title").get<std::string>(), {}};
    in_entries = true;
    for (const Json& entry : in.at("measurements")) {
      ceilings.measurements.push_back(measurement_from(entry));
      ++index;
    }
    to_hardware(ceilings);  // an unusable file is refused here, not at its first use
    return ceilings;
  } catch (const nlohmann::json::exception& error) {
    const std::string where = in_entries ? fmt::format(", measurement {}", index) : "";
    return failure(Kind::invalid,
                   fmt::format("{}: not a ceiling file{}: {}", origin, where, plain_message(error)));
  } catch (const Error& error) {
    return failure(Kind::invalid, fmt::format("{}: {}", origin, error.what()));
  }
}

Result<Ceilings> read_ceilings(const std::string& path) {
  const auto text = read_file(path);
  if (!text) return failure(Kind::io, text.error().message);
  return parse_ceilings(*text, path);
}

Status write_ceilings(const Ceilings& ceilings, const std::string& path) {
  return write_safely(path, to_json(ceilings), {.durable = false, .make_folders = true});
}

}  // namespace tilewright::perf
