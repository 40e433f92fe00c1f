// Translation of device code, and the Backend around it.
#include "cuda_emulation/emulated_cuda.h"

#include "backends/cpu/jit/compiler.h"
#include "backends/cpu/jit/jit.h"
#include "backends/cuda/analysis/dot_use.h"
#include "backends/cuda/analysis/overlap.h"
#include "backends/cuda/analysis/schedule_fields.h"
#include "backends/cuda/cuda_backend.h"
#include "backends/cuda/host/launch_table.h"
#include "backends/cuda/library/cublaslt.h"
#include "backends/cuda/library/fake_cublaslt.h"
#include "backends/cuda/library/product.h"
#include "backends/cuda/nvrtc/device_headers.h"
#include "backends/cuda/plan/grid.h"
#include "cuda_emulation/machine.h"

#include <fmt/format.h>

#include <cctype>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <regex>

namespace tilewright::embedded {
extern const std::string_view cuda_emulation_builtins;
extern const std::string_view cuda_emulation_wgmma;
}  // namespace tilewright::embedded

namespace tilewright::emulation {
namespace {

using backends::Binary;
using backends::Candidate;
using backends::Source;

// Splits at `separator` where no bracket and no string is open.
std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  int depth = 0;
  bool quoted = false;
  for (char c : text) {
    if (c == '"') quoted = !quoted;
    if (!quoted && (c == '(' || c == '{' || c == '[')) ++depth;
    if (!quoted && (c == ')' || c == '}' || c == ']')) --depth;
    if (c == separator && depth == 0 && !quoted)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

// The operands in `"=r"(out), "r"(x)`: out, x.
std::string operands(const std::string& section) {
  std::string out;
  for (const std::string& part : split(section, ',')) {
    const std::size_t open = part.find('(');
    if (open == std::string::npos) continue;
    out += (out.empty() ? "" : ", ") + part.substr(open + 1, part.rfind(')') - open - 1);
  }
  return out;
}

std::string ptx_name(const std::string& code) {
  if (const std::size_t special = code.find("%%"); special != std::string::npos) {
    std::size_t end = special + 2;
    while (end < code.size() &&
           (std::isalnum(static_cast<unsigned char>(code[end])) != 0 || code[end] == '_'))
      ++end;
    return "ptx_" + code.substr(special + 2, end - special - 2);
  }
  const std::size_t first = code.find('"') + 1;
  if (code.find("mbarrier.try_wait") != std::string::npos) return "ptx_try_wait";
  if (code[first] == '{') return code.find("cvt.f32.f16") != std::string::npos ? "ptx_unpack" : "ptx_block";
  std::string name = "ptx_";
  for (std::size_t i = first; i < code.size() && code[i] != ' ' && code[i] != ';' && code[i] != '"'; ++i)
    name += std::isalnum(static_cast<unsigned char>(code[i])) != 0 ? code[i] : '_';
  return name;
}

std::string translate_asm(const std::string& text) {
  static const std::regex start(R"(\basm( volatile)?\()");
  std::string out;
  auto from = text.cbegin();
  for (std::smatch m; std::regex_search(from, text.cend(), m, start);) {
    out.append(from, m[0].first);
    auto at = m[0].second;
    int depth = 1;
    bool quoted = false;
    for (; depth > 0; ++at) {
      if (*at == '"') quoted = !quoted;
      if (!quoted && *at == '(') ++depth;
      if (!quoted && *at == ')') --depth;
    }
    // "::" in the operand list is an empty section; inside strings it stays.
    const std::vector<std::string> sections = split(std::string(m[0].second, at - 1), ':');
    std::string all = sections.size() > 1 ? operands(sections[1]) : "";
    if (sections.size() > 2) {
      const std::string inputs = operands(sections[2]);
      all += (all.empty() || inputs.empty() ? "" : ", ") + inputs;
    }
    const std::string name = ptx_name(sections[0]);
    const bool known = embedded::cuda_emulation_builtins.find(" " + name + "(") != std::string_view::npos;
    // Instructions that no printed kernel uses may stand in the headers.
    out += known ? fmt::format("{}({})", name, all) : "emu_unknown_ptx()";
    from = at;
  }
  out.append(from, text.cend());
  return out;
}

// name[i][j] becomes emu_at(emu_at(name, i), j): an index behind a shared array's end meets the array beside
// it, which goes unnoticed where that one is not in use.
std::string with_checked_indices(const std::string& text, const std::string& name) {
  const std::regex used("\\b" + name + "\\[");
  std::string out;
  auto from = text.cbegin();
  for (std::smatch m; std::regex_search(from, text.cend(), m, used);) {
    out.append(from, m[0].first);
    std::string element = name;
    auto at = m[0].second - 1;
    while (at != text.cend() && *at == '[') {
      const auto open = at++;
      for (int depth = 1; depth > 0; ++at) depth += *at == '[' ? 1 : *at == ']' ? -1 : 0;
      element =
          fmt::format("emu_at({}, {})", element, with_checked_indices(std::string(open + 1, at - 1), name));
    }
    out += element;
    from = at;
  }
  return out.append(from, text.cend());
}

std::string entry_wrapper(const tile::Kernel& kernel, const Source& source) {
  if (source.launch.together > 1)
    return fmt::format(
        "extern \"C\" void emu_entry(void** p) {{ tw::{0}(*static_cast<tw::{0}_table*>(p[0])); }}\n",
        source.entry);
  std::string arguments;
  std::size_t n = 0;
  const auto add = [&](const std::string& type) {
    arguments += fmt::format("{}*static_cast<{}*>(p[{}])", n > 0 ? ", " : "", type, n);
    ++n;
  };
  for (const tile::ViewParam& v : kernel.views) add(fmt::format("tw::{}*", name(v.dtype)));
  for (const tile::ScalarParam& s : kernel.scalars) add(fmt::format("tw::{}", name(s.dtype)));
  for (std::size_t i = 0; i < cuda::grid_parameters(kernel).size(); ++i) add("tw::i32");
  for (std::size_t i = 0; i < cuda::tensor_blocks(kernel, source.schedule).size(); ++i) add("tw::TensorMap");
  std::string text =
      fmt::format("extern \"C\" void emu_entry(void** p) {{ tw::{}({}); }}\n", source.entry, arguments);
  return std::regex_replace(text, std::regex("tw::bool"), "bool");
}

// What has been allocated, by address: bytes.
using Allocations = std::map<char*, std::size_t>;

// The memory of a launch's views while the kernel before still runs: what it holds then is nobody's to read,
// and what is written to it is lost.
class HiddenMemory {
 public:
  HiddenMemory(const Allocations& allocations, const std::vector<void*>& views) {
    for (void* view : views) {
      auto after = allocations.upper_bound(static_cast<char*>(view));
      if (after == allocations.begin()) continue;
      const auto& [begin, bytes] = *std::prev(after);
      if (static_cast<char*>(view) < begin + bytes) kept_[begin].assign(begin, bytes);
    }
    for (const auto& [begin, bytes] : kept_) std::memset(begin, 0xff, bytes.size());
  }
  void show() const {
    for (const auto& [begin, bytes] : kept_) std::memcpy(begin, bytes.data(), bytes.size());
  }

 private:
  std::map<char*, std::string> kept_;
};

// What launches have taken since the beginning.
using ClockUs = std::shared_ptr<double>;

class EmulatedCall final : public backends::Program {
 public:
  EmulatedCall(const tile::Kernel& kernel, std::unique_ptr<cuda::PreparedCall> call, ClockUs clock)
      : us_(cuda::find_product(kernel).value().k < 64 ? 560 : 280),
        call_(std::move(call)),
        clock_(std::move(clock)) {}
  Status launch(const backends::LaunchArgs& args) override {
    *clock_ += us_;
    return call_->enqueue(args.views, nullptr);
  }

 private:
  double us_;
  std::unique_ptr<cuda::PreparedCall> call_;
  ClockUs clock_;
};

class EmulatedProgram final : public backends::Program {
 public:
  EmulatedProgram(const tile::Kernel& kernel, const Source& source, std::unique_ptr<cpu::Jit> jit,
                  cpu::LoadedObject object, std::shared_ptr<const Allocations> allocations, ClockUs clock)
      : clock_(std::move(clock)),
        kernel_(kernel),
        source_(source),
        jit_(std::move(jit)),
        object_(std::move(object)),
        allocations_(std::move(allocations)) {}

  Status launch(const backends::LaunchArgs& args) override {
    *clock_ += 400;
    const Index programs = args.grid[0] * args.grid[1] * args.grid[2];
    Index blocks = ceil_div(programs, source_.launch.programs_per_block);
    if (cuda::walks_programs(source_.schedule)) blocks = std::min<Index>(blocks, kUnits);
    if (blocks == 0) return Unit{};
    const auto count = static_cast<std::size_t>(args.count);
    std::vector<void*> views(args.views, args.views + count * kernel_.views.size());
    std::vector<std::int64_t> scalars(args.scalars, args.scalars + count * kernel_.scalars.size());
    std::vector<std::int32_t> grid;
    for (int axis : cuda::grid_parameters(kernel_))
      grid.push_back(static_cast<std::int32_t>(args.grid[axis]));
    std::vector<void*> parameters;
    parameters.reserve(views.size());
    std::vector<EmulatedMap> maps;
    cuda::LaunchTable table;
    if (source_.launch.together > 1) {
      table = cuda::LaunchTable(kernel_, cuda::grid_parameters(kernel_), source_.launch.together);
      table.fill(args.views, args.scalars, args.grid, args.count);
      parameters.push_back(table.data());
    } else {
      for (void*& v : views) parameters.push_back(static_cast<void*>(&v));
      for (std::int64_t& s : scalars) parameters.push_back(&s);
      for (std::int32_t& g : grid) parameters.push_back(&g);
      for (const cuda::TensorBlock& block : cuda::tensor_blocks(kernel_, source_.schedule))
        maps.push_back(map_of(block, args));
      for (EmulatedMap& map : maps) parameters.push_back(&map);
    }
    const auto entry = reinterpret_cast<void (*)(void**)>(object_.symbol("emu_entry"));
    std::optional<HiddenMemory> hidden;
    if (cuda::waits_for_previous(source_.text)) hidden.emplace(*allocations_, views);
    for (int row = 0; row < args.count; ++row) {
      const std::string problem =
          run_grid({.blocks = static_cast<unsigned>(blocks * source_.launch.cluster),
                    .threads = static_cast<unsigned>(source_.launch.threads),
                    .cluster = static_cast<unsigned>(source_.launch.cluster),
                    .row = static_cast<unsigned>(row),
                    .shared_bytes = static_cast<std::size_t>(source_.launch.shared_bytes),
                    .previous_ends = hidden ? [&] { hidden->show(); } : std::function<void()>()},
                   [&] { entry(parameters.data()); });
      if (!problem.empty()) return failure(Failure::Kind::device, problem);
      hidden.reset();
    }
    return Unit{};
  }
  int most_together() const override { return source_.launch.together; }

 private:
  static constexpr int kUnits = 3;  // blocks of a persistent kernel
  EmulatedMap map_of(const cuda::TensorBlock& block, const backends::LaunchArgs& args) const {
    const tile::ViewParam& view = kernel_.views[static_cast<std::size_t>(block.view)];
    const auto number = [&](const tile::Dim& d) {
      return d.is_constant() ? d.value : args.scalars[d.scalar];
    };
    EmulatedMap map{.address = static_cast<unsigned char*>(args.views[block.view]),
                    .element_bytes = static_cast<int>(size_bytes(view.dtype))};
    for (std::size_t i = 0; i < block.dims.size(); ++i) {
      const auto d = static_cast<std::size_t>(block.dims[i]);
      map.extents[i] = number(view.extents[d]);
      map.strides_bytes[i] = number(view.strides[d]) * map.element_bytes;
      map.box[i] = static_cast<int>(block.box[i]);
    }
    return map;
  }

  ClockUs clock_;
  tile::Kernel kernel_;
  Source source_;
  std::unique_ptr<cpu::Jit> jit_;
  cpu::LoadedObject object_;
  std::shared_ptr<const Allocations> allocations_;
};

// What is proved is what the text means; it runs for a hundredth of what optimising it would take.
const cpu::CompileOptions& compile_options() {
  static const cpu::CompileOptions options = [] {
    cpu::CompileOptions all{
        .target = cpu::host_target(cpu::Isa::avx2), .effort = cpu::Effort::none, .show_unwritten = true};
    all.headers.push_back({"builtins.h", std::string(embedded::cuda_emulation_builtins)});
    for (const cuda::DeviceHeader& h : cuda::device_headers()) {
      const std::string_view name = h.name;
      if (name == "tw_cuda/wgmma.cuh")
        all.headers.push_back({h.name, std::string(embedded::cuda_emulation_wgmma)});
      else if (name.starts_with("tw_cuda/wgmma_n"))
        all.headers.push_back({h.name, "#include \"tw_cuda/wgmma.cuh\"\n"});
      else if (name != "tw_cuda/wgmma_instruction.cuh")  // a part of those
        all.headers.push_back({h.name, translate(std::string(h.text))});
    }
    return all;
  }();
  return options;
}

// All headers, whichever a kernel includes: that it includes what it uses is NVRTC's to find
// (tests/cuda_compile).
Result<const cpu::Precompiled*> precompiled_headers(const std::string& architecture) {
  static std::mutex reading;
  static std::map<std::string, cpu::Precompiled> precompiled;
  const std::lock_guard lock(reading);
  const auto found = precompiled.find(architecture);
  if (found != precompiled.end()) return &found->second;
  std::string text =
      fmt::format("#define __CUDA_ARCH__ {}\n", cuda::Arch::parse(architecture).value().macro());
  for (const auto& [name, header] : compile_options().headers) text += fmt::format("#include \"{}\"\n", name);
  auto read = cpu::precompile(text, compile_options());
  if (!read) return read.error();
  return &precompiled.emplace(architecture, std::move(*read)).first->second;
}

class EmulatedBackend final : public backends::Backend {
 public:
  explicit EmulatedBackend(std::unique_ptr<backends::Backend> printer) : printer_(std::move(printer)) {
    std::vector<std::unique_ptr<cuda::Library>> made_up;
    made_up.push_back(
        cuda::make_cublaslt(cuda::fake::make_cublaslt_functions(), "made up",
                            {.allocate = [this](std::size_t bytes) { return allocate(bytes); }}));
    libraries_.emplace(std::move(made_up));
  }

  const tile::Target& target() const override { return printer_->target(); }
  std::string binary_key() const override { return "emulated " + printer_->target().arch; }
  std::vector<Candidate> candidates(const tile::Kernel& k) const override { return printer_->candidates(k); }
  std::vector<Candidate> library_candidates(const tile::Kernel& k) override {
    return libraries_->candidates(k);
  }
  Result<Source> print(const tile::Kernel& k, const tile::Schedule& s) const override {
    if (const auto* call = std::get_if<tile::LibraryCall>(&s.kind)) return libraries_->print(k, *call);
    return printer_->print(k, s);
  }

  Result<Binary> compile(const tile::Kernel& kernel, const Source& source) const override {
    if (const auto* call = std::get_if<tile::LibraryCall>(&source.schedule.kind))
      return libraries_->compile(kernel, *call, source);
    const std::string text = translate(source.text) + entry_wrapper(kernel, source);
    auto precompiled = precompiled_headers(target().arch);
    if (!precompiled) return precompiled.error();
    cpu::CompileOptions options = compile_options();
    options.precompiled = *precompiled;
    auto object = cpu::compile_cpp(text, options);
    if (!object) return object.error();
    return Binary{std::move(*object), "", 0};
  }
  Result<std::unique_ptr<backends::Program>> load(const tile::Kernel& kernel, const Source& source,
                                                  const Binary& binary) override {
    if (const auto* call = std::get_if<tile::LibraryCall>(&source.schedule.kind)) {
      auto prepared = libraries_->prepare(kernel, *call);
      if (!prepared) return prepared.error();
      return std::unique_ptr<backends::Program>(new EmulatedCall(kernel, std::move(*prepared), clock_));
    }
    auto jit = cpu::Jit::create();
    if (!jit) return jit.error();
    auto object = (*jit)->load(binary.bytes);
    if (!object) return object.error();
    return std::unique_ptr<backends::Program>(
        new EmulatedProgram(kernel, source, std::move(*jit), std::move(*object), allocations_, clock_));
  }

  Result<void*> allocate(std::size_t bytes) override {
    void* address = std::aligned_alloc(512, round_up(static_cast<Index>(bytes) + 1, 512));
    (*allocations_)[static_cast<char*>(address)] = bytes;
    return address;
  }
  void release(void* address, std::size_t) override {
    allocations_->erase(static_cast<char*>(address));
    std::free(address);
  }
  Status copy(void* to, const void* from, std::size_t bytes, backends::CopyKind) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
    return Unit{};
  }
  Status fill(void* to, backends::FillPattern pattern, std::size_t bytes) override {
    backends::fill_on_host(to, pattern, bytes);
    return Unit{};
  }
  Status synchronize() override { return Unit{}; }
  Status timer_start() override {
    started_ = *clock_;
    return Unit{};
  }
  Result<double> timer_stop_us() override { return *clock_ - started_; }
  Result<std::unique_ptr<backends::Replay>> record(const std::vector<backends::RecordedLaunch>&) override {
    return failure(Failure::Kind::unsupported, "emulated launches are not recorded");
  }

 private:
  std::unique_ptr<backends::Backend> printer_;
  std::shared_ptr<Allocations> allocations_ = std::make_shared<Allocations>();
  std::optional<cuda::LibrarySet> libraries_;
  ClockUs clock_ = std::make_shared<double>(0);
  double started_ = 0;
};

}  // namespace

std::string translate(const std::string& text) {
  std::string out = translate_asm(text);
  out = std::regex_replace(out, std::regex(R"(extern __shared__ uint4 (\w+)\[\];)"),
                           "uint4* $1 = static_cast<uint4*>(emu_stage());");
  out = std::regex_replace(out, std::regex(R"(__shared__ ([^;\[]+) (\w+);)"),
                           "$1& $2 = *static_cast<$1*>(emu_shared(sizeof($1)));");
  static const std::regex array(R"(__shared__ ([^;\[]+) (\w+)((\[[^\]]*\])+);)");
  std::vector<std::string> names;
  for (auto m = std::sregex_iterator(out.begin(), out.end(), array); m != std::sregex_iterator(); ++m)
    names.push_back((*m)[2]);
  out = std::regex_replace(out, array, "$1 (&$2)$3 = *static_cast<$1 (*)$3>(emu_shared(sizeof($1 $3)));");
  for (const std::string& name : names) out = with_checked_indices(out, name);
  return out;
}

Result<std::unique_ptr<backends::Backend>> open_emulated_cuda(const std::string& architecture) {
  auto printer = cuda::CudaBackend::open({.compile_only = architecture});
  if (!printer) return printer.error();
  return std::unique_ptr<backends::Backend>(new EmulatedBackend(std::move(*printer)));
}

}  // namespace tilewright::emulation
