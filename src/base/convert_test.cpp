// Bulk conversion agrees with single values bit by bit, for every pair of types, every code and odd lengths.
#include <tilewright/base/dtype.h>

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <random>
#include <vector>

namespace tilewright {
namespace {

using Bytes = std::vector<unsigned char>;

Bytes one_by_one(const Bytes& from, DType from_dtype, DType to_dtype, std::size_t count) {
  Bytes to(count * size_bytes(to_dtype));
  for (std::size_t i = 0; i < count; ++i) {
    const void* source = from.data() + i * size_bytes(from_dtype);
    void* target = to.data() + i * size_bytes(to_dtype);
    if (is_float(from_dtype)) {
      store_f64(target, to_dtype, load_f64(source, from_dtype));
    } else {
      store_i64(target, to_dtype, load_i64(source, from_dtype));
    }
  }
  return to;
}

Bytes in_bulk(const Bytes& from, DType from_dtype, DType to_dtype, std::size_t count) {
  Bytes to(count * size_bytes(to_dtype));
  convert(from.data(), from_dtype, to.data(), to_dtype, count);
  return to;
}

// Random bit patterns: infinities, NaN and subnormals included; bools are 0 or 1.
Bytes random_values(DType dtype, std::size_t count) {
  std::mt19937_64 random(7);
  Bytes bytes(count * size_bytes(dtype));
  for (auto& b : bytes) b = static_cast<unsigned char>(is_bool(dtype) ? random() % 2 : random());
  return bytes;
}

TEST(Convert, EveryPairAgreesWithSingleValues) {
  const std::size_t count = 4099;
  for (DType from : kAllDTypes) {
    const Bytes values = random_values(from, count);
    for (DType to : kAllDTypes) {
      if (from == to) {
        EXPECT_EQ(in_bulk(values, from, to, count), values) << name(from);
      } else {
        EXPECT_EQ(in_bulk(values, from, to, count), one_by_one(values, from, to, count))
            << name(from) << " to " << name(to);
      }
    }
  }
}

TEST(Convert, EverySixteenBitCodeWidensExactly) {
  Bytes codes(2 * 65536);
  for (std::size_t i = 0; i < 65536; ++i) {
    const auto code = static_cast<std::uint16_t>(i);
    std::memcpy(codes.data() + 2 * i, &code, 2);
  }
  for (DType from : {DType::f16, DType::bf16}) {
    EXPECT_EQ(in_bulk(codes, from, DType::f32, 65536), one_by_one(codes, from, DType::f32, 65536))
        << name(from);
  }
}

TEST(Convert, NarrowingRoundsTiesToEvenAroundEverySixteenBitValue) {
  for (DType to : {DType::f16, DType::bf16}) {
    std::vector<float> values;
    for (std::uint32_t code = 0; code < 0x10000; ++code) {
      const auto value = static_cast<float>(load_f64(&code, to));
      const auto bits = std::bit_cast<std::uint32_t>(value);
      const std::uint32_t half = to == DType::bf16 ? 0x8000 : 0x1000;
      for (std::uint32_t offset : {0u, half - 1, half, half + 1})
        values.push_back(std::bit_cast<float>(bits + offset));
    }
    Bytes bytes(values.size() * 4);
    std::memcpy(bytes.data(), values.data(), bytes.size());
    EXPECT_EQ(in_bulk(bytes, DType::f32, to, values.size()), one_by_one(bytes, DType::f32, to, values.size()))
        << name(to);
  }
}

TEST(Convert, WritesExactlyTheElementsAsked) {
  for (std::size_t count : {0, 1, 7, 8, 9, 31}) {
    for (auto [from, to] :
         {std::pair{DType::f32, DType::f16}, {DType::f16, DType::f32}, {DType::f32, DType::bf16}}) {
      const Bytes values = random_values(from, count + 1);
      Bytes out((count + 1) * size_bytes(to), 0xAB);
      convert(values.data(), from, out.data(), to, count);
      for (std::size_t i = count * size_bytes(to); i < out.size(); ++i) EXPECT_EQ(out[i], 0xAB);
    }
  }
}

TEST(Convert, TakesUnalignedAddresses) {
  Bytes values(4 * 33 + 1), out(2 * 33 + 1);
  const Bytes random = random_values(DType::f32, 33);
  std::memcpy(values.data() + 1, random.data(), random.size());
  convert(values.data() + 1, DType::f32, out.data() + 1, DType::f16, 33);
  EXPECT_EQ(Bytes(out.begin() + 1, out.end()), one_by_one(random, DType::f32, DType::f16, 33));
}

}  // namespace
}  // namespace tilewright
