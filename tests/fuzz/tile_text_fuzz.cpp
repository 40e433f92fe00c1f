// Fuzzes the parser of tile text: no input crashes it, and what it accepts is printed and read back equal.
//   cmake -S . -B build-fuzz -G Ninja -DCMAKE_CXX_COMPILER=clang++-19 -DTILEWRIGHT_FUZZ=ON
//   -DTILEWRIGHT_CPU=OFF ninja -C build-fuzz fuzz_tile_text && build-fuzz/fuzz_tile_text -max_total_time=60
//   tests/fuzz/corpus/tile_text
#include <tilewright/tile/text.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tilewright;
  const Result<tile::Kernel> kernel = tile::parse({reinterpret_cast<const char*>(data), size});
  if (!kernel.ok()) return 0;
  const Result<tile::Kernel> back = tile::parse(tile::print(*kernel));
  if (!back.ok() || !(*back == *kernel)) std::abort();
  return 0;
}
