// The version of this library: what a program may ask when it is compiled. CMake reads it here, too.
#pragma once

#define TILEWRIGHT_VERSION_MAJOR 0
#define TILEWRIGHT_VERSION_MINOR 1
#define TILEWRIGHT_VERSION_PATCH 0
#define TILEWRIGHT_VERSION "0.1.0"

#pragma GCC visibility push(default)
namespace tilewright {

// The version of the headers that a program was compiled with.
inline constexpr int kVersionMajor = TILEWRIGHT_VERSION_MAJOR, kVersionMinor = TILEWRIGHT_VERSION_MINOR,
                     kVersionPatch = TILEWRIGHT_VERSION_PATCH;
inline constexpr const char* kVersion = TILEWRIGHT_VERSION;

// The version of the library that it runs with: another one, where libtilewright.so was replaced.
const char* library_version();

}  // namespace tilewright
#pragma GCC visibility pop
