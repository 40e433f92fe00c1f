// NumPy's files of several arrays, .npz: ZIP archives of .npy files.
#pragma once

#include <tilewright/tensor/named_tensor.h>

#pragma GCC visibility push(default)
namespace tilewright {

// Every array, in the order of the archive, by its name without ".npy": stored or deflated, of more than 4 GB
// as well. Throws Error naming the file and the tensor: what load_npy() throws; an archive that is damaged
// (checksums are compared), encrypted, or packed otherwise, with entries whose packed bytes together are more
// than the file's, that have one name, or that are no .npy.
NamedTensors load_npz(Context& context, const std::string& path, const Location& where = Location::current());

struct NpzOptions {
  bool compress = false;  // deflated, as np.savez_compressed(); else stored
};

// What save_npy() says of the type and of the way to the disk goes for this. Throws Error for a name that is
// there twice, is empty, is longer than 65,000 bytes or is no UTF-8 without control characters.
void save_npz(const std::string& path, const NamedTensors& tensors, const NpzOptions& options = {},
              const Location& where = Location::current());

}  // namespace tilewright
#pragma GCC visibility pop
