// A kind, then each of the fields that it lists.
#include "support/random_schedule.h"

#include <tilewright/base/error.h>

#include <cstddef>
#include <initializer_list>
#include <random>
#include <tuple>
#include <type_traits>
#include <variant>

namespace tilewright::test {

namespace {

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : rng_(seed) {}

  tile::Schedule run() {
    tile::Schedule s;
    s.kind = kind(1 + rng_() % (std::variant_size_v<tile::ScheduleKind> - 2));
    s.threads = of({64, 128, 128, 256, 256, 384});
    s.vector_bytes = of({4, 8, 16, 16});
    if (auto* elements = std::get_if<tile::ElementLoops>(&s.kind); elements && of({0, 0, 1}) == 1)
      elements->programs = s.threads / elements->threads_per_row;
    return s;
  }

 private:
  int of(std::initializer_list<int> values) { return values.begin()[rng_() % values.size()]; }
  bool flag() { return rng_() % 2 == 0; }

  // Kinds of CUDA: the first is the CPU's, the last is no kernel of ours.
  template <std::size_t kIndex = 1>
  tile::ScheduleKind kind(std::size_t chosen) {
    if constexpr (kIndex + 1 < std::variant_size_v<tile::ScheduleKind>) {
      if (chosen != kIndex) return kind<kIndex + 1>(chosen);
      using Kind = std::variant_alternative_t<kIndex, tile::ScheduleKind>;
      Kind k;
      std::apply([&](const auto&... field) { ((k.*field.member = value(k, field)), ...); }, Kind::fields());
      return k;
    }
    TW_CHECK(false, "a kind is drawn among those there are");
  }

  // A value of a field: what kernels are run with, where that is known, else the usual one and its
  // neighbours.
  template <class Kind, class T>
  T value(const Kind& usual, const tile::ScheduleField<Kind, T>& field) {
    if constexpr (std::is_same_v<T, bool>) {
      return flag();
    } else if constexpr (std::is_enum_v<T>) {
      return static_cast<T>(rng_() % 3);
    } else {
      constexpr bool kOfElements = std::is_same_v<Kind, tile::ElementLoops>;
      if (field.name == "stages")
        return kOfElements ? of({1, 1, 2}) : std::is_same_v<Kind, tile::MmaB2b> ? of({1, 2, 3}) : of({2, 3});
      if (field.name == "threads_per_row") return kOfElements ? of({1, 4, 8, 32, 64, 128, 256}) : of({8, 16});
      if (field.name == "cluster") return kOfElements ? of({1, 1, 2, 4}) : of({1, 2});
      if (field.name == "group_m") return of({0, 2, 4, 8});
      if (field.name == "store_stages") return of({0, 2, 3});
      if (field.name == "programs_per_sm") return of({0, 2});
      if (field.name == "programs") return 1;  // run()
      return usual.*field.member + of({0, 1, 2});
    }
  }

  std::mt19937_64 rng_;
};

}  // namespace

tile::Schedule random_schedule(std::uint64_t seed) { return Draw(seed).run(); }

}  // namespace tilewright::test
