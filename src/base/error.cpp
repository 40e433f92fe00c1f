// Messages of Error and CHECK.
#include <tilewright/base/error.h>

#include <fmt/format.h>

#include <string_view>

namespace tilewright {

namespace {
std::string_view file_name(std::string_view path) {
  const auto slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}
}  // namespace

std::string at(const std::source_location& location) {
  return fmt::format(" (at {}:{})", file_name(location.file_name()), location.line());
}

Error::Error(const std::string& message, const std::source_location& location)
    : std::runtime_error(message + at(location)) {}

std::string_view name(Failure::Kind kind) {
  switch (kind) {
    case Failure::Kind::unsupported:
      return "unsupported";
    case Failure::Kind::compile:
      return "compile";
    case Failure::Kind::out_of_memory:
      return "out of memory";
    case Failure::Kind::io:
      return "i/o";
    case Failure::Kind::device:
      return "device";
    case Failure::Kind::not_found:
      return "not found";
    case Failure::Kind::invalid:
      return "invalid";
  }
  return "?";
}

void check_failed(const char* condition, const std::string& why, const std::source_location& where) {
  throw std::logic_error(fmt::format("internal error: {}: {} is false{}", why, condition, at(where)));
}

}  // namespace tilewright
