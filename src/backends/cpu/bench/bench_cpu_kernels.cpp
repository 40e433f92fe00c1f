// bench_cpu_kernels [--isa avx512|avx2|baseline] [--threads N] [--show] [--compiles N] [--unroll N]
// [NAME …]: hand-written tile kernels
// on this machine: bytes that must move per second, best schedule of a few, and what compiling cost. A
// microbenchmark for whoever changes the printer; the lab measures with confidence intervals.
#include "backends/cpu/cpu_backend.h"

#include <tilewright/tile/builder.h>
#include <tilewright/tile/cost.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>

using namespace tilewright;
using namespace tilewright::tile;

namespace {

struct Case {
  std::string name;
  Kernel kernel;
  double bytes;  // per launch, that must move
  double flops = 0;
};

Kernel pointwise(const std::string& name, Index n, Index block, const std::function<Value(Value)>& f) {
  Builder k(name);
  auto x = k.view("x", DType::f32, {n}, {.align_bytes = 256}),
       y = k.view("y", DType::f32, {n}, {.align_bytes = 256});
  Value start = k.program_id(0) * block;
  k.store(y, {start}, f(k.load(x, {start}, {.shape = {block}})));
  return k.finish({{{n, block}}});
}

Kernel softmax(Index rows, Index columns) {
  Builder k("softmax");
  auto x = k.view("x", DType::f32, {rows, columns}), y = k.view("y", DType::f32, {rows, columns});
  Value r = k.program_id(0);
  Value t = k.load(x, {r, 0}, {.shape = {columns}});
  Value e = exp(t - k.reduce(Monoid::max, t, 0));
  k.store(y, {r, 0}, e * (1.f / k.reduce(Monoid::sum, e, 0)));
  return k.finish({{{rows, 1}}});
}

Kernel layernorm_gelu(Index rows, Index columns) {
  Builder k("layernorm_gelu");
  auto x = k.view("x", DType::f32, {rows, columns}), y = k.view("y", DType::f32, {rows, columns});
  auto gamma = k.view("gamma", DType::f32, {columns}), beta = k.view("beta", DType::f32, {columns});
  Value r = k.program_id(0);
  Value t = k.load(x, {r, 0}, {.shape = {columns}});
  const float scale = 1.f / static_cast<float>(columns);
  Value mean = k.reduce(Monoid::sum, t, 0) * scale;
  Value centred = t - mean;
  Value inverse = rsqrt(k.reduce(Monoid::sum, centred * centred, 0) * scale + 1e-5f);
  Value h =
      centred * inverse * k.load(gamma, {0}, {.shape = {columns}}) + k.load(beta, {0}, {.shape = {columns}});
  Value inner = (h + h * h * h * 0.044715f) * 0.7978845608f;
  k.store(y, {r, 0}, h * 0.5f * (tanh(inner) + 1.f));
  return k.finish({{{rows, 1}}});
}

Kernel add_rmsnorm(Index rows, Index columns) {
  Builder k("add_rmsnorm");
  auto x = k.view("x", DType::f32, {rows, columns}), res = k.view("residual", DType::f32, {rows, columns});
  auto y = k.view("y", DType::f32, {rows, columns}), out = k.view("sum", DType::f32, {rows, columns});
  auto gamma = k.view("gamma", DType::f32, {columns});
  Value r = k.program_id(0);
  Value t = k.load(x, {r, 0}, {.shape = {columns}}) + k.load(res, {r, 0}, {.shape = {columns}});
  k.store(out, {r, 0}, t);
  Value inverse = rsqrt(k.reduce(Monoid::sum, t * t, 0) * (1.f / static_cast<float>(columns)) + 1e-5f);
  k.store(y, {r, 0}, t * inverse * k.load(gamma, {0}, {.shape = {columns}}));
  return k.finish({{{rows, 1}}});
}

Kernel row_sum(Index rows, Index columns) {
  Builder k("row_sum");
  auto x = k.view("x", DType::f32, {rows, columns}), y = k.view("y", DType::f32, {rows});
  Value r = k.program_id(0);
  k.store(y, {r}, k.reduce(Monoid::sum, k.load(x, {r, 0}, {.shape = {columns}}), 0));
  return k.finish({{{rows, 1}}});
}

Kernel column_sum(Index rows, Index columns, Index block) {
  Builder k("column_sum");
  auto x = k.view("x", DType::f32, {rows, columns}), y = k.view("y", DType::f32, {rows / block, columns});
  Value p = k.program_id(0);
  k.store(y, {p, 0}, k.reduce(Monoid::sum, k.load(x, {p * block, 0}, {.shape = {block, columns}}), 0));
  return k.finish({{{rows, block}}});
}

Kernel transpose(Index n, Index block) {
  Builder k("transpose");
  auto x = k.view("x", DType::f32, {n, n}), y = k.view("y", DType::f32, {n, n});
  Value i = k.program_id(0) * block, j = k.program_id(1) * block;
  k.store(y, {j, i}, k.transpose(k.load(x, {i, j}, {.shape = {block, block}})));
  return k.finish({{{n, block}}, {{n, block}}});
}

// The transposed view: y[i, j] = x[j, i].
Kernel transpose_view(Index n, Index block) {
  Builder k("transpose_view");
  auto x = k.view("x", DType::f32, {n, n}, {.strides = {{1, -1}, {n, -1}}}),
       y = k.view("y", DType::f32, {n, n});
  Value i = k.program_id(0) * block, j = k.program_id(1) * block;
  k.store(y, {i, j}, k.load(x, {i, j}, {.shape = {block, block}}));
  return k.finish({{{n, block}}, {{n, block}}});
}

Kernel matmul(Index n, Index block) {
  Builder k("matmul");
  auto a = k.view("a", DType::f32, {n, n}), b = k.view("b", DType::f32, {n, n}),
       c = k.view("c", DType::f32, {n, n});
  Value i = k.program_id(0) * block, j = k.program_id(1) * block;
  auto acc =
      k.loop(0, n, block, {k.literal(DType::f32, 0, {block, block})}, [&](Value p, const auto& carried) {
        return std::vector{k.dot(k.load(a, {i, p}, {.shape = {block, block}}),
                                 k.load(b, {p, j}, {.shape = {block, block}}), carried[0])};
      });
  k.store(c, {i, j}, acc[0]);
  return k.finish({{{n, block}}, {{n, block}}});
}

Value sincos10(Value x) {
  for (int i = 0; i < 5; ++i) x = cos(sin(x));
  return x;
}

std::vector<Case> cases() {
  const Index n = 1 << 24;
  const double mb = 4e-6 * 1e6;
  const auto elu = [](Value t) { return where(t > 0.f, t, exp(t) - 1.f); };
  std::vector<Case> all;
  all.push_back({"copy", pointwise("copy", n, 4096, [](Value t) { return t; }), 2 * mb * n});
  all.push_back({"elu", pointwise("elu", n, 4096, elu), 2 * mb * n});
  all.push_back({"sincos10", pointwise("sincos10", 1 << 20, 4096, sincos10), 2 * mb * (1 << 20)});
  all.push_back({"softmax_1024", softmax(4096, 1024), 2 * mb * 4096 * 1024});
  all.push_back({"softmax_8192", softmax(4096, 8192), 2 * mb * 4096 * 8192});
  all.push_back({"layernorm_gelu", layernorm_gelu(8192, 1024), 2 * mb * 8192 * 1024});
  all.push_back({"add_rmsnorm", add_rmsnorm(4096, 4096), 4 * mb * 4096 * 4096});
  all.push_back({"row_sum", row_sum(4096, 8192), mb * 4096 * 8192});
  all.push_back({"column_sum", column_sum(8192, 4096, 64), mb * 8192 * 4096});
  all.push_back({"transpose", transpose(4096, 64), 2 * mb * 4096 * 4096});
  all.push_back({"transpose_view", transpose_view(4096, 64), 2 * mb * 4096 * 4096});
  all.push_back({"matmul_64", matmul(1024, 64), 3 * mb * 1024 * 1024, 2.0 * 1024 * 1024 * 1024});
  all.push_back({"matmul_128", matmul(1024, 128), 3 * mb * 1024 * 1024, 2.0 * 1024 * 1024 * 1024});
  // In cache: what the arithmetic alone takes.
  const Index small = 1 << 15;
  all.push_back({"copy_cached", pointwise("copy", small, 4096, [](Value t) { return t; }), 2 * mb * small});
  all.push_back({"elu_cached", pointwise("elu", small, 4096, elu), 2 * mb * small});
  all.push_back({"sincos10_cached", pointwise("sincos10", small, 4096, sincos10), 2 * mb * small});
  all.push_back({"softmax_cached", softmax(32, 1024), 2 * mb * small});
  all.push_back({"layernorm_gelu_cached", layernorm_gelu(32, 1024), 2 * mb * small});
  all.push_back({"row_sum_cached", row_sum(32, 1024), mb * small});
  all.push_back({"column_sum_cached", column_sum(64, 512, 64), mb * small});
  all.push_back({"transpose_cached", transpose(128, 64), 2 * mb * 128 * 128});
  all.push_back({"transpose_view_cached", transpose_view(128, 64), 2 * mb * 128 * 128});
  return all;
}

double now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

struct Buffers {
  std::vector<void*> views;
};

Buffers make_buffers(backends::Backend& backend, const Kernel& kernel) {
  Buffers b;
  for (const ViewParam& v : kernel.views) {
    Index elements = 1;
    for (const Dim& d : v.extents) elements *= d.value;
    const auto bytes = static_cast<std::size_t>(elements) * size_bytes(v.dtype);
    void* memory = backend.allocate(bytes).value();
    auto* f = static_cast<float*>(memory);
    for (std::size_t i = 0; i < bytes / 4; ++i)
      f[i] = static_cast<float>((i * 2654435761u >> 8) & 0xffff) / 16384.f - 2.f;
    b.views.push_back(memory);
  }
  return b;
}

void release_buffers(backends::Backend& backend, const Kernel& kernel, const Buffers& buffers) {
  for (std::size_t i = 0; i < kernel.views.size(); ++i) {
    Index elements = 1;
    for (const Dim& d : kernel.views[i].extents) elements *= d.value;
    backend.release(buffers.views[i], static_cast<std::size_t>(elements) * size_bytes(kernel.views[i].dtype));
  }
}

// Only prints and compiles, for profiling that.
void compile_often(backends::Backend& backend, const Case& c, int times) {
  double total_ms = 0, print_ms = 0;
  for (int i = 0; i < times; ++i) {
    const double start = now_us();
    auto source = backend.print(c.kernel, {.kind = tile::CpuLoops{.unroll = 4}});
    print_ms += 1e-3 * (now_us() - start);
    total_ms += backend.compile(c.kernel, *source)->compile_ms;
  }
  fmt::print("{:16} print {:6.2f} ms, compile {:6.2f} ms\n", c.name, print_ms / times, total_ms / times);
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

struct Loaded {
  Schedule schedule;
  std::unique_ptr<backends::Program> program;
  double compile_ms = 0;
  std::vector<double> us;
};

std::vector<Loaded> load_all(backends::Backend& backend, const Case& c, const std::vector<int>& unrolls,
                             bool show) {
  std::vector<Loaded> all;
  for (const bool streaming : {false, true})
    for (const int unroll : unrolls) {
      Loaded l{.schedule = {.kind = tile::CpuLoops{.unroll = unroll, .streaming_stores = streaming}}};
      auto source = backend.print(c.kernel, l.schedule);
      if (!source) throw Error(source.error().message);
      if (show) fmt::print("{}\n", source->text);
      auto binary = backend.compile(c.kernel, *source);
      if (!binary) throw Error(binary.error().message + source->text);
      l.compile_ms = binary->compile_ms;
      for (int i = 0; i < 4; ++i)
        l.compile_ms = std::min(l.compile_ms, backend.compile(c.kernel, *source)->compile_ms);
      l.program = backend.load(c.kernel, *source, *binary).value();
      all.push_back(std::move(l));
    }
  return all;
}

double run_us(Loaded& l, const Kernel& kernel, const Buffers& buffers) {
  backends::LaunchArgs args{.views = buffers.views.data()};
  const std::vector<Index> grid = grid_extents(kernel, {});
  std::copy(grid.begin(), grid.end(), args.grid);
  const double start = now_us();
  (void)l.program->launch(args);
  return now_us() - start;
}

// All schedules and, as the ceiling of this moment, a streaming copy, in turns.
void measure(backends::Backend& backend, const Case& c, const std::vector<int>& unrolls, bool show) {
  const Case copy{"copy", pointwise("copy", 1 << 24, 4096, [](Value t) { return t; }), 8.0 * (1 << 24)};
  Buffers buffers = make_buffers(backend, c.kernel), copied = make_buffers(backend, copy.kernel);
  std::vector<Loaded> loaded = load_all(backend, c, unrolls, show);
  std::vector<Loaded> ceiling = load_all(backend, copy, {4}, false);
  std::vector<double> copy_us;
  const bool cached = c.name.find("cached") != std::string::npos;
  const double end = now_us() + 1500e3;
  for (int round = 0; round < 5 || (now_us() < end && round < 2000); ++round) {
    if (!cached) copy_us.push_back(run_us(ceiling[1], copy.kernel, copied));
    for (Loaded& l : loaded) {
      if (cached) run_us(l, c.kernel, buffers);
      l.us.push_back(run_us(l, c.kernel, buffers));
    }
  }
  for (const Loaded& l : loaded) {
    const double us = median(l.us), best = *std::min_element(l.us.begin(), l.us.end());
    fmt::print("{:22} unroll {} {:9} {:9.1f} us (best {:8.1f}) {:6.1f} GB/s", c.name,
               std::get<tile::CpuLoops>(l.schedule.kind).unroll,
               std::get<tile::CpuLoops>(l.schedule.kind).streaming_stores ? "streaming" : "", us, best,
               c.bytes / us / 1e3);
    if (!cached) fmt::print("  {:.2f} of copy", c.bytes / us / (copy.bytes / median(copy_us)));
    if (cached) fmt::print("  best {:5.2f} ns a vector of 16", best / (1 << 11) * 1e3);
    if (c.flops > 0) fmt::print("  {:6.1f} GFLOP/s", c.flops / us / 1e3);
    fmt::print("  compile {:5.1f} ms\n", l.compile_ms);
  }
  if (!cached)
    fmt::print("{:22} {:27.1f} us                 {:6.1f} GB/s\n", "  streaming copy", median(copy_us),
               copy.bytes / median(copy_us) / 1e3);
  release_buffers(backend, c.kernel, buffers);
  release_buffers(backend, copy.kernel, copied);
}

}  // namespace

int main(int argc, char** argv) {
  backends::BackendOptions options;
  bool show = false;
  int compiles = 0;
  std::vector<int> unrolls{4, 2};
  std::vector<std::string> wanted;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg == "--isa" && i + 1 < argc)
      options.isa = argv[++i];
    else if (arg == "--threads" && i + 1 < argc)
      options.threads = std::stoi(argv[++i]);
    else if (arg == "--compiles" && i + 1 < argc)
      compiles = std::stoi(argv[++i]);
    else if (arg == "--unroll" && i + 1 < argc)
      unrolls = {std::stoi(argv[++i])};
    else if (arg == "--show")
      show = true;
    else
      wanted.push_back(arg);
  }
  auto backend = cpu::CpuBackend::open(options);
  if (!backend) {
    fmt::print(stderr, "{}\n", backend.error().message);
    return 1;
  }
  fmt::print("{}, {} threads\n", (*backend)->target().name, (*backend)->target().units);
  for (const Case& c : cases())
    if (wanted.empty() || std::find(wanted.begin(), wanted.end(), c.name) != wanted.end()) {
      if (compiles > 0)
        compile_often(**backend, c, compiles);
      else
        measure(**backend, c, unrolls, show);
    }
}
