// Trees: what functions of tensors take and give. A tree is a Tensor, a number or an enum, a list of trees
// (vector, array, pair, tuple), an optional tree, or a struct that names its members:
//
//   struct Layer {
//     Tensor weight;
//     std::optional<Tensor> bias;
//     TILEWRIGHT_FIELDS(weight, bias)
//   };
//
// Its tensors, in the order in which they stand, are its leaves. All else, the lengths of lists and the
// values of numbers, is its structure: compile() makes another program for another structure.
#pragma once

#include <tilewright/tensor/named_tensor.h>
#include <tilewright/tensor/tensor.h>

#include <array>
#include <bit>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

// Inside a struct: makes it a tree of these members, which must be all that it has, those of its bases among
// them. Of a class with a constructor of its own the compiler cannot count the members: one that is not named
// is as the default constructor leaves it wherever the library makes a copy.
#define TILEWRIGHT_FIELDS(...)                                     \
  auto tilewright_fields() { return std::tie(__VA_ARGS__); }       \
  auto tilewright_fields() const { return std::tie(__VA_ARGS__); } \
  auto tilewright_self() const { return this; }                    \
  static constexpr std::string_view tilewright_field_names() { return #__VA_ARGS__; }

#pragma GCC visibility push(default)
namespace tilewright {

namespace detail {

using Structure = std::vector<std::int64_t>;

// Where the tensors of a tree stand, as it is taken apart: members by name, elements of lists by place.
struct Paths {
  std::vector<std::string> tensors;  // "blocks.0.weight"
  std::string here = {};
  std::vector<std::size_t> ends = {};  // of the paths of what stands around
};
// A tree taken apart. Copies are made and dropped by functions of the library: a user's source is compiled
// sooner.
struct Leaves {
  Leaves();
  Leaves(std::vector<Tensor> its_tensors, Structure its_structure, Paths* its_paths = nullptr);
  Leaves(const Leaves&);
  Leaves(Leaves&&) noexcept;
  Leaves& operator=(const Leaves&);
  Leaves& operator=(Leaves&&) noexcept;
  ~Leaves();

  std::vector<Tensor> tensors;
  Structure structure;
  Paths* paths = nullptr;  // where they are wanted
};
// These are functions of the library: a user's source is compiled sooner.
void add_tensor(Leaves& to, const Tensor& t);
void add_number(Leaves& to, std::int64_t number);
// What is added between them is of the member whose name stands first in `names`, which is shortened by it,
// or of the element of this place.
void enter_member(Leaves& to, std::string_view& names);
void enter_element(Leaves& to, std::size_t place);
void leave(Leaves& to);

// Leaves and structure as they are read back, in the order in which they were written.
struct LeavesReader {
  const std::vector<Tensor>& tensors;
  const Structure& structure;
  std::size_t next_tensor = 0, next_number = 0;
  const Tensor& tensor() { return tensors.at(next_tensor++); }
  std::int64_t number() { return structure.at(next_number++); }
};

// How a type is taken apart and put together; kinds of trees specialise it.
template <class T>
struct Tree {
  static constexpr bool is_tree = false;
};
template <class T>
concept IsTree = Tree<std::remove_cvref_t<T>>::is_tree;

template <>
struct Tree<Tensor> {
  static constexpr bool is_tree = true;
  static void write(const Tensor& t, Leaves& to) { add_tensor(to, t); }
  static Tensor read(LeavesReader& from) { return from.tensor(); }
};

template <class T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>)
struct Tree<T> {
  static_assert(sizeof(T) <= sizeof(std::int64_t), "a long double is no part of a tree");
  static constexpr bool is_tree = true;
  static void write(T value, Leaves& to) {
    if constexpr (std::is_floating_point_v<T>)
      add_number(to, std::bit_cast<std::int64_t>(static_cast<double>(value)));
    else
      add_number(to, static_cast<std::int64_t>(value));
  }
  static T read(LeavesReader& from) {
    if constexpr (std::is_floating_point_v<T>)
      return static_cast<T>(std::bit_cast<double>(from.number()));
    else
      return static_cast<T>(from.number());
  }
};

template <class T>
  requires IsTree<T>
struct Tree<std::vector<T>> {
  static constexpr bool is_tree = true;
  static void write(const std::vector<T>& list, Leaves& to) {
    add_number(to, static_cast<std::int64_t>(list.size()));
    for (std::size_t i = 0; i < list.size(); ++i) {
      enter_element(to, i);
      Tree<T>::write(list[i], to);
      leave(to);
    }
  }
  static std::vector<T> read(LeavesReader& from) {
    std::vector<T> list;
    const auto size = static_cast<std::size_t>(from.number());
    list.reserve(size);
    while (list.size() < size) list.push_back(Tree<T>::read(from));
    return list;
  }
};

template <class T, std::size_t N>
  requires IsTree<T>
struct Tree<std::array<T, N>> {
  static constexpr bool is_tree = true;
  static void write(const std::array<T, N>& list, Leaves& to) {
    for (std::size_t i = 0; i < N; ++i) {
      enter_element(to, i);
      Tree<T>::write(list[i], to);
      leave(to);
    }
  }
  static std::array<T, N> read(LeavesReader& from) {
    std::array<T, N> list;
    for (T& each : list) each = Tree<T>::read(from);
    return list;
  }
};

template <class T>
  requires IsTree<T>
struct Tree<std::optional<T>> {
  static constexpr bool is_tree = true;
  static void write(const std::optional<T>& t, Leaves& to) {
    add_number(to, t.has_value() ? 1 : 0);
    if (t) Tree<T>::write(*t, to);
  }
  static std::optional<T> read(LeavesReader& from) {
    if (from.number() == 0) return std::nullopt;
    return Tree<T>::read(from);
  }
};

template <class A, class B>
  requires(IsTree<A> && IsTree<B>)
struct Tree<std::pair<A, B>> {
  static constexpr bool is_tree = true;
  static void write(const std::pair<A, B>& both, Leaves& to) {
    enter_element(to, 0);
    Tree<A>::write(both.first, to);
    leave(to);
    enter_element(to, 1);
    Tree<B>::write(both.second, to);
    leave(to);
  }
  // Braces keep the order.
  static std::pair<A, B> read(LeavesReader& from) { return {Tree<A>::read(from), Tree<B>::read(from)}; }
};

template <class... T>
  requires(IsTree<T> && ...)
struct Tree<std::tuple<T...>> {
  static constexpr bool is_tree = true;
  static void write(const std::tuple<T...>& members, Leaves& to) {
    std::size_t place = 0;
    std::apply(
        [&](const T&... each) { ((enter_element(to, place++), Tree<T>::write(each, to), leave(to)), ...); },
        members);
  }
  static std::tuple<T...> read(LeavesReader& from) { return std::tuple<T...>{Tree<T>::read(from)...}; }
};

// What may stand for a member of any type when the members of T are counted, and for none of its bases, whose
// members stand for themselves.
template <class T>
struct AnyMember {
  template <class M>
    requires(!std::is_base_of_v<M, T>)
  operator M() const {
    __builtin_unreachable();  // nobody calls it
  }
};
template <class T, class... Members>
constexpr std::size_t count_members() {
  if constexpr (requires { T{Members{}..., AnyMember<T>{}}; })
    return count_members<T, Members..., AnyMember<T>>();
  else
    return sizeof...(Members);
}
// The name that stands first in `names`, "weight, bias", which is shortened by it.
constexpr std::string_view first_name(std::string_view& names) {
  const std::size_t end = names.find(','), next = names.find_first_not_of(", ", end);
  const std::string_view name = names.substr(0, end);
  names = next == std::string_view::npos ? std::string_view() : names.substr(next);
  return name;
}
// How many different names stand in it.
constexpr std::size_t count_names(std::string_view names) {
  std::size_t count = 0;
  while (!names.empty()) {
    const std::string_view name = first_name(names);
    bool stands_again = false;
    for (std::string_view rest = names; !rest.empty();) stands_again |= first_name(rest) == name;
    count += stands_again ? 0 : 1;
  }
  return count;
}
template <class Members>
constexpr bool are_trees = false;
template <class... M>
constexpr bool are_trees<std::tuple<M&...>> = (IsTree<M> && ...);
template <class T>
concept IsMadeEmpty = requires { T{}; };
// Says in a sentence what is wrong with a struct.
template <class T>
constexpr bool check_fields() {
  static_assert(
      IsMadeEmpty<T>,
      "a class with constructors of its own needs a default constructor, that makes it without arguments, to "
      "be a tree: its members are set after that");
  static_assert(std::is_same_v<decltype(std::declval<const T&>().tilewright_self()), const T*>,
                "a struct that is derived from another needs TILEWRIGHT_FIELDS of its own, of all members");
  static_assert(
      are_trees<decltype(std::declval<T&>().tilewright_fields())>,
      "a member that TILEWRIGHT_FIELDS names is no tree: a tree is a Tensor, a number, a list or an "
      "optional of trees, or a struct with TILEWRIGHT_FIELDS; none is const");
  if constexpr (std::is_aggregate_v<T>)
    static_assert(count_members<T>() == count_names(T::tilewright_field_names()),
                  "TILEWRIGHT_FIELDS must name all members of its struct, each once");
  return true;
}
template <class T>
  requires requires { T::tilewright_field_names(); }
struct Tree<T> {
  static constexpr bool is_tree = true;
  // Not inlined into what is there of each function of such a tree: a source is compiled sooner.
  [[gnu::noinline]] static void write(const T& t, Leaves& to) {
    static_assert(check_fields<T>());
    std::string_view names = T::tilewright_field_names();
    std::apply(
        [&]<class... M>(const M&... each) {
          ((enter_member(to, names), Tree<M>::write(each, to), leave(to)), ...);
        },
        t.tilewright_fields());
  }
  [[gnu::noinline]] static T read(LeavesReader& from) {
    static_assert(check_fields<T>());
    if constexpr (IsMadeEmpty<T>) {  // else check_fields() has said so
      T out{};
      std::apply([&]<class... M>(M&... each) { ((each = Tree<M>::read(from)), ...); },
                 out.tilewright_fields());
      return out;
    }
  }
};

template <class T>
Leaves leaves_of(const T& tree) {
  Leaves leaves;
  Tree<T>::write(tree, leaves);
  return leaves;
}
template <class T>
T read_tree(const Leaves& leaves) {
  LeavesReader from{leaves.tensors, leaves.structure};
  return Tree<T>::read(from);
}
// Throws Error where another tree, the `number`-th, has another number of tensors.
void check_alike(const Leaves& leaves, const Leaves& other, std::size_t number, const Location& where);
// map_tensors(), with its line.
template <class F, class T, class... Others>
T mapped(const Location& where, const F& f, const T& tree, const Others&... others) {
  Leaves leaves = leaves_of(tree);
  const auto put = [&](const auto&... beside) {
    std::size_t number = 0;
    (check_alike(leaves, beside, ++number, where), ...);
    for (std::size_t i = 0; i < leaves.tensors.size(); ++i)
      leaves.tensors[i] = f(leaves.tensors[i], beside.tensors[i]...);
  };
  put(leaves_of(others)...);
  return read_tree<T>(leaves);
}
NamedTensors named(const Leaves& leaves);  // of leaves with paths
// The tensors of `named` in the order of `own`; throws Error where they are not the same names and types.
std::vector<Tensor> tensors_for(const NamedTensors& own, const NamedTensors& named, const Location& where);

}  // namespace detail

// The tensors of a tree, its leaves.
template <class T>
  requires detail::IsTree<T>
std::vector<Tensor> tensors_of(const T& tree) {
  return detail::leaves_of(tree).tensors;
}

// The tensors of a tree by name, in the order of its leaves: members by their names, elements of lists by
// their places: "blocks.0.weight".
template <class T>
  requires detail::IsTree<T>
NamedTensors named_tensors(const T& tree) {
  detail::Paths paths;
  detail::Leaves leaves{{}, {}, &paths};
  detail::Tree<T>::write(tree, leaves);
  return detail::named(leaves);
}

// The tree with tensors of these names, from a file, say, in the place of its own. Throws Error where names,
// shapes or element types are not the tree's (a Tensor of the tree without a value takes any): it lists what
// is missing, what is too many, and what differs.
template <class T>
  requires detail::IsTree<T>
T with_tensors(const T& tree, const NamedTensors& named, const Location& where = Location::current()) {
  detail::Leaves leaves = detail::leaves_of(tree);
  leaves.tensors = detail::tensors_for(named_tensors(tree), named, where);
  return detail::read_tree<T>(leaves);
}

// The tree with f(tensor, others…) in the place of each of its tensors; others are those in the same places
// of trees that have as many: map_tensors([&](auto w, auto g) { return w - rate * g; }, weights, gradient).
// Throws Error where one has another number of tensors. There are at most four others.
template <class F, class T>
  requires detail::IsTree<T>
T map_tensors(const F& f, const T& tree, const Location& where = Location::current()) {
  return detail::mapped(where, f, tree);
}
template <class F, class T, class A>
  requires(detail::IsTree<T> && detail::IsTree<A>)
T map_tensors(const F& f, const T& tree, const A& a, const Location& where = Location::current()) {
  return detail::mapped(where, f, tree, a);
}
template <class F, class T, class A, class B>
  requires(detail::IsTree<T> && detail::IsTree<A> && detail::IsTree<B>)
T map_tensors(const F& f, const T& tree, const A& a, const B& b,
              const Location& where = Location::current()) {
  return detail::mapped(where, f, tree, a, b);
}
template <class F, class T, class A, class B, class C>
  requires(detail::IsTree<T> && detail::IsTree<A> && detail::IsTree<B> && detail::IsTree<C>)
T map_tensors(const F& f, const T& tree, const A& a, const B& b, const C& c,
              const Location& where = Location::current()) {
  return detail::mapped(where, f, tree, a, b, c);
}
template <class F, class T, class A, class B, class C, class D>
  requires(detail::IsTree<T> && detail::IsTree<A> && detail::IsTree<B> && detail::IsTree<C> &&
           detail::IsTree<D>)
T map_tensors(const F& f, const T& tree, const A& a, const B& b, const C& c, const D& d,
              const Location& where = Location::current()) {
  return detail::mapped(where, f, tree, a, b, c, d);
}

}  // namespace tilewright
#pragma GCC visibility pop
