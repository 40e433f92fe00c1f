// The names users give devices: "cpu", "cuda:N" or "reference"; and the backends there are, which they name.
#pragma once

#include <tilewright/base/error.h>

#include <span>
#include <string>
#include <string_view>

namespace tilewright::runtime {

// What is known of a backend before it is opened.
struct BackendKind {
  std::string_view name;  // libtw_NAME.so is the backend
  bool numbered = false;  // a machine may have several: NAME:0, NAME:1 …
  bool is_host = true;    // its memory is the host's, and it has no streams
};
// Every backend there is. To add one: its row in device_name.cpp.
std::span<const BackendKind> backend_kinds();

struct DeviceName {
  std::string kind;  // "cpu", "cuda", "reference"
  int ordinal = 0;   // of a CUDA device; the others are one of their kind and take no number

  std::string full() const;  // "cpu", "cuda:0"
  bool is_host() const;
};

// "cuda" is the first of its kind. What is no device's name gives a Failure that lists the names.
Result<DeviceName> parse_device_name(const std::string& name);

}  // namespace tilewright::runtime
