// Programs as text in files: another process computes the same bits by them, and mistakes are told with
// lines.
#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

#include <cstdlib>

#include "formats/files.h"
#include "support/errors.h"

namespace tilewright {
namespace {

using test::expect_says;

const ContextOptions kUncached{.device = "cpu", .cache_directory = ""};

struct Layer {
  Tensor weight, bias;
  TILEWRIGHT_FIELDS(weight, bias)
};
Tensor loss(const Layer& layer, const Tensor& x) {
  return mean(log_softmax(gelu(matmul(x, layer.weight) + layer.bias)) * x.sum(1, Keep::yes));
}

TEST(ProgramFiles, GiveTheSameBitsInAnotherProcess) {
  const test::Folder folder;
  Context ctx(kUncached);
  const Layer layer{ctx.randn({16, 8}), ctx.randn({8})};
  const Tensor x = ctx.randn({4, 16});
  const auto step = compile(value_and_grad([](const Layer& l, const Tensor& in) { return loss(l, in); }));
  const auto [value, gradient] = step(layer, x);
  save_program(folder.file("step.tw"), step.report().front());

  const std::vector<Tensor> arguments = {layer.weight, layer.bias, x};
  const Program program = load_program(folder.file("step.tw"));
  ASSERT_EQ(program.inputs().size(), arguments.size());
  for (std::size_t i = 0; i < arguments.size(); ++i)
    save_npy(folder.file(program.inputs()[i].name + ".npy"), arguments[i]);
  const std::string command = std::string("'") + TW_RUN_PROGRAM_FILE + "' '" + folder.file("") + "'";
  ASSERT_EQ(std::system(command.c_str()), 0);

  const std::vector<Tensor> results = {value, gradient.weight, gradient.bias};
  const std::vector<Tensor> here = program(arguments);
  ASSERT_EQ(here.size(), results.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Tensor there = load_npy(ctx, folder.file("result" + std::to_string(i) + ".npy"));
    EXPECT_EQ(there.to_vector<float>(), results[i].to_vector<float>()) << i;
    EXPECT_EQ(here[i].shape(), results[i].shape()) << i;
  }
}

TEST(ProgramFiles, AreFunctionsLikeOthers) {
  Context ctx(kUncached);
  const Program square("graph @square(%x: f32[3]) -> f32[3] { %1 = mul %x, %x : f32[3] return %1 }");
  EXPECT_EQ(Program(square.text()).text(), square.text());
  const Tensor x = ctx.from<float>({1, 2, 3}, {3});
  const std::vector<float> want = {2, 4, 6};
  EXPECT_EQ(grad([&](const Tensor& t) { return sum(square({t}).at(0)); })(x).to_vector<float>(), want);
  const auto more = compile([&](const Tensor& t) { return square({t}).at(0) + 1.f; });
  EXPECT_EQ(more(x).to_vector<float>(), (std::vector<float>{2, 5, 10}));
}

TEST(ProgramFiles, SayWhereTextsAreWrong) {
  const test::Folder folder;
  const std::string here = "(at program_test.cpp:";
  const auto refused = [&](const std::string& text, const std::string& why) {
    expect_says([&] { Program{text}; }, {"Program: ", why, here});
    folder.with("p.tw", text);
    expect_says([&] { load_program(folder.file("p.tw")); }, {"load_program: ", "p.tw: ", why, here});
  };
  refused("", "1:1");
  refused("graph @f(%x: f32[3]) -> f32[3] {\n  %1 = mull %x, %x : f32[3]\n  return %1\n}\n", "2:8");
  refused("graph @f(%x: f32[3]) -> f32[3] {\n  %1 = exp %x : f32[4]\n  return %1\n}\n", "2:");
  refused(
      "graph @f() -> f32[3] {\n  %1 = constant {dtype=f32, shape=[3], value=1.0} : f32[3]\n  return %1\n}\n",
      "graph @f has no inputs");
  expect_says([&] { load_program(folder.file("none.tw")); }, {"load_program: ", "none.tw: ", here});
}

TEST(ProgramFiles, SayWhatIsNotGivenToThem) {
  Context ctx(kUncached);
  const std::string here = "(at program_test.cpp:";
  const Program f("graph @f(%x: f32[3], %y: f32[3]) -> f32[3] { %1 = mul %x, %y : f32[3] return %1 }");
  expect_says([&] { f({ctx.ones({3})}); }, {"Program: 1 arguments given, graph @f takes 2", here});
  expect_says([&] { f({ctx.ones({3}), ctx.ones({4})}); },
              {"argument 1 is f32[4], %y of graph @f is f32[3]", here});
  expect_says([&] { f({ctx.ones({3}), Tensor()}); }, {"argument 1 was never given a value", here});
}

TEST(ProgramFiles, RefuseWhatNoTextSays) {
  const test::Folder folder;
  Context ctx(kUncached);
  const Tensor x = ctx.ones({3}), w = ctx.ones({3});
  const auto refused = [&](const auto& f, const std::string& why) {
    f(x);
    expect_says([&] { save_program(folder.file("p.tw"), f.report().front()); },
                {"save_program: ", "p.tw: ", why, "(at program_test.cpp:"});
  };
  refused(compile([&](const Tensor& t) { return t * w; }), "captures 1 tensor,");
  refused(compile([&](const Tensor& t) { return t * ctx.randn({3}); }), "draws random numbers");
  refused(compile([&](const Tensor& t) { return t * t.to_vector<float>()[0]; }), "graph breaks");
  EXPECT_EQ(folder.count(), 0U);
}

}  // namespace
}  // namespace tilewright
