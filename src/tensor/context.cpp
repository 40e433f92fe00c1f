// Context: devices on demand, creation of tensors, the random state.
#include "ops/composites.h"
#include "runtime/device_name.h"
#include "runtime/measured_target.h"
#include "runtime/probe.h"
#include "tensor/literals.h"

#include <tilewright/base/thread_pool.h>

#include <fmt/format.h>

namespace tilewright {

namespace detail {

ContextState::ContextState(ContextOptions o)
    : options(std::move(o)),
      cache(options.cache_directory == "auto" ? runtime::BinaryCache::default_directory()
                                              : options.cache_directory) {}

DeviceState& ContextState::device(const std::string& name) {
  // Tensors have the full name: most calls end here.
  if (const auto it = devices.find(name); it != devices.end()) return *it->second;
  const std::string full = runtime::parse_device_name(name).value().full();
  if (auto it = devices.find(full); it != devices.end()) return *it->second;
  backends::BackendOptions how = {
      .threads = options.threads, .isa = options.isa, .library_paths = options.cuda_library_paths};
  const bool own = full == runtime::parse_device_name(options.device).value().full();
  if (own) how.stream = options.stream;
  auto opened =
      runtime::Device::open(full, how, options.library_directory, own ? options.allocator : nullptr);
  if (!opened) raise(opened.error(), opened.error().message);
  auto state = std::make_unique<DeviceState>(std::move(*opened), &cache);
  // A file that cannot be read is as good as none: rules of thumb stand in, and tw devices says what is
  // wrong.
  if (const auto stored = runtime::stored_ceilings(*state->device, cache.directory())) {
    state->ceilings = std::make_shared<const perf::Hardware>(perf::to_hardware(*stored));
    state->target = runtime::with_ceilings(state->target, *state->ceilings);
  }
  return *(devices[full] = std::move(state));
}

std::shared_ptr<Trace> ContextState::recording() const {
  if (recordings.empty()) return nullptr;  // most calls end here
  const auto mine = recordings.find(std::this_thread::get_id());
  return mine == recordings.end() ? nullptr : mine->second;
}

std::shared_ptr<Trace> ContextState::exchange_recording(std::shared_ptr<Trace> next) {
  const auto mine = recordings.try_emplace(std::this_thread::get_id()).first;
  std::shared_ptr<Trace> before = std::exchange(mine->second, std::move(next));
  if (!mine->second) recordings.erase(mine);
  return before;
}

void ContextState::undraw(std::uint64_t before, std::size_t count) {
  if (random_calls == before + count) random_calls = before;
}

}  // namespace detail

using detail::allocate;
using detail::DeviceState;
using detail::make_tensor;

Context::Context(ContextOptions options, const Location& where)
    : state_(std::make_shared<detail::ContextState>(std::move(options))) {
  detail::at_place(where, [&] {
    checked_threads(state_->options.threads);  // whatever the device
    state_->device(state_->options.device);
  });
}

Context::~Context() {
  // Work still running may use what the devices own.
  for (auto& [name, device] : state_->devices) (void)device->device->backend().synchronize();
}

const ContextOptions& Context::options() const& { return state_->options; }
ContextOptions Context::options() && { return state_->options; }

std::uintptr_t Context::stream() const {
  const std::lock_guard lock(state_->mutex);
  return state_->device(state_->options.device).device->backend().stream_handle();
}

MemoryUse Context::memory() const {
  const std::lock_guard lock(state_->mutex);
  const runtime::Device& device = *state_->device(state_->options.device).device;
  return {.bytes = device.bytes_in_use(), .peak_bytes = device.peak_bytes()};
}

void Context::reset_peak_memory() {
  const std::lock_guard lock(state_->mutex);
  state_->device(state_->options.device).device->reset_peak();
}

// Others may use the Context while this thread waits.
void Context::synchronize() {
  std::vector<std::shared_ptr<runtime::Device>> devices;
  {
    const std::lock_guard lock(state_->mutex);
    for (const auto& [name, device] : state_->devices) devices.push_back(device->device);
  }
  for (const auto& device : devices)
    if (auto done = device->backend().synchronize(); !done) throw Error(done.error().message);
}

void Context::set_seed(std::uint64_t seed, const Location& where) {
  const std::lock_guard lock(state_->mutex);
  if (detail::outermost_compile(*state_))
    throw Error(
        "set_seed: the function is being recorded, and its calls would not set the seed: set it before "
        "the call",
        where);
  state_->options.seed = seed;
  state_->random_calls = 0;
}

namespace {
void check_shape(const char* name, const Shape& shape, const Location& where) {
  detail::in_function(name, where, [&] { ir::check_shape(shape); });
}
}  // namespace

Tensor Context::from_memory(const void* data, DType data_dtype, Index count, const Shape& shape, DType dtype,
                            const Location& where) {
  check_shape("from", shape, where);
  if (count != shape.size())
    throw Error(
        fmt::format("from: {} values for shape {}, which holds {}", count, to_string(shape), shape.size()),
        where);
  const std::lock_guard lock(state_->mutex);
  DeviceState& device = state_->device(state_->options.device);
  const ir::Type type{dtype, shape};
  std::shared_ptr<runtime::Buffer> buffer =
      detail::in_function("from", where, [&] { return allocate(device.device, type); });
  std::vector<char> converted;
  if (data_dtype != dtype) {
    converted.resize(static_cast<std::size_t>(count) * size_bytes(dtype));
    convert(data, data_dtype, converted.data(), dtype, static_cast<std::size_t>(count));
    data = converted.data();
  }
  if (auto done = buffer->write(data, static_cast<std::size_t>(count) * size_bytes(dtype)); !done)
    throw Error(done.error().message, where);
  return make_tensor(state_, type, device.device, std::move(buffer));
}

Tensor Context::empty(const Shape& shape, DType dtype, const Location& where) {
  check_shape("empty", shape, where);
  const std::lock_guard lock(state_->mutex);
  DeviceState& device = state_->device(state_->options.device);
  const ir::Type type{dtype, shape};
  return make_tensor(state_, type, device.device,
                     detail::in_function("empty", where, [&] { return allocate(device.device, type); }));
}

namespace {
Tensor fill(const std::shared_ptr<detail::ContextState>& context, const char* name, const ir::Type& type,
            double value, const Location& where) {
  check_shape(name, type.shape, where);
  detail::check_fill(name, type.dtype, value, where);
  const std::lock_guard lock(context->mutex);
  return detail::in_function(name, where, [&] {
    return detail::filled(context, context->device(context->options.device), type, value, where);
  });
}
}  // namespace

Tensor Context::full(const Shape& shape, double value, DType dtype, const Location& where) {
  return fill(state_, "full", {dtype, shape}, value, where);
}
Tensor Context::zeros(const Shape& shape, DType dtype, const Location& where) {
  return fill(state_, "zeros", {dtype, shape}, 0, where);
}
Tensor Context::ones(const Shape& shape, DType dtype, const Location& where) {
  return fill(state_, "ones", {dtype, shape}, 1, where);
}
Tensor Context::scalar(double value, DType dtype, const Location& where) {
  detail::check_fill("scalar", dtype, value, where);
  return from_memory(&value, DType::f64, 1, Shape{}, dtype, where);
}

namespace {
// Numbers from 0 to `last` are what they are in `dtype`, not its largest.
void check_holds(const char* op, DType dtype, Index last, const Location& where) {
  if (!is_float(dtype) && last > 0 && wrap_to(dtype, last) != last)
    throw Error(fmt::format("{}: {} does not hold {}", op, name(dtype), last), where);
}
}  // namespace

namespace {
// A tensor that `write` makes of a new seed.
Tensor draw(const std::shared_ptr<detail::ContextState>& context, const char* name,
            const std::function<ir::Value(ir::Value)>& write, const Location& where) {
  const std::lock_guard lock(context->mutex);
  const std::shared_ptr<runtime::Device>& device = context->device(context->options.device).device;
  const Tensor seed =
      detail::in_function(name, where, [&] { return detail::recorded_seed(context, device); });
  return detail::apply(
             name, {seed}, [&](ir::Graph&, const auto& in) { return std::vector{write(in[0])}; }, where)
      .at(0);
}
}  // namespace

Tensor Context::randn(const Shape& shape, DType dtype, const Location& where) {
  check_shape("randn", shape, where);
  if (!is_float(dtype)) throw Error(fmt::format("randn: {} is not a float type", name(dtype)), where);
  return draw(state_, "randn", [&](ir::Value seed) { return ops::randn(seed, shape, 0, dtype); }, where);
}

Tensor Context::rand(const Shape& shape, DType dtype, const Location& where) {
  check_shape("rand", shape, where);
  if (!is_float(dtype)) throw Error(fmt::format("rand: {} is not a float type", name(dtype)), where);
  return draw(state_, "rand", [&](ir::Value seed) { return ops::rand(seed, shape, 0, dtype); }, where);
}

Tensor Context::randint(const Shape& shape, Index high, DType dtype, const Location& where) {
  check_shape("randint", shape, where);
  if (high < 1 || high > (Index{1} << 32))
    throw Error(fmt::format("randint: high {} is not in [1, 2^32]", high), where);
  check_holds("randint", dtype, high - 1, where);
  // 32 bits modulo `high` prefer the low numbers by 1 in 2^32 / high: for more than a few numbers, 62 bits.
  constexpr Index kFew = 1 << 12;
  const auto bits = [&](ir::Value seed) {
    const ir::Value low = ops::random_bits(seed, shape, 0);
    if (high <= kFew) return low;
    return ops::bit_or(ops::shl(ops::random_bits(seed, shape, shape.size()), 30), ops::shr(low, 2));
  };
  return draw(
      state_, "randint", [&](ir::Value seed) { return ops::cast(ops::rem(bits(seed), high), dtype); }, where);
}

}  // namespace tilewright
