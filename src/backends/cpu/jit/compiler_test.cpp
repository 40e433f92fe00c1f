// Text to callable code: what compiles, what is reported where, what loads and unloads.
#include <fmt/format.h>

#include <thread>

#include "backends/cpu/jit/device_headers.h"
#include "backends/cpu/testing.h"

namespace tilewright::cpu {
namespace {

using Unary = int(int);

CompileOptions host_options() { return testing::options_for(host_isa()); }

TEST(CompilerTest, TextBecomesCallable) {
  const auto add = testing::build<Unary>("extern \"C\" int f(int x) { return x + 41; }", "f", host_options());
  EXPECT_EQ(add.function(1), 42);
}

TEST(CompilerTest, EveryEffortGivesTheSameResult) {
  const std::string text =
      "template <int N> static inline int sum(const int* p) { int s = 0; for (int i = 0; i < N; ++i) s += "
      "p[i]; return s; }\n"
      "extern \"C\" int f(int x) { int v[37]; for (int i = 0; i < 37; ++i) v[i] = x * i; return sum<37>(v); "
      "}";
  for (const Effort effort : {Effort::none, Effort::kernel, Effort::full}) {
    auto options = host_options();
    options.effort = effort;
    EXPECT_EQ(testing::build<Unary>(text, "f", options).function(3), 3 * 36 * 37 / 2);
  }
}

TEST(CompilerTest, WhatWasPrecompiledIsNotReadAgain) {
  auto options = host_options();
  options.headers = {
      {"mine/answer.h", "#pragma once\ntemplate <int kTimes> int answer(int x) { return kTimes * x; }"}};
  const Precompiled precompiled = precompile("#define ONE 1\n#include \"mine/answer.h\"\n", options).value();
  options.precompiled = &precompiled;
  for (const char* include : {"", "#include \"mine/answer.h\"\n"}) {
    const std::string text =
        fmt::format("{}extern \"C\" int f(int x) {{ return answer<7>(x) + ONE; }}", include);
    EXPECT_EQ(testing::build<Unary>(text, "f", options).function(3), 22);
  }
  EXPECT_FALSE(compile_cpp("#include \"mine/answer.h\"\nint f() { return ONE; }", host_options()).ok());
}

TEST(CompilerTest, AnErrorOfWhatIsPrecompiledNamesItsLine) {
  const auto result = precompile("int a;\nint f() { return missing; }\n", host_options());
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().kind, Failure::Kind::compile);
  EXPECT_NE(result.error().message.find("precompiled.h:2:18: error:"), std::string::npos)
      << result.error().message;
}

TEST(CompilerTest, AnErrorNamesFileAndLine) {
  const auto result = compile_cpp("int a;\nint f() { return missing; }\n", host_options());
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().kind, Failure::Kind::compile);
  EXPECT_NE(result.error().message.find("kernel.cpp:2:18: error: use of undeclared identifier 'missing'"),
            std::string::npos)
      << result.error().message;
}

TEST(CompilerTest, AnErrorNamesTheLineThatALineDirectiveGives) {
  const auto result = compile_cpp("#line 120 \"model.cpp\"\nint f() { return missing; }\n", host_options());
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message.find("model.cpp:120:18: error:"), std::string::npos)
      << result.error().message;
}

TEST(CompilerTest, AnErrorOfTheCodeGeneratorIsReported) {
  const auto result =
      compile_cpp("extern \"C\" void f() { asm volatile(\"no_such_instruction\"); }", host_options());
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().kind, Failure::Kind::compile);
  EXPECT_NE(result.error().message.find("no_such_instruction"), std::string::npos) << result.error().message;
}

TEST(CompilerTest, IncludesComeFromMemoryOnly) {
  auto options = host_options();
  options.headers = {{"mine/answer.h", "constexpr int kAnswer = 42;"}};
  const std::string text = "#include \"mine/answer.h\"\nextern \"C\" int f(int) { return kAnswer; }";
  EXPECT_EQ(testing::build<Unary>(text, "f", options).function(0), 42);
  const auto system = compile_cpp("#include <stdio.h>\n", host_options());
  ASSERT_FALSE(system.ok());
  EXPECT_NE(system.error().message.find("'stdio.h' file not found"), std::string::npos);
}

TEST(CompilerTest, EachDeviceHeaderCompilesAloneOnEachInstructionSet) {
  for (const Isa isa : kAllIsas)
    for (const auto& header : device_headers()) {
      const auto result =
          compile_cpp(fmt::format("#include \"{}\"\n", header.name), testing::options_for(isa));
      EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().message);
    }
}

TEST(CompilerTest, ContractionHappensOnlyWhereAsked) {
  if (!host_runs(Isa::avx2)) GTEST_SKIP() << "needs FMA instructions";
  const std::string text =
      "extern \"C\" float f(float a, float b, float c) { float p = a * b; return p + c; }";
  const float a = 1 + 0x1p-12f;  // as one fma, 2^-24 would be left
  const auto f = testing::build<float(float, float, float)>(text, "f", host_options());
  EXPECT_EQ(f.function(a, a, -(1 + 0x1p-11f)), 0);
}

// LLVM 19 left out the mask of lanes where 0 / 0 was known.
TEST(CompilerTest, MaskedLanesOfADivisionStayMasked) {
  constexpr const char* kText = R"(
    typedef double vec __attribute__((ext_vector_type(16)));
    typedef long mask __attribute__((ext_vector_type(16)));
    typedef signed char bytes __attribute__((ext_vector_type(16)));
    extern "C" void f(const double* a, const double* b, const char* skip, double* out) {
      vec x = 0, y = 0;
      bytes s = 0;
      x[10] = *a, y[10] = *b, s[10] = *skip;
      mask only = 0;
      only[10] = -1;
      const vec q = (only & __builtin_convertvector(s == 0, mask)) != 0 ? x / y : (vec)0;
      for (int i = 0; i < 16; ++i) out[i] = q[i];
    })";
  for (const Isa isa : kAllIsas) {
    if (!host_runs(isa)) continue;
    const auto f = testing::build<void(const double*, const double*, const char*, double*)>(
        kText, "f", testing::options_for(isa));
    const double a = 3, b = 2;
    const char skip = 0;
    std::array<double, 16> out{}, expected{};
    expected[10] = 1.5;
    f.function(&a, &b, &skip, out.data());
    EXPECT_EQ(out, expected) << name(isa);
  }
}

TEST(CompilerTest, TwoThreadsCompileAtOnce) {
  const auto jit = Jit::create();
  std::vector<int> results(16);
  const auto work = [&](int first) {
    for (int i = first; i < static_cast<int>(results.size()); i += 2) {
      const auto text = fmt::format("extern \"C\" int f(int x) {{ return x * {}; }}", i);
      auto object = (*jit)->load(compile_cpp(text, host_options()).value());
      results[static_cast<std::size_t>(i)] = reinterpret_cast<Unary*>(object->symbol("f"))(10);
    }
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  for (int i = 0; i < static_cast<int>(results.size()); ++i)
    EXPECT_EQ(results[static_cast<std::size_t>(i)], 10 * i);
}

TEST(JitTest, ObjectsMayDefineTheSameNames) {
  const auto one = compile_cpp("extern \"C\" int f(int) { return 1; }", host_options()).value();
  const auto two = compile_cpp("extern \"C\" int f(int) { return 2; }", host_options()).value();
  const auto jit = Jit::create();
  const auto first = (*jit)->load(one), second = (*jit)->load(two);
  EXPECT_EQ(reinterpret_cast<Unary*>(first->symbol("f"))(0), 1);
  EXPECT_EQ(reinterpret_cast<Unary*>(second->symbol("f"))(0), 2);
}

TEST(JitTest, AnUnknownSymbolIsNull) {
  const auto f = testing::build<Unary>("extern \"C\" int f(int x) { return x; }", "f", host_options());
  EXPECT_EQ(f.object.symbol("g"), nullptr);
}

TEST(JitTest, TheProcessProvidesTheCLibrary) {
  const std::string text =
      "extern \"C\" double erf(double); extern \"C\" void* memset(void*, int, unsigned long);\n"
      "extern \"C\" double f(double x) { char c[64]; memset(c, 1, sizeof c); return erf(x) + c[63]; }";
  EXPECT_NEAR(testing::build<double(double)>(text, "f", host_options()).function(10.0), 2.0, 1e-15);
}

TEST(JitTest, AMissingDefinitionIsAFailureThatNamesIt) {
  const auto bytes =
      compile_cpp("extern \"C\" int nobody_has_this(); extern \"C\" int f() { return nobody_has_this(); }",
                  host_options())
          .value();
  const auto jit = Jit::create();
  const auto object = (*jit)->load(bytes);
  ASSERT_FALSE(object.ok());
  EXPECT_NE(object.error().message.find("nobody_has_this"), std::string::npos) << object.error().message;
  // The Jit goes on after a failure.
  const auto good = compile_cpp("extern \"C\" int f(int x) { return x; }", host_options()).value();
  EXPECT_TRUE((*jit)->load(good).ok());
}

TEST(JitTest, DamagedBytesAreAFailure) {
  const auto jit = Jit::create();
  EXPECT_FALSE((*jit)->load("this is no object").ok());
  auto bytes = compile_cpp("extern \"C\" int f(int x) { return x; }", host_options()).value();
  EXPECT_FALSE((*jit)->load(bytes.substr(0, bytes.size() / 2)).ok());
}

TEST(JitTest, AnObjectMayOutliveTheJit) {
  auto jit = Jit::create();
  const auto object =
      (*jit)->load(compile_cpp("extern \"C\" int f(int x) { return -x; }", host_options()).value());
  jit.value().reset();
  EXPECT_EQ(reinterpret_cast<Unary*>(object->symbol("f"))(5), -5);
}

TEST(JitTest, UnloadedObjectsGiveTheirMemoryBack) {
#ifdef __has_feature
#if __has_feature(address_sanitizer)
  GTEST_SKIP() << "the address sanitizer keeps freed memory for a while";
#endif
#endif
  const auto resident_pages = [] {
    long size = 0, resident = 0;
    FILE* file = fopen("/proc/self/statm", "r");
    EXPECT_EQ(fscanf(file, "%ld %ld", &size, &resident), 2);
    fclose(file);
    return size;
  };
  // 1 MiB of constants, so that a leak of the objects would show: 200 loads are 200 MiB.
  const auto bytes =
      compile_cpp("extern \"C\" { extern const int table[1 << 18] = {1}; int f(int x) { return table[x]; } }",
                  host_options())
          .value();
  const auto jit = Jit::create();
  for (int i = 0; i < 5; ++i) (void)(*jit)->load(bytes);
  const long before = resident_pages();
  for (int i = 0; i < 200; ++i) (void)(*jit)->load(bytes);
  EXPECT_LT(resident_pages() - before, 50 * 256) << "4 KiB pages";
}

TEST(IsaTest, TheHostRunsTheBaselineAndItsTargetSaysWhoseScheduling) {
  EXPECT_TRUE(host_runs(Isa::baseline));
  EXPECT_TRUE(host_runs(host_isa()));
  EXPECT_EQ(host_target(Isa::baseline).cpu, "x86-64");
  EXPECT_FALSE(host_target(host_isa()).tune.empty());
  EXPECT_EQ(host_target(Isa::avx2).vector_bytes, 32);
}

}  // namespace
}  // namespace tilewright::cpu
