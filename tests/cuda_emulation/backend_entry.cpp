// The emulated GPU as a backend that programs open by name (tests/support/open_device.h).
#include "cuda_emulation/emulated_cuda.h"

#include <tilewright/version.h>

#include <dlfcn.h>

TW_BACKEND_ENTRY const char* tilewright_backend_version() { return TILEWRIGHT_VERSION; }

TW_BACKEND_ENTRY tilewright::Result<std::unique_ptr<tilewright::backends::Backend>> tilewright_open_backend(
    const tilewright::backends::BackendOptions& options) {
  // Emulated code looks for emu_… among the process's symbols, to which a backend adds none by itself.
  const auto open = &tilewright::emulation::open_emulated_cuda;
  Dl_info emulation{};
  if (dladdr(reinterpret_cast<const void*>(open), &emulation) != 0)
    dlopen(emulation.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
  return open(options.compile_only);
}
