// DLPack out and in, both forms: what the struct says, whose memory it is, and when it goes.
#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

#include "support/errors.h"
#include "support/kernel_folder.h"
#include "tensor/storage.h"

namespace tilewright {
namespace {

using dlpack::ManagedTensor;
using dlpack::ManagedTensorVersioned;
using test::expect_says;
using Floats = std::vector<float>;

// A producer's struct and a count of calls of its deleter.
template <class Managed>
struct Producer {
  alignas(256) Floats data = {0, 1, 2, 3, 4, 5};
  std::vector<std::int64_t> shape = {2, 3}, strides = {3, 1};
  int deleted = 0;
  Managed managed{};

  Producer() {
    managed.manager = this;
    managed.deleter = [](Managed* self) { ++static_cast<Producer*>(self->manager)->deleted; };
    managed.tensor = {.data = data.data(),
                      .device = {dlpack::DeviceType::cpu, 0},
                      .rank = 2,
                      .dtype = {dlpack::TypeCode::float_, 32, 1},
                      .shape = shape.data(),
                      .strides = strides.data(),
                      .byte_offset = 0};
    if constexpr (std::is_same_v<Managed, ManagedTensorVersioned>) managed.version = dlpack::kVersion;
  }
};
using Versioned = Producer<ManagedTensorVersioned>;
using Unversioned = Producer<ManagedTensor>;

class Dlpack : public ::testing::Test {
 protected:
  Context ctx_{{.device = "cpu", .cache_directory = test::kernel_folder()}};
  std::string here_ = "(at dlpack_test.cpp:";

  void expect_refused(const std::function<void(Versioned&)>& spoil, const std::vector<std::string>& parts) {
    Versioned p;
    spoil(p);
    expect_says([&] { from_dlpack(ctx_, &p.managed); }, parts);
    EXPECT_EQ(p.deleted, 1) << "taken over, and let go";
  }
};

TEST_F(Dlpack, StructSaysWhatTheTensorIs) {
  const Tensor x = ctx_.from(Floats{1, 2, 3, 4, 5, 6}, {3, 1, 2});
  ManagedTensorVersioned* m = to_dlpack(x);
  EXPECT_EQ(m->version.major, 1U);
  EXPECT_EQ(m->flags, 0U);
  EXPECT_EQ(m->tensor.data, detail::storage_address(x));
  EXPECT_EQ(m->tensor.device.type, dlpack::DeviceType::cpu);
  EXPECT_EQ(std::vector<std::int64_t>(m->tensor.shape, m->tensor.shape + 3),
            (std::vector<std::int64_t>{3, 1, 2}));
  EXPECT_EQ(std::vector<std::int64_t>(m->tensor.strides, m->tensor.strides + 3),
            (std::vector<std::int64_t>{2, 2, 1}));
  m->deleter(m);
  ManagedTensor* old = to_dlpack_unversioned(x);
  EXPECT_EQ(old->tensor.data, detail::storage_address(x));
  old->deleter(old);
}

TEST_F(Dlpack, ConsumerKeepsTheMemory) {
  ManagedTensorVersioned* m = nullptr;
  {
    Context other({.device = "cpu", .cache_directory = test::kernel_folder()});
    m = to_dlpack(other.from(Floats{1, 2}, {2}));
  }
  EXPECT_EQ(static_cast<float*>(m->tensor.data)[1], 2);
  m->deleter(m);
}

TEST_F(Dlpack, EveryTypeComesBack) {
  for (const DType dtype : kAllDTypes) {
    const Tensor x = ctx_.from(Floats{0, 1, 1, 0}, {2, 2}, dtype);
    const Tensor y = from_dlpack(ctx_, to_dlpack(x));
    EXPECT_EQ(y.dtype(), dtype);
    EXPECT_EQ(y.to_vector<float>(), (Floats{0, 1, 1, 0})) << name(dtype);
    EXPECT_EQ(detail::storage_address(y), detail::storage_address(x)) << "no copy";
  }
  EXPECT_EQ(from_dlpack(ctx_, to_dlpack(ctx_.scalar(7))).item(), 7);
  EXPECT_EQ(from_dlpack(ctx_, to_dlpack(ctx_.ones({0, 3}))).shape(), (Shape{0, 3}));
}

template <class P>
void expect_borrowed(Context& ctx) {
  P p;
  {
    Tensor x = from_dlpack(ctx, &p.managed);
    EXPECT_EQ((2.f * x).to_vector<float>(), (Floats{0, 2, 4, 6, 8, 10}));
    p.data[0] = 9;
    EXPECT_EQ(x.to_vector<float>()[0], 9);
    EXPECT_EQ(p.deleted, 0);
  }
  EXPECT_EQ(p.deleted, 1);
}

TEST_F(Dlpack, ProducersMemoryIsBorrowed) {
  expect_borrowed<Versioned>(ctx_);
  expect_borrowed<Unversioned>(ctx_);
}

TEST_F(Dlpack, StridesAndOffsetsAreFollowed) {
  Versioned turned;
  turned.shape = {2, 2};
  turned.strides = {1, 3};
  turned.managed.tensor.byte_offset = sizeof(float);
  EXPECT_EQ(from_dlpack(ctx_, &turned.managed).to_vector<float>(), (Floats{1, 4, 2, 5}));
  EXPECT_EQ(turned.deleted, 1) << "it was copied";
  expect_refused(
      [](Versioned& p) {
        p.strides = {1, 2};
        p.managed.tensor.data = nullptr;
      },
      {"pointer is null"});
  Versioned none;
  none.managed.tensor.strides = nullptr;
  EXPECT_EQ(from_dlpack(ctx_, &none.managed, {.copy = Copy::never}).to_vector<float>(), none.data);
  Versioned never;
  never.strides = {1, 2};
  expect_says([&] { from_dlpack(ctx_, &never.managed, {.copy = Copy::never}); },
              {"from_dlpack: strides [1,2] of [2,3] are not row-major", here_});
  EXPECT_EQ(never.deleted, 1);
}

TEST_F(Dlpack, ReadOnlyStaysReadOnly) {
  Versioned p;
  p.managed.flags = dlpack::kReadOnly;
  const Tensor x = from_dlpack(ctx_, &p.managed);
  const auto plus = compile([](const Tensor& t) { return t + 1.f; });
  expect_says([&] { plus.into({x}, {x}); }, {"read-only", here_});
  ManagedTensorVersioned* m = to_dlpack(x);
  EXPECT_EQ(m->flags, dlpack::kReadOnly);
  m->deleter(m);
  expect_says([&] { to_dlpack_unversioned(x); },
              {"to_dlpack_unversioned: ", "read-only", "to_dlpack()", here_});
}

TEST_F(Dlpack, RefusesWhatNoTensorIs) {
  const auto type = [](dlpack::TypeCode code, std::uint8_t bits, std::uint16_t lanes) {
    return [=](Versioned& p) { p.managed.tensor.dtype = {code, bits, lanes}; };
  };
  expect_refused(type(dlpack::TypeCode::complex, 64, 1), {"from_dlpack: its elements are complex64", here_});
  expect_refused(type(dlpack::TypeCode::uint, 16, 1), {"uint16"});
  expect_refused(type(dlpack::TypeCode::float_, 32, 4), {"float32 times 4 lanes"});
  expect_refused(type(static_cast<dlpack::TypeCode>(17), 4, 1), {"type code 17, 4"});
  expect_refused([](Versioned& p) { p.managed.version.major = 2; }, {"DLPack 2.1", "1.x", here_});
  expect_refused([](Versioned& p) { p.managed.tensor.rank = -1; }, {"it has -1 axes", here_});
  expect_refused([](Versioned& p) { p.managed.tensor.shape = nullptr; }, {"no shape", here_});
  expect_refused([](Versioned& p) { p.shape = {-2, 3}; },
                 {"from_dlpack: shape [-2,3] has a negative extent", here_});
  expect_refused([](Versioned& p) { p.shape = {INT64_MAX, INT64_MAX}; }, {"too many elements"});
  expect_refused([](Versioned& p) { p.managed.tensor.byte_offset = UINT64_MAX; },
                 {"byte_offset", "address space"});
  expect_refused([](Versioned& p) { p.managed.tensor.device = {static_cast<dlpack::DeviceType>(10), 0}; },
                 {"device 0 of DLPack's type 10", here_});
  expect_says([&] { from_dlpack(ctx_, static_cast<ManagedTensor*>(nullptr)); },
              {"from_dlpack: the pointer is null", here_});
  Versioned p;
  expect_says([&] { from_dlpack(ctx_, &p.managed, {.stream = 0}); }, {"from_dlpack: stream 0", here_});
  EXPECT_EQ(p.deleted, 1);
}

TEST_F(Dlpack, NeedsAValue) {
  expect_says([&] { to_dlpack(Tensor()); }, {"to_dlpack: operand 0", here_});
  const auto inside = compile([](const Tensor& t) {
    to_dlpack(t + 1.f);
    return t;
  });
  expect_says([&] { inside(ctx_.ones({2})); }, {"to_dlpack: the function is being recorded", here_});
  const Tensor given = ctx_.ones({2});
  compile([](const Tensor& t) { return t + 1.f; }, {.donate = {0}})(given);
  expect_says([&] { to_dlpack(given); }, {"to_dlpack: operand 0 was donated", here_});
}

}  // namespace
}  // namespace tilewright
