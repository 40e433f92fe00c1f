#include "formats/files.h"

#include <string>

namespace tilewright::test {

std::string fixture(const std::string& name) { return std::string(TW_TEST_FOLDER "/fixtures/") + name; }

}  // namespace tilewright::test
