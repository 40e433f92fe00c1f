// Values, views and sizes as handles: which kernel they are of, and what is said where they cannot be used.
#include <fmt/format.h>

#include "base/no_value.h"
#include "tile/builder_state.h"

namespace tilewright::tile {

namespace {
// The state behind a handle that may still be used.
BuilderState& state_of(const std::shared_ptr<BuilderState>& state, const char* use, const Location& where) {
  if (!state) fail(where, fmt::format("{}: this tile value {}", use, kNoValue));
  if (state->finished) fail(where, fmt::format("{}: kernel {} was already finished", use, state->name));
  return *state;
}
}  // namespace

const TileType& Value::type(const Location& where) const {
  return state_of(state_, "type", where).values[static_cast<std::size_t>(id_)].type;
}

Builder& Value::builder(const Location& where) const {
  const BuilderState& state = state_of(state_, "builder", where);
  if (!state.builder) fail(where, fmt::format("the Builder of kernel {} no longer exists", state.name));
  return *state.builder;
}

// What is no scalar parameter of a kernel is said where the size is used, with that line.
Builder::SizeArg::SizeArg(Value scalar_param) : scalar(std::move(scalar_param)) {
  if (!scalar->state_) return;
  for (const Block* block : scalar->state_->open)
    for (const Op& op : block->ops)
      if (op.kind == OpKind::scalar_param && op.results[0] == scalar->id()) {
        dim = {0, op.param};
        return;
      }
}

Builder::Builder(std::string name) : state_(std::make_shared<BuilderState>()) {
  state_->name = name;
  state_->kernel.name = std::move(name);
  state_->open.push_back(&state_->kernel.body);
  state_->builder = this;
}
Builder::~Builder() { state_->builder = nullptr; }

BuilderState& Builder::live(const Location& where) const {
  if (state_->finished) fail(where, fmt::format("kernel {} was already finished", state_->name));
  return *state_;
}

std::string Builder::role_of(const Use& use) {
  return use.number < 0 ? use.role : fmt::format("{} {}", use.role, use.number);
}

// Throws Error unless the handle is one of this kernel, which is not finished.
void Builder::check_handle(const std::shared_ptr<BuilderState>& of, const Use& use,
                           const Location& where) const {
  if (of == state_ && !of->finished) return;
  if (!of) fail(where, fmt::format("{}: {} {}", use.op, role_of(use), kNoValue));
  live(where);
  fail(where, fmt::format("{}: {} belongs to another kernel: it is of kernel {}, and this is kernel {}",
                          use.op, role_of(use), of->name, state_->name));
}

void Builder::check(const Value& v, const Use& use, const Location& where) const {
  check_handle(v.state_, use, where);
}

void Builder::check(const View& v, const char* op, const Location& where) const {
  check_handle(v.state_, {op, "the view"}, where);
}

// The size as one of this kernel.
Dim Builder::size(const SizeArg& s, const Use& use, const Location& where) const {
  if (!s.scalar) return s.dim;
  check(*s.scalar, use, where);
  if (s.dim.is_constant())
    fail(where, fmt::format("{}: {} is neither a number nor a scalar parameter", use.op, role_of(use)));
  return s.dim;
}

}  // namespace tilewright::tile
