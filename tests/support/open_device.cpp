// The emulated GPU is a backend of the name "cuda" in a folder of its own.
#include "support/open_device.h"

#include <tilewright/base/error.h>

#include <filesystem>
#include <string_view>

namespace tilewright::test {

std::shared_ptr<runtime::Device> open_device(const std::string& name, const std::string& isa) {
  constexpr std::string_view kEmulated = "emulated:";
  const bool emulated = name.compare(0, kEmulated.size(), kEmulated) == 0;
  auto opened =
      emulated ? runtime::Device::open(
                     "cuda", {.compile_only = name.substr(kEmulated.size())},
                     (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "emulated").string())
               : runtime::Device::open(name, {.isa = isa});
  if (!opened) throw Error(opened.error().message);
  return std::move(*opened);
}

std::size_t kernels_more_on_this_cpu() {
  static const bool is_wide = runtime::Device::open("cpu", {.isa = "avx512"}).ok();
  return is_wide ? 0 : 2;  // the ids of queries and of keys
}

}  // namespace tilewright::test
