// What Python calls through ctypes (exchange_test.py): tensors to and from DLPack and files. The functions
// give what the test asks for, or null or -1 with the reason in last_error().
#include <tilewright/formats/npy.h>
#include <tilewright/formats/npz.h>
#include <tilewright/formats/safetensors.h>
#include <tilewright/tensor/dlpack.h>
#include <tilewright/tensor/functions.h>

#include <numeric>
#include <string>

using namespace tilewright;

namespace {

Context& context() {
  static Context one({.device = "cpu", .cache_directory = ""});
  return one;
}
std::string error;

template <class Result, class Body>
Result tried(Result otherwise, Body body) {
  try {
    return body();
  } catch (const std::exception& e) {
    error = e.what();
    return otherwise;
  }
}

// 0, 1, 2 … modulo 5, in [2,3].
Tensor counted(const char* dtype) {
  std::vector<float> numbers(6);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i % 5);
  return context().from(numbers, {2, 3}, parse_dtype(dtype).value());
}

}  // namespace

#define TW_EXPORT extern "C" __attribute__((visibility("default")))

TW_EXPORT const char* last_error() { return error.c_str(); }

TW_EXPORT void* export_counted(const char* dtype, int versioned) {
  return tried<void*>(nullptr, [&]() -> void* {
    const Tensor x = counted(dtype);
    if (versioned) return to_dlpack(x);
    return to_dlpack_unversioned(x);
  });
}

// The sum of 2 x; x goes with it.
TW_EXPORT double import_doubled_sum(void* managed, int versioned) {
  return tried(-1.0, [&] {
    const Tensor x = versioned ? from_dlpack(context(), static_cast<dlpack::ManagedTensorVersioned*>(managed))
                               : from_dlpack(context(), static_cast<dlpack::ManagedTensor*>(managed));
    return sum(2.0 * cast(x, DType::f64)).item();
  });
}

// Tensors "a" and "b" of a folder's files x.npy, x.npz and x.safetensors: written anew as y.… .
TW_EXPORT int rewrite(const char* folder) {
  return tried(-1, [&] {
    const std::string in = std::string(folder) + "/x", out = std::string(folder) + "/y";
    save_npy(out + ".npy", load_npy(context(), in + ".npy"));
    save_npz(out + ".npz", load_npz(context(), in + ".npz"));
    save_npz(out + ".deflated.npz", load_npz(context(), in + ".npz"), {.compress = true});
    const Safetensors file(in + ".safetensors");
    save_safetensors(out + ".safetensors", load_safetensors(context(), in + ".safetensors"),
                     {.metadata = file.metadata()});
    return 0;
  });
}
