// AnyFunction: what is the same for every signature.
#include <tilewright/base/any_function.h>
#include <tilewright/base/error.h>

namespace tilewright::detail {

void throw_nothing_to_call() { throw Error("the function that is called is empty"); }

}  // namespace tilewright::detail
