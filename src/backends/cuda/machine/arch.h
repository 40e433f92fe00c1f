// Arch: the architecture that kernels are printed and compiled for, and what its instructions can do.
// Source: CUDA C++ Programming Guide, "Compute Capabilities"; PTX ISA 9.0.
#pragma once

#include <tilewright/base/error.h>
#include <tilewright/base/shape.h>

#include <string>
#include <string_view>

namespace tilewright::cuda {

inline constexpr Index kWidestAccess = 16;  // bytes of a thread's load or store: PTX ISA 9.0, ld.v4.b32

struct Arch {
  int major = 9, minor = 0;
  bool specific = true;  // "sm_90a": instructions that only this one has; its code runs on no other

  // Reads "sm_80", "sm_90a", "sm_120"; fails with `invalid` for other text and with `unsupported` before
  // sm_80.
  static Result<Arch> parse(std::string_view text);
  // A device's, with its own instructions where kernels use them.
  static Arch of_device(int major, int minor) { return {major, minor, major == 9 && minor == 0}; }
  std::string text() const;
  int macro() const { return 100 * major + 10 * minor; }  // the value of __CUDA_ARCH__

  bool has_clusters() const { return major >= 9; }
  bool has_vector_adds() const { return major >= 9; }                 // red of 8 or 16 bytes
  bool overlaps_launches() const { return major >= 9; }               // programmatic dependent launch
  bool has_warpgroup_dots() const { return major == 9 && specific; }  // wgmma
  friend bool operator==(const Arch&, const Arch&) = default;
};

}  // namespace tilewright::cuda
