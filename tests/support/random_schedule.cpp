// A kind, then each of its fields.
#include "support/random_schedule.h"

#include <initializer_list>
#include <random>

namespace tilewright::test {

namespace {

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : rng_(seed) {}

  tile::Schedule run() {
    tile::Schedule s;
    s.kind = kind();
    s.threads = of({64, 128, 128, 256, 256, 384});
    s.vector_bytes = of({4, 8, 16, 16});
    s.streaming_stores = flag();
    if (auto* elements = std::get_if<tile::ElementLoops>(&s.kind); elements && of({0, 0, 1}) == 1)
      elements->programs = s.threads / elements->threads_per_row;
    return s;
  }

 private:
  int of(std::initializer_list<int> values) { return values.begin()[rng_() % values.size()]; }
  bool flag() { return rng_() % 2 == 0; }
  int group_m() { return of({0, 2, 4, 8}); }
  int store_stages() { return of({0, 2, 3}); }

  tile::ScheduleKind kind() {
    switch (rng_() % 8) {
      case 0: {
        tile::ElementLoops k;
        k.threads_per_row = of({1, 4, 8, 32, 64, 128, 256}), k.cluster = of({1, 1, 2, 4}),
        k.stages = of({1, 1, 2});
        return k;
      }
      case 1: {
        tile::MmaDot k;
        k.stages = of({2, 3}), k.group_m = group_m();
        return k;
      }
      case 2: {
        tile::FmaBlocks k;
        k.threads_per_row = of({8, 16}), k.stages = of({2, 3}), k.group_m = group_m(),
        k.programs_per_sm = of({0, 2});
        return k;
      }
      case 3: {
        tile::MmaB2b k;
        k.stages = of({1, 2, 3}), k.group_m = group_m(), k.longest_first = flag();
        return k;
      }
      case 4: {
        tile::WgmmaDot k;
        k.stages = of({2, 3}), k.group_m = group_m(), k.store_stages = store_stages();
        return k;
      }
      case 5: {
        tile::WgmmaPingpong k;
        k.stages = of({2, 3}), k.group_m = group_m(), k.store_stages = store_stages();
        return k;
      }
      case 6: {
        tile::WgmmaB2b k;
        k.stages = of({2, 3}), k.group_m = group_m(), k.longest_first = flag();
        k.rounds = static_cast<tile::Rounds>(rng_() % 3), k.store_stages = store_stages();
        return k;
      }
      default: {
        tile::WgmmaScaled k;
        k.stages = of({2, 3}), k.group_m = group_m(), k.cluster = of({1, 2});
        return k;
      }
    }
  }

  std::mt19937_64 rng_;
};

}  // namespace

tile::Schedule random_schedule(std::uint64_t seed) { return Draw(seed).run(); }

}  // namespace tilewright::test
