// Errors of files: which function the user called, on which file, what is wrong, and where.
#pragma once

#include "base/plain_message.h"

#include <tilewright/tensor/out_of_memory.h>
#include <tilewright/tensor/tensor.h>

#include <fmt/format.h>

#include <string>

namespace tilewright::formats {

// What `body` gives, which works on a file for the function `op` of the user's.
template <class Body>
decltype(auto) in_file(const char* op, const std::string& path, const Location& where, Body body) {
  try {
    return body();
  } catch (const OutOfMemory& e) {
    throw OutOfMemory(fmt::format("{}: {}: {}", op, path, without_place(e)), where);
  } catch (const Error& e) {
    throw Error(fmt::format("{}: {}: {}", op, path, without_place(e)), where);
  }
}

// What `body` gives; an Error of it names the tensor, too. For use in in_file().
template <class Body>
decltype(auto) of_tensor(const std::string& name, Body body) {
  const auto text = [&](const Error& e) { return fmt::format("tensor \"{}\": {}", name, without_place(e)); };
  try {
    return body();
  } catch (const OutOfMemory& e) {
    throw OutOfMemory(text(e));
  } catch (const Error& e) {
    throw Error(text(e));
  }
}

}  // namespace tilewright::formats
