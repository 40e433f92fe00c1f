// tw doctor: what works on this machine, and what to do about what does not.
#include <fmt/format.h>
#include <tilewright/tile/builder.h>

#include <CLI/CLI.hpp>

#include <nlohmann/json.hpp>

#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "harness/run/environment.h"
#include "peers/peers.h"
#include "runtime/executable.h"
#include "runtime/probe.h"
#include "tensor/limits.h"
#include "tw/command/arguments.h"
#include "tw/command/commands.h"
#include "tw/command/output.h"

namespace tilewright::tw {

namespace {

using Json = nlohmann::ordered_json;

// ok: works. note: a machine may well be without it. bad: something that must work does not.
enum class State { ok, note, bad };

std::string_view word(State state) {
  return state == State::ok ? "ok" : state == State::note ? "note" : "BAD";
}

struct Finding {
  std::string what;
  State state = State::ok;
  std::string text;
  std::string advice = {};  // what to do about it
};

struct DoctorInput {
  std::string cache = "auto", python;
  OutputOptions output;
};

std::string fact_text(const runtime::Device& device, const std::string& key) {
  for (const backends::DeviceFact& fact : device.backend().facts())
    if (fact.key == key) return fact.text;
  return "";
}

// x + 1 over a few elements, through printer, compiler, loader and launch.
Status runs_a_kernel(const std::shared_ptr<runtime::Device>& device) {
  constexpr Index kElements = 1000;
  tile::Builder k("doctor");
  const auto x = k.view("x", DType::f32, {kElements}), y = k.view("y", DType::f32, {kElements});
  k.store(y, {0}, k.load(x, {0}, {.shape = {kElements}}) + 1.0);
  const tile::Kernel kernel = k.finish({{{kElements, kElements}}});
  runtime::KernelStore store(device, nullptr);
  auto loaded = store.get(kernel);
  if (!loaded) return loaded.error();
  const std::vector<float> in(kElements, 2);
  std::vector<float> out(kElements, 0);
  std::vector<std::shared_ptr<runtime::Buffer>> buffers;
  for (int i = 0; i < 2; ++i) {
    auto buffer = runtime::Buffer::allocate(device, kElements * sizeof(float));
    if (!buffer) return buffer.error();
    buffers.push_back(*buffer);
  }
  if (Status s = buffers[0]->write(in.data(), in.size() * sizeof(float)); !s) return s;
  void* const views[2] = {buffers[0]->data(), buffers[1]->data()};
  if (Status s = (*loaded)->program->launch({views, nullptr, {1, 1, 1}}); !s) return s;
  if (Status s = buffers[1]->read(out.data(), out.size() * sizeof(float)); !s) return s;
  if (std::all_of(out.begin(), out.end(), [](float v) { return v == 3; })) return Unit{};
  return failure(Failure::Kind::device, "2 + 1 is not 3");
}

Finding device_finding(const std::string& name, const std::shared_ptr<runtime::Device>& device,
                       const std::string& advice) {
  const Status ran = runs_a_kernel(device);
  if (!ran) return {name, State::bad, ran.error().message, advice};
  return {name, State::ok,
          fmt::format("{}: a kernel was compiled and gave the right result", device->target().name)};
}

Finding ceiling_finding(const runtime::Device& device, const std::string& cache) {
  const auto stored = runtime::stored_ceilings(device, cache);
  const std::string what = "ceilings of " + device.name();
  if (stored) return {what, State::ok, runtime::ceilings_path(device, cache)};
  const bool none = stored.error().kind == Failure::Kind::not_found;
  return {what, none ? State::note : State::bad, none ? "not measured" : stored.error().message,
          "run `tw devices --probe`: floors are then those of this machine"};
}

void check_cpu(std::vector<Finding>& out, const std::string& cache) {
  auto cpu = runtime::Device::open("cpu");
  if (!cpu) {
    out.push_back({"CPU backend", State::note, cpu.error().message,
                   "build with LLVM and Clang 19 (scripts/setup.sh build), which makes libtw_cpu.so; keep it "
                   "in one of the "
                   "folders named here"});
    return;
  }
  out.push_back({"Clang", State::ok, fact_text(**cpu, "compiler") + ", in the process"});
  out.push_back(
      device_finding("CPU backend", *cpu, "run `tw doctor` again with --cache ''; report what it says"));
  out.push_back(ceiling_finding(**cpu, cache));
}

void check_cuda(std::vector<Finding>& out, const std::string& cache) {
  const std::string install =
      "install NVRTC (pip install nvidia-cuda-nvrtc), or set TILEWRIGHT_NVRTC to its folder";
  // Compiling needs no device.
  auto compiler = runtime::Device::open("cuda:0", {.compile_only = "sm_90a"});
  if (!compiler) {
    out.push_back({"CUDA backend", State::note, compiler.error().message,
                   "keep libtw_cuda.so in one of the folders named here"});
    return;
  }
  const std::string version = fact_text(**compiler, "compiler");
  out.push_back({"NVRTC", version == "none" ? State::note : State::ok,
                 version == "none" ? "not found" : version, version == "none" ? install : ""});
  auto cuda = runtime::Device::open("cuda:0");
  if (!cuda) {
    out.push_back({"CUDA driver", State::note, cuda.error().message,
                   "on a machine with an NVIDIA GPU, install its driver (CUDA 12.0 or newer)"});
    return;
  }
  out.push_back({"CUDA driver", State::ok, fact_text(**cuda, "driver")});
  out.push_back(device_finding("CUDA backend", *cuda, install));
  for (int i = 0;; ++i) {
    auto device = i == 0 ? cuda : runtime::Device::open(fmt::format("cuda:{}", i));
    if (!device) break;
    out.push_back(ceiling_finding(**device, cache));
  }
}

Finding check_cache(const std::string& folder) {
  const std::string advice = "set XDG_CACHE_HOME to a folder that can be written, or give --cache";
  if (folder.empty()) return {"cache", State::bad, "neither HOME nor XDG_CACHE_HOME is set", advice};
  const Hash128 key = Hasher().add(std::string("doctor")).add(static_cast<std::int64_t>(getpid())).digest();
  runtime::BinaryCache cache(folder);
  if (Status stored = cache.store(key, "doctor"); !stored)
    return {"cache", State::bad, stored.error().message, advice};
  const bool back = cache.find(key) == "doctor";
  cache.remove(key);
  if (!back) return {"cache", State::bad, folder + ": what was stored did not come back", advice};
  const auto checked = cache.verify();
  if (checked && checked->damaged > 0)
    return {"cache", State::note, fmt::format("{}: {} damaged entries", folder, checked->damaged),
            "run `tw cache clear`"};
  return {"cache", State::ok, fmt::format("{}: can be written", folder)};
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// What programs keep in memory, at most; the disk's bound is beside it.
Finding check_limits() {
  constexpr double kMega = 1 << 20;
  return {"cache limits", State::ok,
          fmt::format(
              "each compiled function: {} structures of arguments, {} specialisations each; each device: {} "
              "programs with {:.0f} MiB of "
              "temporaries, {} kernels that no program uses, {} literals; on disk: {:.0f} MiB; what was "
              "not used for longest goes first",
              detail::kMostStructures, detail::kMostSpecialisations, detail::kMostGraphs,
              static_cast<double>(detail::kMostTemporaryBytes) / kMega, runtime::KernelStore::kMostUnused,
              detail::kMostLiterals, static_cast<double>(runtime::BinaryCache::kDefaultMaxBytes) / kMega)};
}

Finding check_huge_pages() {
  const std::string file = "/sys/kernel/mm/transparent_hugepage/enabled", text = first_line(file);
  if (text.find("[never]") == std::string::npos && !text.empty()) return {"huge pages", State::ok, text};
  return {"huge pages", State::note, text.empty() ? "unknown to this system" : text,
          "echo madvise > " + file + " (as root): fewer page walks over large tensors"};
}

void check_machine(std::vector<Finding>& out) {
  const lab::Environment e = lab::read_environment({});
  const bool calm = e.governor == "none" || e.governor == "performance";
  out.push_back(
      {"frequency governor", calm ? State::ok : State::note,
       e.governor == "none" ? "none: clocks are not set from here" : e.governor,
       calm ? "" : "cpupower frequency-set -g performance (as root): steadier clocks while measuring"});
  const bool busy = e.load_average > 0.5 * e.cores;
  out.push_back({"load", busy ? State::note : State::ok,
                 fmt::format("{:.1f} on {} cores", e.load_average, e.cores),
                 busy ? "measure when nothing else runs" : ""});
}

Finding check_peers(const std::string& python) {
  const auto peers = lab::open_peers({.python = python});
  const std::string text = peers->describe();
  const bool there = text.find("PyTorch ") == 0;
  return {"peers", there ? State::ok : State::note, text,
          there ? ""
                : "scripts/setup.sh peers, or name an interpreter with --python: then `tw bench run --peers` "
                  "compares"};
}

std::vector<Finding> examine(const DoctorInput& input) {
  std::vector<Finding> out;
  const std::string cache = cache_argument(input.cache);
  check_cpu(out, cache);
  check_cuda(out, cache);
  // One backend at least must work; which, is the machine's choice.
  const bool any = std::any_of(out.begin(), out.end(), [](const Finding& f) {
    return f.state == State::ok && (f.what == "CPU backend" || f.what == "CUDA backend");
  });
  if (!any)
    out.push_back({"devices", State::bad, "neither the CPU backend nor the CUDA backend works", "see above"});
  out.push_back(check_cache(cache));
  out.push_back(check_limits());
  out.push_back(check_huge_pages());
  check_machine(out);
  out.push_back(check_peers(input.python));
  return out;
}

void run(const DoctorInput& input) {
  const std::vector<Finding> findings = examine(input);
  const bool well =
      std::none_of(findings.begin(), findings.end(), [](const Finding& f) { return f.state == State::bad; });
  if (input.output.as_json()) {
    Json list = Json::array();
    for (const Finding& f : findings)
      list.push_back({{"what", f.what},
                      {"state", f.state == State::bad ? "bad" : word(f.state)},
                      {"text", f.text},
                      {"advice", f.advice}});
    write_results(input.output, Json({{"well", well}, {"findings", list}}).dump(2) + "\n");
  } else {
    std::string text;
    for (const Finding& f : findings) {
      text += fmt::format("{:<5} {:<20} {}\n", word(f.state), f.what, f.text);
      if (!f.advice.empty() && f.state != State::ok) text += fmt::format("{:<26} → {}\n", "", f.advice);
    }
    write_results(input.output, text);
  }
  if (!well) throw CLI::RuntimeError(1);
}

}  // namespace

void add_doctor(CLI::App& app) {
  CLI::App* sub = app.add_subcommand(
      "doctor",
      "What works on this machine, and what to do about what does not; exit code 1 when something is BAD");
  auto in = std::make_shared<DoctorInput>();
  sub->add_option("--cache", in->cache, "Folder of compiled kernels (default: the user's)")
      ->type_name("FOLDER");
  sub->add_option("--python", in->python, "Interpreter of the peers")->type_name("FILE");
  add_output_options(*sub, in->output, "an object");
  sub->callback([in] { run(*in); });
}

}  // namespace tilewright::tw
