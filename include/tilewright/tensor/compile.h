// compile(): a function of tensors, specialised and fused at its first call for each combination of shapes,
// types and devices. value_and_grad(): its derivative, ahead of time.
#pragma once

#include <tilewright/tensor/functions.h>

#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

namespace tilewright {

struct CompileOptions {
  bool fullgraph = false;     // a host read inside the function is an Error instead of a graph break
  bool fuse = true;           // false: one kernel per op, for comparison
  bool max_autotune = false;  // measure the schedules the model ranks first, on the first call's data
  bool replay = true;         // CUDA: replay the launches as a graph where that measures faster
};

// What one specialisation became.
struct KernelReport {
  std::string name;
  std::string ops;  // the graph ops it computes
  double flops = 0;
  double bytes = 0;
  double floor_us = 0;  // the later of bytes over measured bandwidth and FLOPs over peak
  double predicted_us = 0;
  double build_ms = 0;
  std::string origin;  // "compiled", "disk"
  std::string schedule;
  std::string source;  // what was compiled
  std::string tile;    // tile IR
};
struct SpecialisationReport {
  std::string key;     // the guards: types and devices of the arguments
  std::string reason;  // why it was compiled
  double compile_ms = 0;
  std::vector<KernelReport> kernels;
  std::vector<std::string> not_fused;  // "exp -> sum: …"
  std::vector<std::string> breaks;     // host reads, with their lines
  std::string graph, fused;            // stage dumps
  Index arena_bytes = 0;
  bool replayed = false;
};

namespace detail {

using ManyFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

// The type-erased part of a compiled function.
class CompiledCore {
 public:
  CompiledCore(ManyFunction function, CompileOptions options);
  ~CompiledCore();
  std::vector<Tensor> call(const std::vector<Tensor>& args, const Location& where);
  void call_into(const std::vector<Tensor>& outputs, const std::vector<Tensor>& args, const Location& where);
  std::vector<SpecialisationReport> report() const;
  std::string explain() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// A tensor together with the place of the call: after a pack of arguments there is no room for a default one.
struct FirstArgument {
  FirstArgument(const Tensor& t, const Location& at = Location::current()) : tensor(t), where(at) {}
  const Tensor& tensor;
  Location where;
};

// Results of user functions: a Tensor, a vector, or a tuple or pair of Tensors.
inline std::vector<Tensor> pack(const Tensor& t) { return {t}; }
inline std::vector<Tensor> pack(const std::vector<Tensor>& v) { return v; }
template <class... T>
std::vector<Tensor> pack(const std::tuple<T...>& t) {
  return std::apply([](const auto&... each) { return std::vector<Tensor>{each...}; }, t);
}
template <class A, class B>
std::vector<Tensor> pack(const std::pair<A, B>& p) {
  return {p.first, p.second};
}

template <class R>
struct Unpack;
template <>
struct Unpack<Tensor> {
  static Tensor from(std::vector<Tensor>&& v) { return std::move(v.at(0)); }
};
template <>
struct Unpack<std::vector<Tensor>> {
  static std::vector<Tensor> from(std::vector<Tensor>&& v) { return std::move(v); }
};
template <class A, class B>
struct Unpack<std::pair<A, B>> {
  static std::pair<A, B> from(std::vector<Tensor>&& v) { return {std::move(v.at(0)), std::move(v.at(1))}; }
};
template <class... T>
struct Unpack<std::tuple<T...>> {
  static std::tuple<T...> from(std::vector<Tensor>&& v) {
    return from(std::move(v), std::index_sequence_for<T...>{});
  }
  template <std::size_t... I>
  static std::tuple<T...> from(std::vector<Tensor>&& v, std::index_sequence<I...>) {
    return {std::move(v.at(I))...};
  }
};

// A callable's parameter list, from its operator() or function type.
template <class F>
struct Signature : Signature<decltype(&F::operator())> {};
template <class R, class... A>
struct Signature<R (*)(A...)> {
  using Result = R;
  static constexpr std::size_t arity = sizeof...(A);
  static constexpr bool takes_vector = false;
};
template <class R>
struct Signature<R (*)(const std::vector<Tensor>&)> {
  using Result = R;
  static constexpr std::size_t arity = 0;
  static constexpr bool takes_vector = true;
};
template <class C, class R, class... A>
struct Signature<R (C::*)(A...) const> : Signature<R (*)(A...)> {};
template <class C, class R, class... A>
struct Signature<R (C::*)(A...)> : Signature<R (*)(A...)> {};

template <class F, std::size_t... I>
auto spread(const F& f, const std::vector<Tensor>& args, std::index_sequence<I...>) {
  return f(args[I]...);
}

template <class F>
ManyFunction erase(F f) {
  using S = Signature<F>;
  if constexpr (S::takes_vector) {
    return [f](const std::vector<Tensor>& args) { return pack(f(args)); };
  } else {
    return [f](const std::vector<Tensor>& args) {
      if (args.size() != S::arity)
        throw Error("a compiled function was called with another number of arguments");
      return pack(spread(f, args, std::make_index_sequence<S::arity>{}));
    };
  }
}

std::vector<Tensor> value_and_grad(const ManyFunction& f, const std::vector<int>& wrt,
                                   const std::vector<Tensor>& args, const Location& where);

}  // namespace detail

// A compiled function: call it like the original.
template <class R>
class Compiled {
 public:
  Compiled(detail::ManyFunction f, CompileOptions options)
      : core_(std::make_shared<detail::CompiledCore>(std::move(f), options)) {}

  template <class... T>
    requires(std::convertible_to<T, const Tensor&> && ...)
  R operator()(const detail::FirstArgument& first, const T&... others) const {
    return detail::Unpack<R>::from(core_->call({first.tensor, others...}, first.where));
  }
  R operator()(const std::vector<Tensor>& args, const Location& where = Location::current()) const {
    return detail::Unpack<R>::from(core_->call(args, where));
  }
  // Writes the results into tensors the caller has, of the right types; other handles of them see it. Not for
  // functions with graph breaks.
  void into(const std::vector<Tensor>& outputs, const std::vector<Tensor>& args,
            const Location& where = Location::current()) const {
    core_->call_into(outputs, args, where);
  }
  std::string explain() const { return core_->explain(); }
  std::vector<SpecialisationReport> report() const { return core_->report(); }

 private:
  std::shared_ptr<detail::CompiledCore> core_;
};

// f takes Tensors (or one std::vector<Tensor>) and returns a Tensor, a vector, a pair or a tuple of Tensors.
// It must be a pure function of its arguments: tensors it captures are read when it is traced, once per
// specialisation.
template <class F>
auto compile(F f, CompileOptions options = {}) {
  return Compiled<typename detail::Signature<F>::Result>(detail::erase(f), options);
}

// (value, gradients with respect to the arguments numbered in `wrt`) of a function whose first result is a
// scalar. May be called at once or inside compile().
template <class F>
auto value_and_grad(F f, std::vector<int> wrt = {0}) {
  return [many = detail::erase(f), wrt](const std::vector<Tensor>& args) -> std::vector<Tensor> {
    return detail::value_and_grad(many, wrt, args, Location::current());
  };
}

}  // namespace tilewright
