// Which literals are inputs, and the tensors that hold them.
#include "tensor/literals.h"

#include "ops/promote.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace tilewright::detail {

namespace {

// Rewrites know these (x * 1, x + 0, x * 0.5 + x * 0.5, masks of -inf), and they are few: constants.
bool is_known(double value) {
  constexpr std::array kKnown = {0.0, 0.5, 1.0, 2.0};
  return !std::isfinite(value) || std::find(kKnown.begin(), kKnown.end(), std::fabs(value)) != kKnown.end();
}

// Whole and half exponents, of which there are few: products, roots and their reciprocals.
bool is_small_exponent(double value) {
  constexpr double kLargest = 64;
  return std::fabs(value) <= kLargest && 2 * value == std::trunc(2 * value);
}

bool may_vary(const Arg& literal, Literals which) {
  if (which == Literals::none || is_known(literal.real)) return false;
  return which == Literals::any || !is_small_exponent(literal.real);
}

// An eager operation, and what is recorded for one call alone: value_and_grad outside compile(), and what
// follows a host read, as what was read may be in the literal.
bool runs_once(const std::shared_ptr<Trace>& trace) {
  if (!trace) return true;
  // What a composite is written with is the same at every call, or an argument of it.
  if (trace->of == Trace::Of::composite) return false;
  bool compiled = false;
  for (const Trace* t = trace.get(); t; t = t->enclosing.get()) {
    if (!t->breaks.empty()) return true;
    compiled |= t->of == Trace::Of::compile;
  }
  return !compiled;
}

// Literals of one recording that become inputs: a kernel has room for so many more pointers on every device.
constexpr int kMostRecorded = 16;

struct Scalar {
  DType dtype = DType::f32;
  std::uint64_t bits = 0;  // as they lie in memory
};

Scalar scalar_of(DType dtype, double real, Index integer) {
  Scalar s{dtype, 0};
  if (is_float(dtype))
    convert(&real, DType::f64, &s.bits, dtype, 1);
  else
    convert(&integer, DType::i64, &s.bits, dtype, 1);
  return s;
}

Tensor tensor_of(const std::shared_ptr<ContextState>& context, DeviceState& device, const Scalar& s) {
  const ir::Type type{s.dtype, {}};
  std::shared_ptr<runtime::Buffer> buffer = allocate(device.device, type);
  if (auto done = buffer->write(&s.bits, size_bytes(s.dtype)); !done) throw Error(done.error().message);
  return make_tensor(context, type, device.device, std::move(buffer));
}

// The same for eager operations, which repeat: devices other than the host are slow to write to.
Tensor stored_tensor_of(const std::shared_ptr<ContextState>& context, DeviceState& device, const Scalar& s) {
  const auto key = std::pair{s.dtype, s.bits};
  if (const Tensor* known = device.literals.find(key)) return *known;
  Tensor fresh = tensor_of(context, device, s);
  device.literals.insert(key, fresh);
  return fresh;
}

bool is_narrow(DType dtype) { return is_float(dtype) && compute_dtype(dtype) != dtype; }

// The inputs that the literals become; an empty tensor where one does not.
std::vector<Tensor> inputs_of(const std::vector<Tensor>& operands, const Tensor& beside,
                              const std::vector<const Arg*>& arguments, Literals which) {
  std::vector<Tensor> out(arguments.size());
  for (const Tensor& t : operands)
    if (!t.defined()) return out;
  const std::shared_ptr<ContextState> context = beside.impl()->context.lock();
  const auto varies = [&](const Arg* a) { return !a->is_tensor && may_vary(*a, which); };
  if (!context || std::none_of(arguments.begin(), arguments.end(), varies)) return out;
  const std::lock_guard lock(context->mutex);
  const std::shared_ptr<Trace> trace = recording_trace(*context, operands);
  const bool narrow = is_narrow(beside.dtype());
  // A recorded value of a narrow type has f32's precision, which a stored literal would not: it stays
  // written.
  if (!runs_once(trace) || (trace && narrow)) return out;
  DeviceState& device = context->device(beside.device());
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Arg& a = *arguments[i];
    if (!varies(&a) || (trace && trace->literals == kMostRecorded)) continue;
    const DType dtype = narrow ? DType::f32 : ops::weak_type(beside.dtype(), a.is_real);
    const Scalar s = scalar_of(dtype, a.real, a.integer);
    out[i] = trace ? tensor_of(context, device, s) : stored_tensor_of(context, device, s);
    if (trace) ++trace->literals;
  }
  return out;
}

std::string held_by(DType dtype) {
  const double infinity = std::numeric_limits<double>::infinity();
  return fmt::format("{} to {}", float_to_int(dtype, -infinity), float_to_int(dtype, infinity));
}

// A whole literal beside integers takes their type, which must hold it; two literals without a tensor beside
// them are i64 where i32 does not hold one (ops/promote.h).
void check_literals(const char* name, const Tensor* beside, const std::vector<const Arg*>& arguments,
                    const Location& where) {
  if (beside && !beside->defined()) return;
  const auto real = [](const Arg* a) { return !a->is_tensor && a->is_real; };
  if (!beside && std::any_of(arguments.begin(), arguments.end(), real)) return;
  const DType dtype = beside ? ops::weak_type(beside->dtype(), false) : DType::i64;
  if (is_float(dtype)) return;
  for (const Arg* a : arguments) {
    if (a->is_tensor || a->is_real) continue;
    // An unsigned literal that is in no i64; the nearest double of some that are is 2^63, too.
    const bool wrapped = a->real >= 0x1p63 && a->integer < 0;
    if (!wrapped && wrap_to(dtype, a->integer) == a->integer) continue;
    const std::string text =
        wrapped ? fmt::format("{}", static_cast<std::uint64_t>(a->integer)) : fmt::format("{}", a->integer);
    throw Error(
        fmt::format("{}: {} does not hold the literal {}, only {}: cast the tensor to a wider type, or "
                    "write a real literal, which gives f32",
                    name, tilewright::name(dtype), text, held_by(dtype)),
        where);
  }
}

}  // namespace

void check_fill(const char* op, DType dtype, double value, const Location& where) {
  // No double is 2^63 - 1: where the largest i64 is wanted, its nearest is what is given.
  if (!is_integer(dtype) || static_cast<double>(float_to_int(dtype, value)) == std::trunc(value)) return;
  throw Error(fmt::format("{}: {} does not hold {}, only {}", op, name(dtype), value, held_by(dtype)), where);
}

Tensor apply_mixed(const char* name, const std::vector<Tensor>& tensors,
                   const std::vector<const Arg*>& arguments, Literals which, const MixedFunction& write,
                   const Location& where) {
  std::vector<Tensor> operands = tensors;
  const Tensor* beside = nullptr;
  for (const Arg* a : arguments) {
    if (!a->is_tensor) continue;
    operands.push_back(a->tensor);
    beside = &a->tensor;
  }
  check_literals(name, beside, arguments, where);
  std::vector<Tensor> literals(arguments.size());
  if (beside)
    literals = in_function(name, where, [&] { return inputs_of(operands, *beside, arguments, which); });
  bool widened = false;
  for (const Tensor& t : literals) {
    if (!t.defined()) continue;
    operands.push_back(t);
    // Between load and store a narrow type has f32's precision, and so has a literal beside it.
    widened = beside && is_narrow(beside->dtype());
  }
  const auto write_all = [&](ir::Graph&, const std::vector<ir::Value>& in) {
    std::vector<ops::Operand> all;
    std::size_t next = tensors.size();
    for (const Arg* a : arguments) {
      if (a->is_tensor)
        all.emplace_back(widened ? ops::cast(in[next++], DType::f32) : in[next++]);
      else
        all.push_back(a->is_real ? ops::Operand(a->real) : ops::Operand(a->integer));
    }
    for (std::size_t i = 0; i < literals.size(); ++i)
      if (literals[i].defined()) all[i] = in[next++];
    const ir::Value out = write(in, all);
    return std::vector{widened && is_float(out.dtype()) ? ops::cast(out, beside->dtype()) : out};
  };
  return apply(name, operands, write_all, where).at(0);
}

namespace {

// What the eager one stores and stretches, written.
ir::Value stretched(ir::Value number, const ir::Type& type) {
  return ops::cast(ops::broadcast_to(number, type.shape), type.dtype);
}

// The number of a full(): of a narrow type in f32, which is rounded where it is stored.
Scalar fill_of(DType wanted, double value) {
  const DType dtype = is_narrow(wanted) ? DType::f32 : wanted;
  return scalar_of(dtype, value, is_float(dtype) ? 0 : float_to_int(dtype, value));
}

// A constant of the program; after a host read an input, as what was read may be in the number.
Tensor recorded_full(const std::shared_ptr<ContextState>& context, DeviceState& device,
                     const std::shared_ptr<Trace>& trace, const ir::Type& type, double value,
                     const Location& where) {
  std::vector<Tensor> operands;
  if (!is_known(value) && runs_once(trace) && trace->literals < kMostRecorded) {
    operands.push_back(tensor_of(context, device, fill_of(type.dtype, value)));
    ++trace->literals;
  }
  const auto write = [&](ir::Graph& graph, const std::vector<ir::Value>& in) {
    return std::vector{in.empty() ? ops::constant(graph, type.dtype, type.shape, value)
                                  : stretched(in[0], type)};
  };
  return record(context, trace, operands, write, where).at(0);
}

}  // namespace

Tensor filled(const std::shared_ptr<ContextState>& context, DeviceState& device, const ir::Type& type,
              double value, const Location& where) {
  if (const std::shared_ptr<Trace> trace = creation_trace(*context, *device.device))
    return recorded_full(context, device, trace, type, value, where);
  // A number of a narrow type is rounded through f32, as a kernel stores it.
  const Scalar number = fill_of(type.dtype, value);
  backends::FillPattern pattern{.width = static_cast<int>(size_bytes(type.dtype))};
  convert(&number.bits, number.dtype, &pattern.bits, type.dtype, 1);
  std::shared_ptr<runtime::Buffer> buffer = allocate(device.device, type);
  if (auto done = buffer->fill(pattern); !done) raise(done.error(), done.error().message);
  return make_tensor(context, type, device.device, std::move(buffer));
}

std::optional<Tensor> filled_beside(const char* name, const Tensor& x, const ir::Type& type, double value,
                                    const Location& where) {
  if (!x.defined()) return std::nullopt;
  const std::shared_ptr<ContextState> context = context_of(x, name, where);
  const std::lock_guard lock(context->mutex);
  return in_function(name, where, [&]() -> std::optional<Tensor> {
    if (context->recording() || recording_trace(*context, {x})) return std::nullopt;
    return filled(context, context->device(x.device()), type, value, where);
  });
}

}  // namespace tilewright::detail
