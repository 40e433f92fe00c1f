// The reference interpreter as a device: obvious and slow, the mode without a JIT.
#pragma once

#include "backends/backend.h"

namespace tilewright::reference {

std::unique_ptr<backends::Backend> open_reference_backend();

}  // namespace tilewright::reference
