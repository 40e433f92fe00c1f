// Hand-written kernels on tensors: checks the bindings, finds or builds the program, launches it.
#include "base/no_value.h"
#include "tensor/kernel_gradients.h"

#include <tilewright/tensor/tile_function.h>
#include <tilewright/tile/schedule.h>
#include <tilewright/tile/verify.h>

#include <fmt/format.h>

#include <bit>
#include <mutex>

namespace tilewright {

using detail::context_of;
using detail::DeviceState;

struct TileFunction::State {
  explicit State(tile::Kernel written) : kernel(std::move(written)), uses(tile::view_uses(kernel)) {}

  tile::Kernel kernel;
  std::vector<tile::ViewUse> uses;  // by view
  std::optional<tile::Schedule> schedule;
  struct Loaded {
    std::weak_ptr<detail::ContextState> context;
    std::shared_ptr<runtime::Device> device;  // outlives the program
    std::shared_ptr<runtime::LoadedKernel> kernel;
  };
  std::vector<Loaded> loaded;
  std::shared_ptr<const TileGradient> gradient;
  std::mutex mutex;  // guards schedule, gradient and what is loaded: calls with tensors of several Contexts
                     // share no other

  std::shared_ptr<const TileGradient> its_gradient() {
    const std::lock_guard lock(mutex);
    return gradient;
  }
  std::shared_ptr<runtime::LoadedKernel> load(const std::shared_ptr<detail::ContextState>& context,
                                              DeviceState& device, const Location& where) {
    const std::lock_guard lock(mutex);
    for (const Loaded& l : loaded)
      if (l.device == device.device) return l.kernel;
    auto built = schedule ? device.store.get(kernel, *schedule) : device.store.get(kernel);
    if (!built) throw Error(built.error().message, where);
    std::erase_if(loaded, [](const Loaded& l) { return l.context.expired(); });
    loaded.push_back({context, device.device, *built});
    return *built;
  }
};

TileArg out(const Shape& shape, DType dtype) {
  TileArg a;
  a.shape = shape;
  a.dtype = dtype;
  a.is_new = true;
  a.written = true;
  return a;
}

TileArg into(Tensor tensor) {
  TileArg a(std::move(tensor));
  a.written = true;
  return a;
}

namespace {
tile::Kernel verified(tile::Kernel kernel, const Location& where) {
  const std::optional<std::string> problem = tile::verify(kernel);
  if (problem) throw Error(fmt::format("TileFunction of kernel \"{}\": {}", kernel.name, *problem), where);
  return kernel;
}
}  // namespace

TileFunction::TileFunction(tile::Kernel kernel, const Location& where)
    : state_(std::make_unique<State>(verified(std::move(kernel), where))) {}
TileFunction::~TileFunction() = default;
TileFunction::TileFunction(TileFunction&&) noexcept = default;

TileFunction::State& TileFunction::state(const Location& where) const {
  if (!state_) throw Error(fmt::format("this TileFunction {}", kNoValue), where);
  return *state_;
}

const tile::Kernel& TileFunction::kernel(const Location& where) const& { return state(where).kernel; }
tile::Kernel TileFunction::kernel(const Location& where) && { return state(where).kernel; }

void TileFunction::use(const tile::Schedule& schedule, const Location& where) {
  State& s = state(where);
  const std::lock_guard lock(s.mutex);
  s.schedule = schedule;
  s.loaded.clear();
}

void TileFunction::set_gradient(TileGradient gradient, const Location& where) {
  State& s = state(where);
  if (!gradient)
    throw Error(fmt::format("set_gradient of kernel {}: the function is empty", s.kernel.name), where);
  const std::lock_guard lock(s.mutex);
  s.gradient = std::make_shared<const TileGradient>(std::move(gradient));
}

namespace {

std::vector<std::int64_t> scalar_bits(const tile::Kernel& kernel, const std::vector<double>& scalars,
                                      const Location& where) {
  if (scalars.size() != kernel.scalars.size())
    throw Error(fmt::format("kernel {}: {} scalars given, it takes {}", kernel.name, scalars.size(),
                            kernel.scalars.size()),
                where);
  std::vector<std::int64_t> bits;
  for (std::size_t i = 0; i < scalars.size(); ++i) {
    const DType d = kernel.scalars[i].dtype;
    if (d == DType::f64)
      bits.push_back(std::bit_cast<std::int64_t>(scalars[i]));
    else if (d == DType::f32)
      bits.push_back(std::bit_cast<std::int32_t>(static_cast<float>(scalars[i])));
    else if (holds(d, scalars[i]))
      bits.push_back(float_to_int(d, scalars[i]));
    else
      throw Error(fmt::format("kernel {}: scalar {} is an i64, {} is no such number", kernel.name,
                              kernel.scalars[i].name, scalars[i]),
                  where);
  }
  return bits;
}

// The elements a view spans must lie in its tensor.
void check_view(const tile::Kernel& kernel, const tile::ViewParam& view, const Tensor& t,
                const std::vector<std::int64_t>& scalars, const Location& where) {
  if (t.dtype() != view.dtype)
    throw Error(fmt::format("kernel {}: view {} holds {}, the tensor {}", kernel.name, view.name,
                            name(view.dtype), name(t.dtype())),
                where);
  auto value = [&](const tile::Dim& d) { return d.in(scalars.data()); };
  Index low = 0, high = 0;
  bool empty = false;
  for (int i = 0; i < view.rank(); ++i) {
    const Index extent = value(view.extents[static_cast<std::size_t>(i)]);
    const Index stride = value(view.strides[static_cast<std::size_t>(i)]);
    if (extent < 0)
      throw Error(fmt::format("kernel {}: dim {} of view {} is given the extent {}", kernel.name, i,
                              view.name, extent),
                  where);
    empty |= extent == 0;
    Index reach = 0;
    Index& end = stride < 0 ? low : high;
    if (empty) continue;
    if (__builtin_mul_overflow(extent - 1, stride, &reach) || __builtin_add_overflow(end, reach, &end))
      throw Error(fmt::format("kernel {}: dim {} of view {}, of extent {} and stride {}, leaves all memory",
                              kernel.name, i, view.name, extent, stride),
                  where);
  }
  if (!empty && (low < 0 || high >= t.size()))
    throw Error(fmt::format("kernel {}: view {} reaches elements {} to {} of a tensor of {}", kernel.name,
                            view.name, low, high, t.size()),
                where);
}

}  // namespace

struct TileFunction::Call {
  const std::vector<TileArg>& views;
  const std::vector<double>& scalars;
  std::shared_ptr<detail::ContextState> context;  // null: that of the tensors
  const Location& where;
};

std::vector<Tensor> TileFunction::operator()(const std::vector<TileArg>& views,
                                             const std::vector<double>& scalars,
                                             const Location& where) const {
  return run({views, scalars, nullptr, where});
}
std::vector<Tensor> TileFunction::operator()(const Context& context, const std::vector<TileArg>& views,
                                             const std::vector<double>& scalars,
                                             const Location& where) const {
  return run({views, scalars, context.state(), where});
}

std::vector<Tensor> TileFunction::run(const Call& call) const {
  const auto& [views, scalars, given, where] = call;
  State& function = state(where);
  const tile::Kernel& kernel = function.kernel;
  const std::string called = "kernel " + kernel.name;
  if (views.size() != kernel.views.size())
    throw Error(fmt::format("{}: {} views given, it takes {}", called, views.size(), kernel.views.size()),
                where);
  const Tensor* first = nullptr;
  for (std::size_t i = 0; i < views.size(); ++i) {
    const TileArg& v = views[i];
    if (!v.tensor.defined() && v.is_new) continue;
    if (!v.tensor.defined())
      throw Error(fmt::format("{}: view {} {}", called, kernel.views[i].name, kNoValue), where);
    if (first && first->impl()->device != v.tensor.impl()->device)
      throw Error(fmt::format("{}: tensors are {}", called,
                              detail::apart(*first->impl()->device, *v.tensor.impl()->device)),
                  where);
    if (!first) first = &v.tensor;
  }
  if (!first && !given)
    throw Error(fmt::format("{}: no tensor among its views says where it runs: give a Context in front of "
                            "them",
                            called),
                where);
  const std::shared_ptr<detail::ContextState> context = first ? context_of(*first, "kernel", where) : given;
  if (given && given != context)
    throw Error(fmt::format("{}: its tensors are of another Context than the one given", called), where);
  const std::lock_guard lock(context->mutex);
  std::vector<Tensor> read, written;
  for (std::size_t i = 0; i < views.size(); ++i) {
    const TileArg& v = views[i];
    if (!v.tensor.defined()) continue;
    if (!v.tensor.impl()->donated.empty())
      throw Error(fmt::format("kernel {}: view {} {}", kernel.name, kernel.views[i].name,
                              detail::donated_text(*v.tensor.impl())),
                  where);
    (v.written ? written : read).push_back(v.tensor);
  }
  if (const auto trace = detail::at_place(where, [&] { return detail::trace_of(read); });
      trace && trace->of == detail::Trace::Of::value_and_grad) {
    const std::shared_ptr<const TileGradient> gradient = function.its_gradient();
    if (!gradient)
      throw Error(fmt::format("{} inside a function that is differentiated has no gradient: give it one by "
                              "set_gradient(), or return the tensor beside the scalar and call it behind",
                              called),
                  where);
    if (!written.empty())
      throw Error(fmt::format("{} inside a function that is differentiated writes into a tensor: let it make "
                              "new ones, by out()",
                              called),
                  where);
    const std::vector<Tensor> values = detail::values_now(trace, read, context, called, where);
    std::vector<TileArg> with_values = views;
    auto next = values.begin();
    for (TileArg& v : with_values)
      if (v.tensor.defined()) v.tensor = *next++;
    std::vector<Tensor> made = run({with_values, scalars, context, where});
    return detail::note_kernel(trace, read, {kernel.name, where, {values, made, {}, scalars}, gradient});
  }
  const detail::Aside aside(context, called, read, written, where);
  DeviceState& device = context->device(first ? first->device() : context->options.device);
  const std::vector<std::int64_t> bits = scalar_bits(kernel, scalars, where);
  const std::vector<tile::ViewUse>& uses = function.uses;
  std::vector<void*> addresses;
  std::vector<Tensor> made;
  for (std::size_t i = 0; i < views.size(); ++i) {
    Tensor t = views[i].tensor;
    if (!t.defined()) {
      const ir::Type type{views[i].dtype, views[i].shape};
      t = detail::make_tensor(context, type, device.device,
                              detail::at_place(where, [&] { return detail::allocate(device.device, type); }));
      made.push_back(t);
    } else if ((uses[i].written || uses[i].accumulated) && !views[i].written) {
      throw Error(fmt::format("kernel {}: view {} is written; pass out(shape) or into(tensor)", kernel.name,
                              kernel.views[i].name),
                  where);
    } else if (views[i].written && t.impl()->buffer->is_read_only()) {
      throw Error(
          fmt::format("kernel {}: view {} is written, and its tensor is borrowed memory that is read-only",
                      kernel.name, kernel.views[i].name),
          where);
    }
    check_view(kernel, kernel.views[i], t, bits, where);
    addresses.push_back(t.impl()->buffer->data());
  }
  const std::vector<Index> grid = tile::grid_extents(kernel, bits);
  backends::LaunchArgs args{addresses.data(), bits.data(), {1, 1, 1}};
  for (std::size_t axis = 0; axis < grid.size(); ++axis) {
    args.grid[axis] = grid[axis];
    if (grid[axis] <= 0) return made;
  }
  if (auto done = function.load(context, device, where)->program->launch(args); !done)
    throw Error(done.error().message, where);
  return made;
}

std::string TileFunction::source(const Tensor& on, const Location& where) const {
  State& function = state(where);
  const std::shared_ptr<detail::ContextState> context = context_of(on, "source", where);
  const std::lock_guard lock(context->mutex);
  return function.load(context, context->device(on.device()), where)->source.text;
}

}  // namespace tilewright
