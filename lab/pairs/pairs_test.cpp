// Every pair, at sizes a test can afford, verified in full by the harness that also guards its figures.
#include "pairs/pairs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "harness/run/verify.h"
#include "pairs/attention_work.h"
#include "pairs/lab_device.h"
#include "pairs/tensor_pair.h"
#include "support/draws.h"

namespace tilewright::lab {
namespace {

// Each pair at the sizes that it has for tests.
std::vector<Job> tiny_jobs(const std::vector<Pair>& pairs) {
  Suite tiny{.name = "tiny"};
  for (const Pair& pair : pairs)
    for (const std::vector<std::string>& settings : pair.tiny) tiny.entries.push_back({pair.name, settings});
  return select_jobs(pairs, {&tiny, 1}, std::vector<std::string>{"tiny"}, {}, DeviceKind::cpu);
}

void expect_verified(const std::string& device_name) {
  OpenDevice open = open_lab_device({.device = device_name, .cache_directory = ""});
  const std::vector<Pair> pairs = all_pairs();
  std::map<std::string, std::uint64_t> sizes;  // of each pair
  for (const Job& job : tiny_jobs(pairs)) {
    if (!test::is_drawn(sizes[job.pair->name]++)) continue;
    SCOPED_TRACE(job.pair->name + " " + job.knobs.to_string());
    auto instance = job.pair->make(job.knobs, open.device);
    ASSERT_TRUE(instance.ok()) << instance.error().message;
    const std::vector<Verification> verified = verify(*instance, 1);
    for (std::size_t c = 0; c < verified.size(); ++c)
      EXPECT_TRUE(verified[c].verified) << instance->contenders[c].name << ": " << verified[c].reason;
  }
}

TEST(Pairs, DefaultsOfKnobsAreWhatTheKnobsTake) {
  for (const Pair& pair : all_pairs()) {
    for (const Knob& knob : pair.knobs) {
      std::vector<KnobValue> values = knob.values;
      values.insert(values.end(), knob.cuda_values.begin(), knob.cuda_values.end());
      for (const KnobValue& value : values) {
        const std::string text = to_string(value);
        if (text.empty()) continue;  // a text that is not given
        EXPECT_NO_THROW(parse_values(knob, text)) << pair.name << "." << knob.name << "=" << text;
      }
    }
  }
}

TEST(Pairs, EachHasSizesForTests) {
  for (const Pair& pair : all_pairs()) EXPECT_FALSE(pair.tiny.empty()) << pair.name;
}

TEST(Pairs, SuitesNamePairsAndKnobsThatExist) {
  const std::vector<Pair> pairs = all_pairs();
  const std::vector<Suite> suites = all_suites();
  for (const Suite& suite : suites) {
    const std::vector<std::string> names = {suite.name};
    EXPECT_GE(select_jobs(pairs, suites, names, {}, DeviceKind::cpu).size(), suite.entries.size());
    EXPECT_GE(select_jobs(pairs, suites, names, {}, DeviceKind::cuda).size(), suite.entries.size());
  }
}

TEST(Pairs, EachIsInASuite) {
  for (const Pair& pair : all_pairs()) EXPECT_FALSE(pair.suites.empty()) << pair.name;
}

TEST(Pairs, SayThemselvesWhichSuitesTheyAreIn) {
  const std::vector<Pair> pairs = {{.name = "one", .suites = {{"quick", {"n=1"}}, {"products"}}},
                                   {.name = "other", .suites = {{"quick"}}}};
  const std::vector<Suite> suites = suites_of(pairs);
  ASSERT_EQ(suites.at(0).name, "quick");
  ASSERT_EQ(suites[0].entries.size(), 2U);
  EXPECT_EQ(suites[0].entries[0].pair, "one");
  EXPECT_EQ(suites[0].entries[0].settings, (std::vector<std::string>{"n=1"}));
  EXPECT_EQ(suites[0].entries[1].pair, "other");
  EXPECT_EQ(suites.at(1).entries.size(), 1U);
}

// Whether the first job of `suite` is verified when the largest element of an output is `factor` times as
// large.
bool verified_when_off_by(const Suite& suite, double factor, std::size_t output = 0) {
  OpenDevice open = open_lab_device({.device = "reference", .cache_directory = ""});
  const std::vector<Pair> pairs = all_pairs();
  const std::vector<std::string> names = {suite.name};
  const Job job = select_jobs(pairs, {&suite, 1}, names, {}, DeviceKind::cpu).at(0);
  auto instance = job.pair->make(job.knobs, open.device).value();
  instance.contenders.resize(1);
  auto& read = instance.contenders[0].outputs[output].read;
  read = [right = OutputAccess{.poison = {}, .read = read}, factor](const ElementsVisitor& visit) -> Status {
    auto values = read_doubles(right);
    if (!values) return values.error();
    *std::max_element(values->begin(), values->end()) *= factor;
    visit({values->data(), DType::f64, 0, std::ssize(*values)});
    return Unit{};
  };
  return verify(instance, 1)[0].verified;
}

// Under a bound that took the size of what is summed for that of what is stored, 2 % would pass.
TEST(Pairs, AProductInBf16OffByAFewRoundingsIsNotVerified) {
  const Suite gemm = {"few", "", {{"gemm", {"shape=4x5x1000", "dtype=bf16"}}}};
  EXPECT_TRUE(verified_when_off_by(gemm, 1));
  EXPECT_FALSE(verified_when_off_by(gemm, 1.02));
}

TEST(Pairs, ChainsOfProductsInBf16OffByATenthAreNotVerified) {
  const Suite mlp = {"few", "", {{"swiglu_mlp", {"rows=4", "width=200", "hidden=300", "dtype=bf16"}}}};
  EXPECT_TRUE(verified_when_off_by(mlp, 1));
  EXPECT_FALSE(verified_when_off_by(mlp, 1.1));
  const Suite attention = {
      "few", "", {{"attention", {"heads=1", "queries=4", "keys=400", "depth=16", "dtype=bf16"}}}};
  EXPECT_TRUE(verified_when_off_by(attention, 1));
  EXPECT_FALSE(verified_when_off_by(attention, 1.1));
}

// dq and dk are sums of differences dp - D of stored values: their bound is wider.
TEST(Pairs, GradientsOfAttentionInBf16OffByATenthOrAQuarterAreNotVerified) {
  const Suite gradient = {
      "few", "", {{"attention_gradient", {"heads=1", "length=100", "depth=16", "dtype=bf16"}}}};
  EXPECT_TRUE(verified_when_off_by(gradient, 1));
  const double factors[] = {1.1, 1.25, 1.25, 1.1};  // of y, dq, dk, dv
  for (std::size_t output = 0; output < 4; ++output)
    EXPECT_FALSE(verified_when_off_by(gradient, factors[output], output)) << output;
}

TEST(Pairs, AGroupedProductInBf16OffByAFewRoundingsIsNotVerified) {
  for (const char* form : {"form=contiguous", "form=masked"}) {
    const Suite grouped = {
        "few", "", {{"grouped_gemm", {form, "groups=2", "rows=256", "n=5", "k=500", "dtype=bf16"}}}};
    EXPECT_TRUE(verified_when_off_by(grouped, 1));
    EXPECT_FALSE(verified_when_off_by(grouped, 1.02));
  }
}

// Quantised as the reference is, and the largest element off by a few roundings of bf16.
TEST(Pairs, ProductsOfATrainingIn8BitsOffByAFewRoundingsAreNotVerified) {
  for (const char* precision : {"precision=fp8", "precision=fp8-block", "precision=bf16"}) {
    const Suite products = {"few", "", {{"fp8_training_matmul", {"shape=20x24x300", precision}}}};
    EXPECT_TRUE(verified_when_off_by(products, 1));
    for (std::size_t output = 0; output < 3; ++output)
      EXPECT_FALSE(verified_when_off_by(products, 1.02, output)) << precision << " " << output;
  }
}

// The loss, a weight's gradient or its next value, and moments; of 8 bits a moment of gradients, too.
TEST(Pairs, StepsOfATrainingThatAreOffAreNotVerified) {
  const std::vector<std::string> sizes = {"rows=12", "width=8", "hidden=20", "layers=2"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), sizes.begin(), sizes.end());
    return more;
  };
  struct Case {
    Suite suite;
    std::size_t output;
    double factor;
  };
  const std::vector<Case> cases = {
      {{"few", "", {{"gradient_accumulation", with({"precision=f32", "parts=3"})}}}, 0, 1.0001},
      {{"few", "", {{"gradient_accumulation", with({"precision=f32", "parts=3"})}}}, 1, 1.0001},
      {{"few", "", {{"gradient_accumulation", with({"precision=bf16", "parts=3"})}}}, 2, 1.1},
      {{"few", "", {{"activation_checkpointing", with({"precision=bf16", "budget=1"})}}}, 3, 1.1},
      {{"few", "", {{"loss_scaling", with({"precision=f16"})}}}, 1, 1.02},
      {{"few", "", {{"loss_scaling", with({"precision=f16"})}}}, 5, 1.02},
      {{"few", "", {{"train_step_gpt2", {"model=tiny", "precision=f32"}}}}, 1, 1.0001},
      {{"few", "", {{"train_step_gpt2", {"model=tiny", "precision=bf16"}}}}, 1, 1.001},
      {{"few", "", {{"train_step_gpt2", {"model=tiny", "precision=fp8"}}}}, 30, 1.05}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.suite.entries[0].pair + " " + c.suite.entries[0].settings[0]);
    EXPECT_TRUE(verified_when_off_by(c.suite, 1, c.output));
    EXPECT_FALSE(verified_when_off_by(c.suite, c.factor, c.output)) << c.output;
  }
}

// PyTorch's autograd and optimizers agree with the references, and work in place without touching the inputs.
TEST(Pairs, StepsOfPyTorchAreVerified) {
  OpenDevice open = open_lab_device({.device = "reference", .cache_directory = ""});
  open.device.peers = open_peers({.without = {"torch.compile, pages kept", "torch, pages kept"}});
  const std::vector<std::string> stack = {"rows=12", "width=8", "hidden=20", "layers=2", "precision=f32"};
  const auto with = [&](const std::string& more) {
    std::vector<std::string> all = stack;
    all.push_back(more);
    return all;
  };
  const Suite steps = {"few",
                       "",
                       {{"train_step_gpt2", {"model=tiny", "precision=f32"}},
                        {"gradient_accumulation", with("parts=3")},
                        {"activation_checkpointing", with("budget=1")},
                        {"optimizer_step", {"n=100"}}}};
  const std::vector<Pair> pairs = all_pairs();
  const std::vector<std::string> names = {"few"};
  for (const Job& job : select_jobs(pairs, {&steps, 1}, names, {}, DeviceKind::cpu)) {
    SCOPED_TRACE(job.pair->name);
    auto instance = job.pair->make(job.knobs, open.device).value();
    const std::vector<Verification> verified = verify(instance, 1);
    int of_torch = 0;
    for (std::size_t c = 0; c < verified.size(); ++c) {
      const Contender& contender = instance.contenders[c];
      // Older ones have no fused optimizer on the CPU.
      if (contender.name == "torch fused AdamW" && !contender.unavailable.empty()) continue;
      EXPECT_EQ(contender.unavailable, "") << contender.name;
      EXPECT_TRUE(verified[c].verified) << contender.name << ": " << verified[c].reason;
      of_torch += contender.name.starts_with("torch") ? 1 : 0;
    }
    EXPECT_GT(of_torch, 0);
  }
}

// A query that sees one key too many, or one of another document, in a type of 8 bits of precision.
TEST(Pairs, AMaskOffByOneIsNotVerified) {
  OpenDevice open = open_lab_device({.device = "reference", .cache_directory = ""});
  const auto verified = [&](AttentionWork work, const std::function<void(AttentionMask&)>& change) {
    TensorWorkload w = attention_workload(work);
    change(work.mask);
    w.function = [work](const std::vector<Tensor>& in) {
      return std::vector{attention(in[0], in[1], in[2], {.mask = mask_function(work, in)})};
    };
    auto instance = make_instance(std::move(w), open.device).value();
    instance.contenders.erase(instance.contenders.begin());  // eager has a program of its own
    return verify(instance, 1).at(0).verified;
  };
  AttentionWork work;
  work.target = "attention";
  work.sizes = {.batch = 1, .heads = 1, .kv_heads = 1, .queries = 60, .keys = 60, .depth = 16};
  work.dtype = DType::bf16;
  work.mask.causal = true;
  work.mask.window = 20;
  EXPECT_TRUE(verified(work, [](AttentionMask&) {}));
  EXPECT_FALSE(verified(work, [](AttentionMask& m) { ++m.window; }));
  EXPECT_FALSE(verified(work, [](AttentionMask& m) { --m.window; }));
  work.mask.window = 0;
  work.mask.documents = random_documents(60, 3, 1);
  EXPECT_TRUE(verified(work, [](AttentionMask&) {}));
  EXPECT_FALSE(verified(work, [](AttentionMask& m) { m.documents.clear(); }));
  EXPECT_FALSE(verified(work, [](AttentionMask& m) { m.causal = false; }));
  work = {.target = "attention",
          .sizes = {.batch = 3, .heads = 4, .kv_heads = 2, .queries = 1, .keys = 40, .depth = 8},
          .mask = {.lengths = {40, 7, 23}}};
  EXPECT_TRUE(verified(work, [](AttentionMask&) {}));
  EXPECT_FALSE(verified(work, [](AttentionMask& m) { m = {.causal = true}; }));
}

// Past a budget the reference knows some blocks of queries, other ones for other data, and of these the same.
TEST(AttentionReference, OfLargeSizesKnowsBlocksDrawnFromTheData) {
  const AttentionSizes s = {.batch = 2, .heads = 4, .kv_heads = 2, .queries = 300, .keys = 300, .depth = 8};
  const std::vector<SeenKeys> seen = seen_keys(s, {.causal = true});
  const ErrorScale scale({.storage = DType::f32, .reduction = 308}, s.of_queries().size());
  ThreadPool pool(1);
  const auto some = [&](double offset, double share) {
    HostArrays in;
    for (const Shape& shape : {s.of_queries(), s.of_keys(), s.of_keys()}) {
      HostArray a(static_cast<std::size_t>(shape.size()));
      for (std::size_t i = 0; i < a.size(); ++i) a[i] = std::sin(0.37 * static_cast<double>(i) + offset);
      in.push_back(std::move(a));
    }
    return attention_reference(in, s, seen, scale, pool, share * attention_flops(s, seen))[0];
  };
  const Reference all = some(0, 1), half = some(0, 0.5), other = some(1, 0.5);
  EXPECT_TRUE(all.known.rows.empty());
  ASSERT_EQ(half.known.rows.size(), 2400u);
  EXPECT_NE(half.known.rows, other.known.rows);
  const auto known = std::count(half.known.rows.begin(), half.known.rows.end(), true);
  EXPECT_GT(known, 600);
  EXPECT_LT(known, 1800);
  EXPECT_TRUE(half.known.rows.front() && half.known.rows.back());
  for (std::size_t i = 0; i < all.values.size(); ++i) {
    const bool has = half.known.at(static_cast<Index>(i));
    ASSERT_EQ(half.values[i], has ? all.values[i] : 0) << i;
    ASSERT_EQ(half.magnitude[i], has ? all.magnitude[i] : 0) << i;
  }
}

TEST(Documents, AreOfRandomLengthsThatAddUp) {
  const std::vector<Index> ids = random_documents(1000, 12, 7);
  ASSERT_EQ(ids.size(), 1000u);
  EXPECT_EQ(ids.front(), 0);
  EXPECT_EQ(ids.back(), 11);
  EXPECT_TRUE(std::is_sorted(ids.begin(), ids.end()));
  EXPECT_EQ(std::set<Index>(ids.begin(), ids.end()).size(), 12u);
  EXPECT_EQ(ids, random_documents(1000, 12, 7));
  EXPECT_NE(ids, random_documents(1000, 12, 8));
  EXPECT_EQ(random_documents(3, 3, 1), (std::vector<Index>{0, 1, 2}));
  EXPECT_EQ(random_documents(1, 1, 1), (std::vector<Index>{0}));
}

TEST(Pairs, WithCompositesAreTimedDecomposedToo) {
  OpenDevice open = open_lab_device({.device = "cpu", .cache_directory = ""});
  const std::vector<Pair> pairs = all_pairs();
  std::set<std::string> decomposed;
  for (const Job& job : tiny_jobs(pairs)) {
    if (decomposed.contains(job.pair->name) || (job.pair->name != "softmax" && job.pair->name != "elu"))
      continue;
    const PairInstance instance = job.pair->make(job.knobs, open.device).value();
    for (const Contender& contender : instance.contenders)
      if (contender.name == "decomposed") decomposed.insert(job.pair->name);
  }
  EXPECT_EQ(decomposed, std::set<std::string>{"softmax"});
  // Max, subtract, exp, sum, divide: what the contender runs is no one kernel.
  const CompiledList by_parts =
      compile(TensorFunction([](const std::vector<Tensor>& in) { return std::vector{softmax(in[0])}; }),
              {.fuse = false});
  by_parts(std::vector{open.context->randn({4, 64})});
  EXPECT_GE(by_parts.report().at(0).kernels.size(), 5u);
}

TEST(Pairs, AllAreRightOnTheCpu) { expect_verified("cpu"); }

// --- the frame they share

TensorWorkload doubled() {
  TensorWorkload w{.target = "doubled", .shape = "100", .dtype = "f32"};
  w.inputs = {normal_input("x", Shape{100}, DType::f32)};
  w.outputs = {{"y", DType::f32, Shape{100}, {}}};
  w.cost = cost_of(w.inputs, w.outputs, 100);
  w.function = [](const std::vector<Tensor>& in) { return std::vector{in[0] + in[0]}; };
  w.reference = [](const HostArrays& in, ThreadPool&) {
    Reference y{in[0]};
    for (double& v : y.values) v *= 2;
    return std::vector{y};
  };
  return w;
}

class TensorPair : public testing::Test {
 protected:
  // The verification of contender `c` of `workload`.
  Verification verified(TensorWorkload workload, std::size_t c) {
    auto instance = make_instance(std::move(workload), open_.device);
    if (!instance) return {.reason = instance.error().message};
    return verify(*instance, 1).at(c);
  }
  OpenDevice open_ = open_lab_device({.device = "reference", .cache_directory = ""});
};

TEST_F(TensorPair, RightContendersAreVerified) {
  EXPECT_TRUE(verified(doubled(), 0).verified);
  EXPECT_TRUE(verified(doubled(), 1).verified);
}

TEST_F(TensorPair, AWrongProgramIsNot) {
  TensorWorkload w = doubled();
  w.function = [](const std::vector<Tensor>& in) { return std::vector{in[0] * 2.001}; };
  EXPECT_FALSE(verified(w, 0).verified);
  EXPECT_FALSE(verified(w, 1).verified);
}

TEST_F(TensorPair, AnEagerResultKeptFromTheLastCallIsNot) {
  TensorWorkload w = doubled();
  auto kept = std::make_shared<Tensor>();
  w.eager = [kept](const std::vector<Tensor>& in) {
    if (!kept->defined()) *kept = in[0] + in[0];
    return std::vector{*kept};
  };
  EXPECT_FALSE(verified(w, 0).verified);
}

TEST_F(TensorPair, AnEagerProgramThatReturnsItsInputIsNot) {
  TensorWorkload w = doubled();
  w.eager = [](const std::vector<Tensor>& in) { return in; };
  w.reference = [](const HostArrays& in, ThreadPool&) { return std::vector<Reference>{{in[0]}}; };
  EXPECT_FALSE(verified(w, 0).verified);
}

TEST_F(TensorPair, AKernelThatWritesHalfIsNot) {
  TensorWorkload w = doubled();
  w.tile = [](const LabDevice&) { return [](const std::vector<Tensor>&, const std::vector<Tensor>&) {}; };
  const Verification v = verified(w, 2);
  EXPECT_FALSE(v.verified);
  EXPECT_NE(v.reason.find("never written"), std::string::npos) << v.reason;
}

TEST_F(TensorPair, WhatThrowsIsReportedWithItsMessage) {
  TensorWorkload w = doubled();
  w.function = [](const std::vector<Tensor>& in) { return std::vector{matmul(in[0], sum(in[0]))}; };
  const Verification v = verified(w, 1);
  EXPECT_FALSE(v.verified);
  EXPECT_NE(v.reason.find("matmul"), std::string::npos) << v.reason;
}

TEST_F(TensorPair, InputsAreNewWithEachSeedAndTheSameWithTheSame) {
  auto instance = make_instance(doubled(), open_.device);
  ASSERT_TRUE(instance.ok());
  const auto digest_of = [&](std::uint64_t seed) {
    EXPECT_TRUE(instance->refresh_inputs(seed).ok());
    return *instance->input_digest();
  };
  const std::uint64_t first = digest_of(1), second = digest_of(2);
  EXPECT_NE(first, second);
  EXPECT_EQ(digest_of(1), first);
}

TEST(Inputs, SmallWorkStaysInTheCacheAndLargeWorkNeverFindsItsInputThere) {
  const double mib = 1 << 20, cache = 32 * mib;
  const auto of = [](Index elements) { return normal_input("x", Shape{elements}, DType::f32); };
  EXPECT_EQ(copies_for({of(1 << 10)}, 4096, cache), 2);
  EXPECT_EQ(copies_for({of(1 << 24)}, 64 * mib, cache), 1);  // 64 MiB already
  EXPECT_EQ(copies_for({of(1 << 22)}, 16 * mib, cache), 4);  // 16 MiB each
  EXPECT_EQ(copies_for({shared(of(1 << 22))}, 16 * mib, cache), 1);
}

}  // namespace
}  // namespace tilewright::lab
