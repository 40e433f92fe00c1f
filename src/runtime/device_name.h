// The names users give devices: "cpu", "cuda:N" or "reference".
#pragma once

#include <tilewright/base/error.h>

#include <string>

namespace tilewright::runtime {

struct DeviceName {
  std::string kind;  // "cpu", "cuda", "reference"
  int ordinal = 0;   // of a CUDA device; the others are one of their kind and take no number

  std::string full() const;  // "cpu", "cuda:0"
};

// "cuda" is the first of its kind. What is no device's name gives a Failure that lists the names.
Result<DeviceName> parse_device_name(const std::string& name);

}  // namespace tilewright::runtime
