// Conversions between all element types against base/dtype.h, on every case that rounding distinguishes.
#include <cmath>
#include <cstring>
#include <random>

#include "backends/cuda/gpu_tests/gpu.h"
#include "tilewright/base/dtype.h"

namespace tilewright::cuda {
namespace {

using Bytes = std::vector<unsigned char>;

template <class T>
void append(Bytes& out, T value) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(&value);
  out.insert(out.end(), bytes, bytes + sizeof(T));
}

// Sign, exponent and 11 mantissa bits in full; below them zero, a hair, just under, at and over half, and all
// ones.
std::vector<float> rounding_floats() {
  std::vector<float> out;
  for (std::uint32_t top = 0; top < 1u << 20; ++top) {
    for (std::uint32_t low : {0x0u, 0x1u, 0x7ffu, 0x800u, 0x801u, 0xfffu}) {
      const std::uint32_t bits = top << 12 | low;
      float value;
      std::memcpy(&value, &bits, 4);
      out.push_back(value);
    }
  }
  return out;
}

Bytes every_pattern(int bits) {
  Bytes out;
  for (std::uint32_t i = 0; i < 1u << bits; ++i) {
    if (bits == 8) append(out, static_cast<std::uint8_t>(i));
    if (bits == 16) append(out, static_cast<std::uint16_t>(i));
  }
  return out;
}

Bytes inputs_of(DType dtype) {
  std::mt19937_64 random(99);
  Bytes out;
  switch (dtype) {
    case DType::f32:
      for (float x : rounding_floats()) append(out, x);
      break;
    case DType::f64:
      // Near ties of the narrow types, off by less than f32 can hold; and random bits.
      for (std::uint32_t top = 0; top < 1u << 20; top += 5) {
        const std::uint32_t bits = top << 12 | ((top / 5) % 2 == 0 ? 0x800u : 0u);
        float value;
        std::memcpy(&value, &bits, 4);
        for (double nudge : {0., 0x1p-40, -0x1p-40}) append(out, value * (1. + nudge));
      }
      for (int i = 0; i < 100000; ++i) append(out, random());
      break;
    case DType::i64:
    case DType::i32:
      for (int i = 0; i < 300000; ++i) {
        const auto value = static_cast<std::int64_t>(random()) >> (random() % 64);
        if (dtype == DType::i64) append(out, value);
        if (dtype == DType::i32) append(out, static_cast<std::int32_t>(value));
      }
      break;
    case DType::boolean:
      out = {0, 1, 1, 0};
      break;
    default:
      out = every_pattern(size_bytes(dtype) == 2 ? 16 : 8);
  }
  return out;
}

bool is_nan_at(const unsigned char* at, DType dtype) {
  return is_float(dtype) && std::isnan(load_f64(at, dtype));
}

// Equal bits; any NaN for a NaN.
std::size_t count_mismatches(const Bytes& in, const Bytes& got, DType from, DType to, std::string& first) {
  const std::size_t n = in.size() / size_bytes(from), width = size_bytes(to);
  Bytes want(n * width);
  convert(in.data(), from, want.data(), to, n);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const auto* g = &got[i * width];
    const auto* w = &want[i * width];
    if (std::memcmp(g, w, width) == 0 || (is_nan_at(g, to) && is_nan_at(w, to))) continue;
    if (wrong++ == 0) {
      first = std::to_string(load_f64(&in[i * size_bytes(from)], from)) + " gives " +
              std::to_string(load_f64(g, to)) + ", not " + std::to_string(load_f64(w, to));
    }
  }
  return wrong;
}

void check_pair(Gpu& gpu, const Module& module, DType from, DType to, const Bytes& in,
                const Buffer& in_buffer, bool vectors) {
  const std::size_t n = in.size() / size_bytes(from);
  const std::string name = std::string(tilewright::name(from)) + "_to_" + std::string(tilewright::name(to)) +
                           (vectors ? "_x16" : "");
  const Buffer out = gpu.poisoned<unsigned char>(n * size_bytes(to));
  Arguments arguments;
  arguments.add(in_buffer.address()).add(out.address()).add(static_cast<int>(n));
  const std::size_t threads = vectors ? n / 16 : n;
  gpu.launch(must(module.function(name)),
             {.grid = {static_cast<unsigned>((threads + 255) / 256), 1, 1}, .block = {256, 1, 1}}, arguments);
  std::string first;
  const auto got = gpu.download<unsigned char>(out, n * size_bytes(to));
  EXPECT_EQ(count_mismatches(in, got, from, to, first), 0u) << name << " of " << n << ": " << first;
}

TEST(GpuConvert, EveryPairOfTypesRoundsAsBaseDoes) {
  auto& gpu = Gpu::open();
  const Module module = gpu.compile(embedded::gpu_test_convert);
  for (DType from : kAllDTypes) {
    const Bytes in = inputs_of(from);
    const Buffer buffer = gpu.upload(in);
    for (DType to : kAllDTypes) check_pair(gpu, module, from, to, in, buffer, false);
  }
}

TEST(GpuConvert, VectorsRoundAsSingleValuesDo) {
  auto& gpu = Gpu::open();
  const Module module = gpu.compile(embedded::gpu_test_convert);
  const DType narrow[] = {DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2};
  const Bytes floats = inputs_of(DType::f32);
  const Buffer buffer = gpu.upload(floats);
  for (DType dtype : narrow) {
    check_pair(gpu, module, DType::f32, dtype, floats, buffer, true);
    const Bytes all = inputs_of(dtype);
    check_pair(gpu, module, dtype, DType::f32, all, gpu.upload(all), true);
  }
}

}  // namespace
}  // namespace tilewright::cuda
