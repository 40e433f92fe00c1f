// The version that the library was built as.
#include <tilewright/version.h>

namespace tilewright {

const char* library_version() { return kVersion; }

}  // namespace tilewright
