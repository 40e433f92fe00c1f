// On tensor cores the small kernel also finds which blocks of keys a block of queries sees whole: these are
// walked without the mask, the others that are needed with it.
#include "backends/reference/interpreter.h"
#include "ops/attention.h"
#include "ops/functions.h"
#include "ops/ops.h"
#include "passes/pipeline.h"
#include "support/h200_target.h"
#include "support/random_numbers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <random>

namespace tilewright::test {
namespace {

using ir::Value;

constexpr Index kQueries = 600, kKeys = 1100, kDepth = 64, kBlock = 128;
constexpr Index kRowBlocks = ceil_div(kQueries, kBlock), kKeyBlocks = ceil_div(kKeys, kBlock);

struct BlockPlaces {
  Value query_id, key_id, query, key;
};
struct OnePlace {
  std::int64_t query_id, key_id, query, key;
};
// The same mask for the graph and for one query and one key.
struct Mask {
  std::function<Value(const BlockPlaces&)> graph;
  std::function<bool(const OnePlace&)> sees;
};

const Mask kSame{[](const BlockPlaces& p) { return ops::eq(p.query_id, p.key_id); },
                 [](const OnePlace& n) { return n.query_id == n.key_id; }};
const Mask kUntilQuery{[](const BlockPlaces& p) { return ops::le(p.key, p.query); },
                       [](const OnePlace& n) { return n.key <= n.query; }};
const Mask kWindow{[](const BlockPlaces& p) { return ops::le(p.query - p.key, 300); },
                   [](const OnePlace& n) { return n.query - n.key <= 300; }};
const Mask kPrefix{[](const BlockPlaces& p) { return ops::lt(p.key, 300); },
                   [](const OnePlace& n) { return n.key < 300; }};

Mask both(const Mask& a, const Mask& b) {
  return {[=](const BlockPlaces& p) { return ops::logical_and(a.graph(p), b.graph(p)); },
          [=](const OnePlace& n) { return a.sees(n) && b.sees(n); }};
}
Mask either(const Mask& a, const Mask& b) {
  return {[=](const BlockPlaces& p) { return ops::logical_or(a.graph(p), b.graph(p)); },
          [=](const OnePlace& n) { return a.sees(n) || b.sees(n); }};
}

struct Ids {
  std::vector<std::int64_t> queries, keys;
};
Ids ids_of(const std::function<std::int64_t(Index)>& query, const std::function<std::int64_t(Index)>& key) {
  Ids ids;
  for (Index i = 0; i < kQueries; ++i) ids.queries.push_back(query(i));
  for (Index i = 0; i < kKeys; ++i) ids.keys.push_back(key(i));
  return ids;
}
Ids ids_of(const std::function<std::int64_t(Index)>& id) { return ids_of(id, id); }

ir::Graph graph_of(const Mask& mask) {
  ir::Graph g("documents");
  const auto input = [&](const char* name, DType dtype, const Shape& shape) {
    return Value{&g, g.add_input(name, {dtype, shape})};
  };
  const Value q = input("q", DType::bf16, {1, 1, kQueries, kDepth}),
              k = input("k", DType::bf16, {1, 1, kKeys, kDepth}),
              v = input("v", DType::bf16, {1, 1, kKeys, kDepth}),
              of_queries = input("query_ids", DType::i64, {kQueries}),
              of_keys = input("key_ids", DType::i64, {kKeys});
  const Shape scores({1, 1, kQueries, kKeys});
  const auto all = [&](Value x, const Shape& shape) {
    return ops::broadcast_to(ops::reshape(x, shape), scores);
  };
  const Value sees = mask.graph({all(of_queries, {1, 1, kQueries, 1}), all(of_keys, {1, 1, 1, kKeys}),
                                 ops::iota(g, scores, 2), ops::iota(g, scores, 3)});
  g.set_outputs({ops::attend(ops::attention_scores(q, k, 0.125), v, {.mask = sees}).out.id});
  return g;
}

// One for each kind of block, of all that the programs of one head walk.
struct Kinds {
  Index skipped = 0, cut = 0, whole = 0;
  friend bool operator==(const Kinds&, const Kinds&) = default;
  friend void PrintTo(const Kinds& k, std::ostream* out) {
    *out << k.skipped << " skipped, " << k.cut << " cut, " << k.whole << " whole";
  }
};

enum Input : int { kInputQ, kInputK, kInputV, kInputQueryIds, kInputKeyIds };

class BlockBoundsOfEachKind : public testing::Test {
 protected:
  // Compiles for tensor cores; the kernels run on the interpreter: one that finds the blocks, one that walks
  // them, and where several programs share the keys of a row another that merges what they leave.
  enum class Keys : bool { whole, shared };
  void compile(const Mask& mask, Keys keys = Keys::whole) {
    mask_ = mask, keys_ = keys;
    tile::Target target = h200_target();
    target.units = keys == Keys::shared ? 64 : 1;
    if (keys == Keys::shared) target.launch_s = 1e-7;
    compiled_ = passes::run_pipeline(graph_of(mask), target);
    ASSERT_EQ(compiled_.plan.kernels.size(), keys == Keys::shared ? 3U : 2U);
    memory_.clear();
    std::mt19937_64 random{3};
    for (const tile::PlanBuffer& b : compiled_.plan.buffers) {
      memory_.emplace_back(static_cast<std::size_t>(b.elements) * size_bytes(b.dtype) / sizeof(Line) + 1);
      for (Index e = 0; b.dtype == DType::bf16 && e < b.elements; ++e)
        store_f64(at(memory_.size() - 1, e), b.dtype, test::random_between(random, -2, 2));
    }
    if (weights_.empty()) weigh();
  }

  // What the small kernel finds, against every query and key of each block.
  Kinds check_bounds(const Ids& ids) {
    ids_ = ids;
    Kinds kinds;
    set_ids(kInputQueryIds, ids.queries), set_ids(kInputKeyIds, ids.keys);
    run(0);
    for (Index row = 0; row < kRowBlocks; ++row) {
      const Bounds bounds = bounds_of(row);
      for (Index b = 0; b < kKeyBlocks; ++b) {
        const Kinds seen = kind_of(row, b);
        EXPECT_TRUE(bounds.walks(b) || seen.skipped == 1) << row << " " << b;
        EXPECT_TRUE(!bounds.walks_whole(b) || seen.whole == 1) << row << " " << b;
        ++(bounds.walks_whole(b) ? kinds.whole : bounds.walks(b) ? kinds.cut : kinds.skipped);
      }
    }
    return kinds;
  }

  // Values, too, against the definition, without the ids of keys that a block of queries sees whole.
  Kinds check(const Ids& ids) {
    const Kinds kinds = check_bounds(ids);
    for (Index row = 0; row < kRowBlocks; ++row) {
      const Bounds bounds = bounds_of(row);
      std::vector<std::int64_t> hidden = ids.keys;
      // The last round of a program has its mask in any case.
      for (Index k = 0; keys_ == Keys::whole && k / kBlock + 1 < bounds.end; ++k)
        if (bounds.walks_whole(k / kBlock)) hidden[static_cast<std::size_t>(k)] = kNobody;
      set_ids(kInputKeyIds, hidden);
      for (std::size_t step = 1; step < compiled_.plan.steps.size(); ++step) run(step);
      expect_rows(row);
    }
    return kinds;
  }

  // Checks that only needed blocks are walked, and that no mask is asked that leaves all.
  void expect_all_known(const Ids& ids) {
    const Kinds found = check(ids);
    Kinds kinds;
    for (Index row = 0; row < kRowBlocks; ++row)
      for (Index b = 0; b < kKeyBlocks; ++b) {
        const Kinds k = kind_of(row, b);
        kinds.skipped += k.skipped, kinds.cut += k.cut, kinds.whole += k.whole;
      }
    EXPECT_EQ(found, kinds);
  }

  static constexpr std::int64_t kNobody = -7;
  static constexpr Index kEvery = 37;  // queries that are looked at

 private:
  bool sees(Index q, Index k) const {
    return mask_.sees(
        {ids_.queries[static_cast<std::size_t>(q)], ids_.keys[static_cast<std::size_t>(k)], q, k});
  }

  Kinds kind_of(Index row, Index block) const {
    bool any = false, all = (block + 1) * kBlock <= kKeys;
    for (Index q = row * kBlock; q < std::min((row + 1) * kBlock, kQueries); ++q)
      for (Index k = block * kBlock; k < std::min((block + 1) * kBlock, kKeys); ++k) {
        any = any || sees(q, k);
        all = all && sees(q, k);
      }
    return {.skipped = any ? 0 : 1, .cut = any && !all ? 1 : 0, .whole = all ? 1 : 0};
  }

  void run(std::size_t step) {
    const tile::PlanStep& s = compiled_.plan.steps.at(step);
    std::vector<reference::ViewBinding> views;
    for (const tile::ViewBinding& v : s.views) {
      const DType dtype = compiled_.plan.buffers[static_cast<std::size_t>(v.buffer)].dtype;
      const std::vector<Line>& lines = memory_[static_cast<std::size_t>(v.buffer)];
      const Index offset = v.offset * static_cast<Index>(size_bytes(dtype));
      views.push_back({at(static_cast<std::size_t>(v.buffer), v.offset),
                       static_cast<Index>(lines.size() * sizeof(Line)) - offset, offset});
    }
    const tile::Kernel& kernel = compiled_.plan.kernels[static_cast<std::size_t>(s.kernel)];
    const Status done = reference::run(kernel, views, s.scalars);
    ASSERT_TRUE(done) << done.error().message;
  }

  // What the small kernel says of a block of rows.
  struct Bounds {
    Index first, end, whole_first, whole_end;
    bool walks(Index block) const { return first <= block && block < end; }
    bool walks_whole(Index block) const { return walks(block) && whole_first <= block && block < whole_end; }
  };
  Bounds bounds_of(Index row) {
    const std::size_t b = buffer(tile::PlanBuffer::Role::temporary, -1, DType::i64);
    const Index rows = compiled_.plan.buffers[b].elements / 4;  // or one for all of them
    const auto number = [&](Index kind) { return load_i64(at(b, kind * rows + row % rows), DType::i64); };
    return {number(0), number(1), number(2), number(3)};
  }

  // e^score of some queries and all keys: what masks leave of it is what weighs the values.
  void weigh() {
    for (Index q = 0; q < kQueries; q += kEvery)
      for (Index k = 0; k < kKeys; ++k) {
        double score = 0;
        for (Index d = 0; d < kDepth; ++d)
          score += value(kInputQ, q * kDepth + d) * value(kInputK, k * kDepth + d);
        weights_.push_back(std::exp(score / 8));
      }
  }

  void expect_rows(Index row) {
    const std::size_t out = buffer(tile::PlanBuffer::Role::output, 0);
    for (Index q = round_up(row * kBlock, kEvery); q < std::min((row + 1) * kBlock, kQueries); q += kEvery) {
      double total = 0;
      std::map<Index, double> want;
      for (Index k = 0; k < kKeys; ++k) {
        if (!sees(q, k)) continue;
        const double weight = weights_[static_cast<std::size_t>(q / kEvery * kKeys + k)];
        total += weight;
        for (Index d = 0; d < kDepth; d += 13) want[d] += weight * value(kInputV, k * kDepth + d);
      }
      for (Index d = 0; d < kDepth; d += 13) {
        const double got = load_f64(at(out, q * kDepth + d), DType::f32),
                     mean = total > 0 ? want[d] / total : 0;
        ASSERT_LE(std::abs(got - mean), 0.01 * (1 + std::abs(mean))) << "query " << q << ", " << d;
      }
    }
  }

  void set_ids(Input input, const std::vector<std::int64_t>& ids) {
    for (std::size_t i = 0; i < ids.size(); ++i)
      store_i64(at(buffer(tile::PlanBuffer::Role::input, input), static_cast<Index>(i)), DType::i64, ids[i]);
  }
  double value(Input input, Index element) {
    return load_f64(at(buffer(tile::PlanBuffer::Role::input, input), element), DType::bf16);
  }
  std::size_t buffer(tile::PlanBuffer::Role role, int position, std::optional<DType> dtype = {}) const {
    const std::vector<tile::PlanBuffer>& all = compiled_.plan.buffers;
    const auto found = std::find_if(all.begin(), all.end(), [&](const tile::PlanBuffer& b) {
      return b.role == role && b.position == position && (!dtype || b.dtype == *dtype);
    });
    return static_cast<std::size_t>(found - all.begin());
  }
  char* at(std::size_t buffer, Index element) {
    const DType dtype = compiled_.plan.buffers[buffer].dtype;
    return memory_[buffer].data()->bytes.data() + element * static_cast<Index>(size_bytes(dtype));
  }

  Mask mask_;
  Keys keys_ = Keys::whole;
  Ids ids_;
  std::vector<double> weights_;
  passes::Compiled compiled_;
  struct alignas(256) Line {  // as views are aligned
    std::array<char, 256> bytes;
  };
  std::vector<std::vector<Line>> memory_;  // of each of the plan's buffers
};

std::function<std::int64_t(Index)> documents_of(Index length) {
  return [length](Index i) { return i / length; };
}

// Every block that is seen whole is known to be, whether or not documents begin where blocks do.
TEST_F(BlockBoundsOfEachKind, DocumentsOneAfterAnother) {
  compile(kSame);
  for (Index length : {kBlock, 2 * kBlock, Index{200}, Index{450}, Index{30}}) {
    SCOPED_TRACE(length);
    expect_all_known(ids_of(documents_of(length)));
  }
  EXPECT_EQ(check(ids_of(documents_of(384))), (Kinds{.skipped = 30, .cut = 0, .whole = 15}));
}

TEST_F(BlockBoundsOfEachKind, OneDocumentAndNone) {
  compile(kSame);
  EXPECT_EQ(check(ids_of([](Index) { return 4; })), (Kinds{.skipped = 0, .cut = 5, .whole = 40}));
  EXPECT_EQ(check(ids_of([](Index) { return 1; }, [](Index) { return 2; })), (Kinds{.skipped = 45}));
  // Documents without keys, and without queries.
  expect_all_known(ids_of([](Index i) { return i / 256 * 2; }, [](Index i) { return i / 256; }));
}

TEST_F(BlockBoundsOfEachKind, DocumentsUnderOtherMasks) {
  for (const Mask& other : {kUntilQuery, kWindow, both(kUntilQuery, kWindow)}) {
    compile(both(kSame, other));
    for (Index length : {kBlock, Index{256}, Index{500}, kKeys})
      expect_all_known(ids_of(documents_of(length)));
  }
}

TEST_F(BlockBoundsOfEachKind, ProgramsThatShareTheKeys) {
  compile(kSame, Keys::shared);
  expect_all_known(ids_of(documents_of(450)));
  EXPECT_EQ(check(ids_of([](Index) { return 4; })), (Kinds{.skipped = 0, .cut = 5, .whole = 40}));
}

// What lies between the ends is walked, and of several runs of whole blocks the last one without the mask.
TEST_F(BlockBoundsOfEachKind, IdsInAnyOrder) {
  compile(kSame);
  std::mt19937 random{7};
  const auto scattered = [&](Index) { return static_cast<std::int64_t>(random() % 3); };
  EXPECT_EQ(check(ids_of(scattered)).whole, 0);
  const auto in_turns = [](Index i) { return i / 256 % 2; };
  EXPECT_EQ(check(ids_of(in_turns)), (Kinds{.skipped = 6, .cut = 29, .whole = 10}));
  const auto back = [](Index i) { return 9 - i / 256; };
  expect_all_known(ids_of(back));
  compile(either(kSame, kPrefix));
  EXPECT_EQ(check(ids_of(documents_of(500))), (Kinds{.skipped = 17, .cut = 14, .whole = 14}));
}

// Comparisons of vectors by their ends, in both directions, and under "not".
TEST_F(BlockBoundsOfEachKind, ComparisonsOfVectors) {
  const std::vector<Mask> masks = {
      {[](const BlockPlaces& p) { return ops::lt(p.key, p.query_id); },
       [](const OnePlace& n) { return n.key < n.query_id; }},
      {[](const BlockPlaces& p) { return ops::ge(p.query_id, p.key_id); },
       [](const OnePlace& n) { return n.query_id >= n.key_id; }},
      {[](const BlockPlaces& p) { return ops::logical_not(ops::lt(p.key_id, p.query_id)); },
       [](const OnePlace& n) { return n.key_id >= n.query_id; }},
      {[](const BlockPlaces& p) { return ops::logical_not(ops::ne(p.key_id * 1, p.query_id)); },
       [](const OnePlace& n) { return n.key_id == n.query_id; }},
      {[](const BlockPlaces& p) { return ops::ge(p.key_id, 300); },
       [](const OnePlace& n) { return n.key_id >= 300; }}};
  for (const Mask& mask : masks) {
    compile(mask);
    expect_all_known(ids_of([](Index i) { return i; }));
    expect_all_known(ids_of([](Index i) { return 700 - 2 * i; }));
    expect_all_known(ids_of([](Index i) { return i / 100 * 100; }));
  }
}

// No conclusion is drawn from sums that may wrap around; what is compared as it is may be anything.
TEST_F(BlockBoundsOfEachKind, LargeIntegers) {
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min(),
                         kMost = std::numeric_limits<std::int64_t>::max();
  const auto plus = [](std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  };
  const std::vector<Mask> masks = {
      kSame,
      {[](const BlockPlaces& p) { return ops::le(p.key_id, p.query_id); },
       [](const OnePlace& n) { return n.key_id <= n.query_id; }},
      {[](const BlockPlaces& p) { return ops::lt(p.query_id, p.key_id); },
       [](const OnePlace& n) { return n.query_id < n.key_id; }},
      {[](const BlockPlaces& p) { return ops::le(p.key_id + 5, p.query_id); },
       [=](const OnePlace& n) { return plus(n.key_id, 5) <= n.query_id; }},
      {[](const BlockPlaces& p) { return ops::le(p.key_id, p.query_id + p.query); },
       [=](const OnePlace& n) { return n.key_id <= plus(n.query_id, n.query); }},
      {[](const BlockPlaces& p) { return ops::le(p.key_id, p.query_id - p.query); },
       [=](const OnePlace& n) { return n.key_id <= plus(n.query_id, -n.query); }},
      {[](const BlockPlaces& p) { return ops::ge(p.key_id - p.query_id, 0); },
       [=](const OnePlace& n) { return plus(n.key_id, plus(~n.query_id, 1)) >= 0; }}};
  for (const Mask& mask : masks) {
    SCOPED_TRACE(&mask - masks.data());
    compile(mask);
    for (const std::int64_t end : {kLeast, kMost - 2})
      for (const std::int64_t other : {kLeast + 1, std::int64_t{0}, kMost}) {
        check_bounds(ids_of([=](Index i) { return i < 300 ? end : other; },
                            [=](Index i) { return i < 500 ? end : other; }));
        check_bounds(ids_of([=](Index) { return other; }, [=](Index) { return end; }));
      }
  }
}

}  // namespace
}  // namespace tilewright::test
