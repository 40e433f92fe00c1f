// PyTorch in another process: finding it, and its programs as contenders.
#include "peers/peers.h"

#include <tilewright/base/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "peers/peer_host.h"

namespace tilewright::lab {

namespace {

// PyTorch's CPU tensors come from the C library's allocator, which gives large blocks back to the system:
// most of the time of a memory-bound call is then the system clearing pages. With these it keeps them, in
// huge pages where there are any, as our own allocator does; both are shown.
constexpr const char* kKeepPages[] = {"MALLOC_MMAP_MAX_=0", "MALLOC_TRIM_THRESHOLD_=1000000000000",
                                      "MALLOC_TOP_PAD_=268435456", "GLIBC_TUNABLES=glibc.malloc.hugetlb=1"};
constexpr const char* kPagesKept = ", pages kept";
// The ways to run one program, of which a user takes the quickest.
constexpr const char* kFamily = "torch";
struct Way {
  const char *mode, *name;  // what the script calls it; what rows do
};
constexpr Way kCompiledOnGpu[] = {
    {"torch.compile", "torch.compile"},
    {"torch.compile:reduce-overhead", "torch reduce-overhead"},
    {"torch.compile:max-autotune-no-cudagraphs", "torch max-autotune"},
};

Contender unavailable(const std::string& name, const std::string& why) {
  return {.name = name, .unavailable = why};
}

// A contender whose program is prepared at the other end; a failure there makes it unavailable.
Contender prepare(const std::shared_ptr<PeerInputs>& inputs, const std::string& mode,
                  const std::string& name) {
  const auto job = std::make_shared<PeerJob>(inputs, mode);
  if (Status ready = job->bring(); !ready) return unavailable(name, ready.error().message);
  Contender contender{.name = name};
  contender.batch_us = [job](std::int64_t first, std::int64_t count) { return job->call_us(first, count); };
  contender.device_us = [job](std::int64_t first, std::int64_t count) {
    return job->device_us(first, count);
  };
  if (inputs->workload().waits)
    contender.waited_us = [job]() -> Result<double> { return job->take_waited_us(); };
  for (std::size_t o = 0; o < inputs->workload().outputs.size(); ++o)
    contender.outputs.push_back(
        {.poison = [job, o](std::uint8_t byte) { return job->poison(o, byte); },
         .read = [job, o](const ElementsVisitor& visit) { return job->read(o, visit); }});
  return contender;
}

// A way of the family's to run the program.
Contender one_of_family(const std::shared_ptr<PeerInputs>& inputs, const std::string& mode,
                        const std::string& name) {
  Contender contender = prepare(inputs, mode, name);
  contender.family = kFamily;
  return contender;
}

class TorchPeers final : public Peers {
 public:
  // `keeping`: on the CPU, a second process that keeps its pages; otherwise null.
  TorchPeers(PeerHostPtr host, PeerHostPtr keeping) : host_(std::move(host)), keeping_(std::move(keeping)) {}

  std::vector<Contender> contenders(const PeerWorkload& workload) override {
    if (!workload.unavailable.empty()) return {unavailable("torch", workload.unavailable)};
    const auto inputs = PeerInputs::write(host_, workload);
    if (!inputs) return {unavailable("torch", inputs.error().message)};
    std::vector<Contender> all;
    for (const std::string& way : workload.ways)
      if (wants(way)) all.push_back(one_of_family(*inputs, way, way));
    if (!workload.ways.empty()) return all;
    if (wants("torch")) all.push_back(one_of_family(*inputs, "torch", "torch"));
    if (host_->options().device == "cpu") {
      add_keeping(workload, all);
    } else {
      for (const Way& way : kCompiledOnGpu)
        if (compiles() && wants(way.name)) all.push_back(one_of_family(*inputs, way.mode, way.name));
      for (const char* mode : more_on_gpu(workload))
        if (wants(mode)) all.push_back(prepare(*inputs, mode, mode));
    }
    add_own_ways(workload, *inputs, all);
    return all;
  }

  Result<Truth> truth(const PeerWorkload& workload, DType storage) override {
    if (workload.source.empty()) return failure(Failure::Kind::unsupported, "the workload has no text");
    PeerWorkload wide = workload;
    wide.parameters.emplace_back("dtype", name(storage));
    for (OutputSpec& output : wide.outputs)
      if (is_float(output.dtype)) output.dtype = DType::f64;
    const std::size_t count = wide.outputs.size();
    for (std::size_t o = 0; o < count; ++o)
      wide.outputs.push_back({.dtype = DType::f64, .shape = wide.outputs[o].shape});
    // In the process that keeps its pages: the truth is many passes over large arrays, and most of their time
    // went into clearing pages.
    const auto inputs = PeerInputs::write(keeping_ ? keeping_ : host_, wide);
    if (!inputs) return inputs.error();
    return Truth([job = std::make_shared<PeerJob>(*inputs, "float64"),
                  all = 2 * count](std::int64_t iteration) -> Result<std::vector<std::vector<double>>> {
      if (const auto ran = job->call_us(iteration, 1); !ran) return ran.error();
      std::vector<std::vector<double>> arrays;
      for (std::size_t o = 0; o < all; ++o) {
        auto values = read_doubles(
            {.poison = {}, .read = [&](const ElementsVisitor& visit) { return job->read(o, visit); }});
        if (!values) return values.error();
        arrays.push_back(std::move(*values));
      }
      if (Status released = job->release(); !released) return released.error();
      return arrays;
    });
  }

  std::string describe() const override {
    const std::string triton = host_->facts().at("triton");
    return fmt::format("PyTorch {}{}", host_->facts().at("torch").get<std::string>(),
                       triton.empty() ? "" : ", Triton " + triton);
  }

 private:
  bool wants(const std::string& name) const {
    const auto& without = host_->options().without;
    return std::find(without.begin(), without.end(), name) == without.end();
  }
  bool compiles() const { return host_->facts().at("compile").get<bool>(); }

  void add_keeping(const PeerWorkload& workload, std::vector<Contender>& all) const {
    if (!keeping_) return;
    const auto inputs = PeerInputs::write(keeping_, workload);
    for (const std::string mode : {"torch", "torch.compile"}) {
      if (!wants(mode + kPagesKept) || (mode == "torch.compile" && !compiles())) continue;
      all.push_back(inputs ? one_of_family(*inputs, mode, mode + kPagesKept)
                           : unavailable(mode + kPagesKept, inputs.error().message));
    }
  }

  // What PyTorch has for this work on any device, of which the fused optimizer is one more way to do all of
  // it.
  void add_own_ways(const PeerWorkload& workload, const std::shared_ptr<PeerInputs>& inputs,
                    std::vector<Contender>& all) const {
    if (workload.target == "optimizer_step" && wants("torch fused AdamW")) {
      all.push_back(one_of_family(inputs, "torch fused AdamW", "torch fused AdamW"));
      all.back().note = "in place, on copies of the inputs that stay";
    }
    if (workload.target == "activation_checkpointing" && wants("torch checkpoint"))
      all.push_back(prepare(inputs, "torch checkpoint", "torch checkpoint"));
  }

  // What PyTorch has for this work beside its ordinary functions; where it lacks it, the row says so.
  std::vector<const char*> more_on_gpu(const PeerWorkload& workload) const {
    if (!workload.source.empty()) return {};
    if (workload.target == "elu" && !host_->facts().at("triton").get<std::string>().empty())
      return {"triton"};
    if (workload.target.starts_with("attention")) return {"cudnn", "flex_attention"};
    if (workload.target == "grouped_gemm") return {"torch._grouped_mm"};
    if (workload.target == "linear_cross_entropy") return {"torch, in chunks"};
    return {};
  }

  PeerHostPtr host_, keeping_;
};

class NoPeers final : public Peers {
 public:
  explicit NoPeers(std::string why) : why_(std::move(why)) {}
  std::vector<Contender> contenders(const PeerWorkload&) override { return {unavailable("torch", why_)}; }
  Result<Truth> truth(const PeerWorkload&, DType) override { return failure(Failure::Kind::not_found, why_); }
  std::string describe() const override { return why_; }

 private:
  std::string why_;
};

// Interpreters that may have PyTorch, the likeliest to have a good one first: where `scripts/setup.sh peers`
// puts it, from here and from the folder that this program was built in.
std::vector<std::string> known_interpreters() {
  namespace fs = std::filesystem;
  std::vector<std::string> all;
  std::error_code none;
  const fs::path program = fs::read_symlink("/proc/self/exe", none);
  for (const fs::path& root : {fs::path("."), program.parent_path().parent_path()}) {
    const fs::path python = root / ".cache/peers/bin/python";
    if (fs::exists(python, none)) all.push_back(python.string());
  }
  all.insert(all.end(), {"python3", "/usr/bin/python3"});
  return all;
}

}  // namespace

std::shared_ptr<Peers> open_peers(const PeerOptions& options) {
  std::vector<std::string> interpreters = {options.python};
  if (options.python.empty()) interpreters = known_interpreters();
  std::string why;
  for (const std::string& python : interpreters) {
    try {
      const auto host = PeerHost::start(python, options);
      Result<PeerHostPtr> keeping = PeerHostPtr();
      if (host && options.device == "cpu")
        keeping = PeerHost::start(python, options, {std::begin(kKeepPages), std::end(kKeepPages)});
      const Status ready = host ? (*host)->greet() : Status(host.error());
      if (ready) {
        const bool both = keeping && *keeping && (*keeping)->greet();
        return std::make_shared<TorchPeers>(*host, both ? *keeping : nullptr);
      }
      why += (why.empty() ? "" : "; ") + ready.error().message;
    } catch (const Error& error) {
      why += (why.empty() ? "" : "; ") + std::string(error.what());
    }
  }
  return std::make_shared<NoPeers>(
      why + " (scripts/setup.sh peers installs one; --python names another interpreter)");
}

}  // namespace tilewright::lab
