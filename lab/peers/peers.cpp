// PyTorch in another process: finding it, handing it inputs, asking it for times and outputs.
#include "peers/peers.h"

#include <tilewright/base/error.h>

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "peers/peer_files.h"
#include "peers/peer_process.h"

namespace tilewright::embedded {
extern const std::string_view peer_script;
}

namespace tilewright::lab {

namespace {

using Json = nlohmann::json;

std::size_t bytes_of(DType dtype, const Shape& shape) {
  return static_cast<std::size_t>(shape.size()) * size_bytes(dtype);
}

// PyTorch's CPU tensors come from the C library's allocator, which gives large blocks back to the system:
// most of the time of a memory-bound call is then the system clearing pages. With these it keeps them, in
// huge pages where there are any, as our own allocator does; both are shown.
constexpr const char* kKeepPages[] = {"MALLOC_MMAP_MAX_=0", "MALLOC_TRIM_THRESHOLD_=1000000000000",
                                      "MALLOC_TOP_PAD_=268435456", "GLIBC_TUNABLES=glibc.malloc.hugetlb=1"};
// Its threads sleep between its calls: as they are set up they would turn for milliseconds on the cores that
// the next contender is timed on. Waking them costs its own calls some microseconds.
constexpr const char* kSleepBetweenCalls = "OMP_WAIT_POLICY=passive";
constexpr std::string_view kKeptName = "torch, pages kept";

// The process and its folder, shared by all contenders.
struct Host {
  PeerFolder folder;
  std::optional<PeerProcess> process;
  PeerOptions options;
  Json facts;  // of the answer to hello
  int next_id = 0;

  Result<Json> ask(const Json& request) {
    const auto line = process->ask(request.dump());
    if (!line) return line.error();
    Json answer = Json::parse(*line, nullptr, false);
    if (answer.is_discarded()) return failure(Failure::Kind::io, "the peer's answer is not JSON: " + *line);
    if (answer.contains("error")) {
      const bool memory = answer.value("no_memory", false);
      return failure(memory ? Failure::Kind::out_of_memory : Failure::Kind::device,
                     answer["error"].get<std::string>());
    }
    return answer;
  }
  Status tell(const Json& request) {
    const auto answer = ask(request);
    if (!answer) return answer.error();
    return Unit{};
  }
};
using HostPtr = std::shared_ptr<Host>;

// One instance's inputs as files; shared by the peers' modes.
struct PeerInputs {
  HostPtr host;
  PeerWorkload workload;
  int id = 0;

  std::string file(std::size_t input, std::int64_t copy) const {
    return fmt::format("{}/{}-in{}-{}", host->folder.path(), id, input, copy);
  }
  Status write() const {
    for (std::size_t i = 0; i < workload.inputs.size(); ++i) {
      const PeerWorkload::Input& input = workload.inputs[i];
      for (std::int64_t c = 0; c < input.copies; ++c) {
        Status written = with_mapped_file(file(i, c), bytes_of(input.dtype, input.shape),
                                          [&](void* to) { return workload.read_input(i, c, to); });
        if (!written) return written;
      }
    }
    return Unit{};
  }
  Json describe() const {
    Json all = Json::array();
    for (std::size_t i = 0; i < workload.inputs.size(); ++i) {
      const PeerWorkload::Input& input = workload.inputs[i];
      Json files = Json::array();
      for (std::int64_t c = 0; c < input.copies; ++c) files.push_back(file(i, c));
      all.push_back(
          {{"dtype", name(input.dtype)}, {"shape", input.shape.extents()}, {"files", std::move(files)}});
    }
    return all;
  }
  ~PeerInputs() {
    for (std::size_t i = 0; i < workload.inputs.size(); ++i) {
      for (std::int64_t c = 0; c < workload.inputs[i].copies; ++c) std::remove(file(i, c).c_str());
    }
  }
};

// One contender at the other end; dropped there when the last function that knows it goes.
struct PeerJob {
  std::shared_ptr<PeerInputs> inputs;
  int id = 0;
  Host& host() const { return *inputs->host; }
  std::string output_file() const { return fmt::format("{}/{}-out", host().folder.path(), id); }
  Status load() const { return host().tell({{"command", "load"}, {"id", id}}); }
  ~PeerJob() {
    (void)host().tell({{"command", "drop"}, {"id", id}});
    std::remove(output_file().c_str());
  }
};
using JobPtr = std::shared_ptr<PeerJob>;

Result<std::vector<double>> read_output(const PeerJob& job, std::size_t output) {
  const OutputSpec& spec = job.inputs->workload.outputs[output];
  const auto count = static_cast<std::size_t>(spec.shape.size());
  std::vector<double> values(count);
  Status read = with_mapped_file(job.output_file(), bytes_of(spec.dtype, spec.shape), [&](void* content) {
    Status written = job.host().tell(
        {{"command", "read"}, {"id", job.id}, {"output", output}, {"file", job.output_file()}});
    if (written) convert(content, spec.dtype, values.data(), DType::f64, count);
    return written;
  });
  if (!read) return read.error();
  return values;
}

// A contender whose program is prepared at the other end; a failure there makes it unavailable.
Contender prepare(const std::shared_ptr<PeerInputs>& inputs, const std::string& mode,
                  std::string_view as = {}) {
  Contender contender{.name = std::string(as.empty() ? mode : as)};
  Host& host = *inputs->host;
  auto job = std::make_shared<PeerJob>(PeerJob{inputs, host.next_id++});
  Json request = {{"command", "prepare"},
                  {"id", job->id},
                  {"mode", mode},
                  {"work", inputs->workload.target},
                  {"device", host.options.device},
                  {"copies", inputs->workload.copies},
                  {"inputs", inputs->describe()},
                  {"parameters", Json::object()},
                  {"source", inputs->workload.source}};
  for (const auto& [key, value] : inputs->workload.parameters) request["parameters"][key] = value;
  Status ready = host.tell(request);
  if (ready) ready = job->load();
  if (!ready) {
    contender.unavailable = ready.error().message;
    return contender;
  }
  // Whoever refreshes the inputs keeps neither them nor the job: both know the workload.
  inputs->workload.on_refresh([known = std::weak_ptr(job)]() -> Status {
    const auto alive = known.lock();
    return alive ? alive->load() : Status(Unit{});
  });
  contender.batch_us = [job](std::int64_t first, std::int64_t count) -> Result<double> {
    const auto answer =
        job->host().ask({{"command", "run"}, {"id", job->id}, {"first", first}, {"count", count}});
    if (!answer) return answer.error();
    return answer->at("us").get<double>();
  };
  contender.forget = [job] { return job->host().tell({{"command", "forget"}, {"id", job->id}}); };
  for (std::size_t o = 0; o < inputs->workload.outputs.size(); ++o) {
    contender.outputs.push_back(
        {.poison =
             [job, o](std::uint8_t byte) {
               return job->host().tell(
                   {{"command", "poison"}, {"id", job->id}, {"output", o}, {"byte", byte}});
             },
         .read = [job, o] { return read_output(*job, o); }});
  }
  return contender;
}

// Writes the inputs as files, now and after each change.
Result<std::shared_ptr<PeerInputs>> write_inputs(const HostPtr& host, const PeerWorkload& workload) {
  auto inputs = std::make_shared<PeerInputs>(PeerInputs{host, workload, host->next_id++});
  workload.on_refresh([known = std::weak_ptr(inputs)]() -> Status {  // before the contenders load
    const auto alive = known.lock();
    return alive ? alive->write() : Status(Unit{});
  });
  if (Status written = inputs->write(); !written) return written.error();
  return inputs;
}

class TorchPeers final : public Peers {
 public:
  // `keeping`: on the CPU, a second process that keeps its pages; otherwise null.
  TorchPeers(HostPtr host, HostPtr keeping) : host_(std::move(host)), keeping_(std::move(keeping)) {}

  std::vector<Contender> contenders(const PeerWorkload& workload) override {
    if (!workload.unavailable.empty()) return {{.name = "torch", .unavailable = workload.unavailable}};
    const auto inputs = write_inputs(host_, workload);
    if (!inputs) return {{.name = "torch", .unavailable = inputs.error().message}};
    std::vector<Contender> all = {prepare(*inputs, "torch")};
    if (keeping_) {
      const auto own = write_inputs(keeping_, workload);
      if (own) all.push_back(prepare(*own, "torch", kKeptName));
    }
    if (host_->options.device == "cpu") return all;
    if (host_->facts.at("compile").get<bool>()) all.push_back(prepare(*inputs, "torch.compile"));
    for (const char* mode : more_modes(workload)) all.push_back(prepare(*inputs, mode));
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
    const auto inputs = write_inputs(host_, wide);
    if (!inputs) return inputs.error();
    Contender job = prepare(*inputs, "float64");
    if (!job.unavailable.empty()) return failure(Failure::Kind::device, job.unavailable);
    return Truth([job](std::int64_t iteration) -> Result<std::vector<std::vector<double>>> {
      if (const auto ran = job.batch_us(iteration, 1); !ran) return ran.error();
      std::vector<std::vector<double>> all;
      for (const OutputAccess& output : job.outputs) {
        auto values = output.read();
        if (!values) return values.error();
        all.push_back(std::move(*values));
      }
      if (Status forgotten = job.forget(); !forgotten) return forgotten.error();
      return all;
    });
  }

  std::string describe() const override {
    const std::string triton = host_->facts.at("triton");
    return fmt::format("PyTorch {}{}", host_->facts.at("torch").get<std::string>(),
                       triton.empty() ? "" : ", Triton " + triton);
  }

 private:
  // What PyTorch has for this work beside its ordinary functions; where it lacks it, the row says so.
  std::vector<const char*> more_modes(const PeerWorkload& workload) const {
    if (workload.target == "elu" && !host_->facts.at("triton").get<std::string>().empty()) return {"triton"};
    if (workload.target.starts_with("attention")) return {"cudnn", "flex_attention"};
    if (workload.target == "grouped_gemm") return {"torch._grouped_mm"};
    if (workload.target == "linear_cross_entropy") return {"torch, in chunks"};
    return {};
  }

  HostPtr host_, keeping_;
};

class NoPeers final : public Peers {
 public:
  explicit NoPeers(std::string why) : why_(std::move(why)) {}
  std::vector<Contender> contenders(const PeerWorkload&) override {
    std::vector<Contender> all;
    all.push_back({.name = "torch", .unavailable = why_});
    return all;
  }
  Result<Truth> truth(const PeerWorkload&, DType) override {
    return failure(Failure::Kind::not_found, why_);
  }
  std::string describe() const override { return why_; }

 private:
  std::string why_;
};

// Starts the script with one interpreter; a Failure when it has no PyTorch, PyTorch no such device, or the
// script ends.
Result<HostPtr> start(const std::string& python, const PeerOptions& options,
                      std::vector<std::string> variables = {}) {
  variables.emplace_back(kSleepBetweenCalls);
  auto host = std::make_shared<Host>();
  host->options = options;
  const std::string script = host->folder.path() + "/peer.py";
  std::ofstream(script, std::ios::binary) << embedded::peer_script;
  auto process = PeerProcess::start(python, script, variables);
  if (!process) return process.error();
  host->process.emplace(std::move(*process));
  auto facts = host->ask({{"command", "hello"}, {"threads", options.threads}});
  if (!facts) return failure(Failure::Kind::not_found, fmt::format("{}: {}", python, facts.error().message));
  if (options.device != "cpu" && !facts->at("cuda").get<bool>())
    return failure(Failure::Kind::not_found, fmt::format("{}'s PyTorch sees no GPU", python));
  host->facts = std::move(*facts);
  return host;
}

}  // namespace

std::shared_ptr<Peers> open_peers(const PeerOptions& options) {
  std::vector<std::string> interpreters = {options.python};
  if (options.python.empty()) interpreters = {"python3", "/usr/bin/python3"};
  std::string why;
  for (const std::string& python : interpreters) {
    try {
      auto host = start(python, options);
      if (host && options.device == "cpu") {
        auto keeping = start(python, options, {std::begin(kKeepPages), std::end(kKeepPages)});
        return std::make_shared<TorchPeers>(std::move(*host), keeping ? std::move(*keeping) : nullptr);
      }
      if (host) return std::make_shared<TorchPeers>(std::move(*host), nullptr);
      why += (why.empty() ? "" : "; ") + host.error().message;
    } catch (const Error& error) {
      why += (why.empty() ? "" : "; ") + std::string(error.what());
    }
  }
  return std::make_shared<NoPeers>(why + " (Debian: python3-torch; --python names another interpreter)");
}

}  // namespace tilewright::lab
