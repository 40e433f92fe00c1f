// The library that a Context opens as its backend here, for CPU and GPU alike: the program around it makes
// the backend.
#include "replay/recording_backend.h"

#include <tilewright/version.h>

TW_BACKEND_ENTRY const char* tilewright_backend_version() { return TILEWRIGHT_VERSION; }

TW_BACKEND_ENTRY tilewright::Result<std::unique_ptr<tilewright::backends::Backend>> tilewright_open_backend(
    const tilewright::backends::BackendOptions&) {
  return tw_open_recording_backend();
}
