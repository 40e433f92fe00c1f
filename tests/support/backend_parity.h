// The parity check on a Backend: print, compile, load, copy in, launch, copy back.
#pragma once

#include "backends/backend.h"
#include "support/parity.h"

namespace tilewright::test {

// `source` receives the printed text, for messages. A schedule that the backend refuses comes back as the
// failure of kind `unsupported` that its print() gave. Of several launches all must leave the same bytes.
RunOnBackend on_backend(backends::Backend& backend, const tile::Schedule& schedule, std::string& source,
                        int launches = 1);

}  // namespace tilewright::test
