// Headers read once: which, when, and that nothing else changes by it.
#include "backends/cpu/jit/kernel_compiler.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <thread>

namespace tilewright::cpu {
namespace {

CpuTarget target() { return host_target(host_isa()); }

std::string kernel(int number) {
  return fmt::format(
      "// kernel {0}\n#include \"tw_cpu/core.h\"\n#include \"tw_cpu/exp.h\"\n\nusing namespace tw;\n"
      "extern \"C\" void f(float* p) {{ *(vf32*)p = exp(*(const vf32*)p) * vf32({0}.f); }}\n",
      number);
}

TEST(BeginsWithDeviceHeader, OnlyCommentsMayComeBefore) {
  EXPECT_TRUE(begins_with_device_header(kernel(1)));
  EXPECT_TRUE(begins_with_device_header("\n#include \"tw_cpu/core.h\""));
  // What a text says before a header may change what the header declares.
  EXPECT_FALSE(begins_with_device_header("#define TW_LANES 4\n#include \"tw_cpu/core.h\"\n"));
  EXPECT_FALSE(begins_with_device_header("// continued \\\n#include \"tw_cpu/core.h\"\n"));
  EXPECT_FALSE(begins_with_device_header("/*\n#include \"tw_cpu/core.h\"\n*/"));
  EXPECT_FALSE(begins_with_device_header("extern \"C\" int f() { return 1; }\n"));
  EXPECT_FALSE(begins_with_device_header(""));
}

TEST(KernelCompilerTest, MachineCodeIsTheSameBeforeAndAfterHeadersArePrecompiled) {
  KernelCompiler compiler(target());
  for (int number = 1; number <= KernelCompiler::kPrecompileAt + 2; ++number) {
    EXPECT_TRUE(compiler.compile(kernel(number)).value() ==
                compile_cpp(kernel(number), {.target = target()}).value())
        << number;
    EXPECT_EQ(compiler.precompiled(), number >= KernelCompiler::kPrecompileAt);
  }
}

TEST(KernelCompilerTest, ErrorsReadAsInTheFirstKernel) {
  const std::string body = kernel(1) + "int g() { return missing; }\n",
                    header = "#include \"tw_cpu/core.h\"\n#include \"tw_cpu/nowhere.h\"\nint a;\n";
  KernelCompiler compiler(target());
  for (const std::string& wrong : {body, header}) {
    const std::string wanted = compile_cpp(wrong, {.target = target()}).error().message;
    for (int i = 0; i < KernelCompiler::kPrecompileAt + 1; ++i) {
      const auto result = compiler.compile(wrong);
      ASSERT_FALSE(result.ok());
      EXPECT_EQ(result.error().message, wanted);
    }
  }
  EXPECT_TRUE(compiler.precompiled());
}

TEST(KernelCompilerTest, ThreadsShareWhatIsPrecompiled) {
  KernelCompiler compiler(target());
  std::vector<std::string> objects(24);
  const auto work = [&](std::size_t first) {
    for (std::size_t i = first; i < objects.size(); i += 2)
      objects[i] = compiler.compile(kernel(static_cast<int>(i))).value();
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  for (std::size_t i = 0; i < objects.size(); ++i)
    EXPECT_TRUE(objects[i] == compile_cpp(kernel(static_cast<int>(i)), {.target = target()}).value()) << i;
  EXPECT_TRUE(compiler.precompiled());
}

TEST(KernelCompilerTest, TextsWithoutDeviceHeadersDoNotCount) {
  KernelCompiler compiler(target());
  for (int i = 0; i <= KernelCompiler::kPrecompileAt; ++i)
    (void)compiler.compile("extern \"C\" int f() { return 1; }").value();
  EXPECT_FALSE(compiler.precompiled());
}

}  // namespace
}  // namespace tilewright::cpu
