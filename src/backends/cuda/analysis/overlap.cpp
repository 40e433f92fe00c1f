// Whether a printed kernel waits for the one before it.
#include "backends/cuda/analysis/overlap.h"

namespace tilewright::cuda {

bool waits_for_previous(const std::string& text) {
  for (std::size_t at = 0; (at = text.find(kWaitForPrevious, at)) != std::string::npos; ++at) {
    const std::size_t before = at == 0 ? std::string::npos : text.find_last_not_of(' ', at - 1);
    if (before == std::string::npos || text[before] == '\n') return true;
  }
  return false;
}

}  // namespace tilewright::cuda
