// Processes of peers, their inputs and their jobs.
#include "peers/peer_host.h"

#include <fmt/format.h>

#include <cstdio>
#include <fstream>

namespace tilewright::embedded {
extern const std::string_view peer_script, programs_script, training_script, loading_script, truth_script;
}

namespace tilewright::lab {

namespace {

using Json = nlohmann::json;

std::size_t bytes_of(DType dtype, const Shape& shape) {
  return static_cast<std::size_t>(shape.size()) * size_bytes(dtype);
}

}  // namespace

Result<PeerHostPtr> PeerHost::start(const std::string& python, const PeerOptions& options,
                                    std::vector<std::string> variables) {
  PeerHostPtr host(new PeerHost);
  host->options_ = options;
  host->python_ = python;
  host->variables_ = std::move(variables);
  std::ofstream(host->folder() + "/programs.py", std::ios::binary) << embedded::programs_script;
  std::ofstream(host->folder() + "/training.py", std::ios::binary) << embedded::training_script;
  std::ofstream(host->folder() + "/loading.py", std::ios::binary) << embedded::loading_script;
  std::ofstream(host->folder() + "/truth.py", std::ios::binary) << embedded::truth_script;
  std::ofstream(host->folder() + "/peer.py", std::ios::binary) << embedded::peer_script;
  if (Status started = host->start_process(); !started) return started.error();
  return host;
}

Status PeerHost::start_process() {
  auto process = PeerProcess::start(python_, folder() + "/peer.py", variables_);
  if (!process) return process.error();
  process_.emplace(std::move(*process));
  return Unit{};
}

Status PeerHost::revive() {
  if (process_) return Unit{};
  if (Status started = start_process(); !started) return started;
  return greet();
}

Status PeerHost::greet() {
  auto facts = ask({{"command", "hello"},
                    {"threads", options_.threads},
                    {"device", options_.device},
                    {"trace", options_.device_time == DeviceTime::trace}});
  if (!facts) {
    process_.reset();
    return failure(Failure::Kind::not_found, fmt::format("{}: {}", python_, facts.error().message));
  }
  facts_ = std::move(*facts);
  ++generation_;
  if (options_.device != "cpu" && !facts_.at("cuda").get<bool>())
    return failure(Failure::Kind::not_found, fmt::format("{}'s PyTorch sees no GPU", python_));
  return Unit{};
}

Result<Json> PeerHost::ask(const Json& request) {
  if (!process_) return failure(Failure::Kind::io, "the peer's process has ended");
  const auto line = process_->ask(request.dump());
  if (!line) {
    process_.reset();
    return line.error();
  }
  Json answer = Json::parse(*line, nullptr, false);
  if (answer.is_discarded()) return failure(Failure::Kind::io, "the peer's answer is not JSON: " + *line);
  if (!answer.contains("error")) return answer;
  if (answer.value("ends", false)) process_.reset();
  const bool memory = answer.value("no_memory", false);
  return failure(memory ? Failure::Kind::out_of_memory : Failure::Kind::device,
                 answer["error"].get<std::string>());
}

Status PeerHost::tell(const Json& request) {
  const auto answer = ask(request);
  if (!answer) return answer.error();
  return Unit{};
}

Result<std::shared_ptr<PeerInputs>> PeerInputs::write(const PeerHostPtr& host, const PeerWorkload& workload) {
  std::shared_ptr<PeerInputs> inputs(new PeerInputs(host, workload));
  // Whoever refreshes the inputs does not keep these, and is not told when they cannot be written: that is
  // the peers' own misfortune, told when they are next asked for something.
  workload.on_refresh([known = std::weak_ptr(inputs)]() -> Status {
    if (const auto alive = known.lock()) {
      alive->written_ = alive->write_files();
      alive->loaded_ = false;
    }
    return Unit{};
  });
  if (Status written = inputs->write_files(); !written) return written.error();
  return inputs;
}

PeerInputs::~PeerInputs() {
  (void)host_->tell({{"command", "forget"}, {"id", id_}});
  for (std::size_t i = 0; i < workload_.inputs.size(); ++i) {
    for (std::int64_t c = 0; c < workload_.inputs[i].copies; ++c) std::remove(file(i, c).c_str());
  }
}

std::string PeerInputs::file(std::size_t input, std::int64_t copy) const {
  return fmt::format("{}/{}-in{}-{}", host_->folder(), id_, input, copy);
}

Status PeerInputs::write_files() const {
  for (std::size_t i = 0; i < workload_.inputs.size(); ++i) {
    const PeerWorkload::Input& input = workload_.inputs[i];
    for (std::int64_t c = 0; c < input.copies; ++c) {
      Status written = with_mapped_file(file(i, c), bytes_of(input.dtype, input.shape),
                                        [&](void* to) { return workload_.read_input(i, c, to); });
      if (!written) return written;
    }
  }
  return Unit{};
}

Json PeerInputs::describe() const {
  Json all = Json::array();
  for (std::size_t i = 0; i < workload_.inputs.size(); ++i) {
    const PeerWorkload::Input& input = workload_.inputs[i];
    Json files = Json::array();
    for (std::int64_t c = 0; c < input.copies; ++c) files.push_back(file(i, c));
    all.push_back(
        {{"dtype", name(input.dtype)}, {"shape", input.shape.extents()}, {"files", std::move(files)}});
  }
  return all;
}

Status PeerInputs::bring() {
  if (!written_) return written_;
  if (generation_ != host_->generation()) {
    loaded_ = false;
    Status told = host_->tell({{"command", "inputs"},
                               {"id", id_},
                               {"device", host_->options().device},
                               {"copies", workload_.copies},
                               {"inputs", describe()}});
    if (!told) return told;
    generation_ = host_->generation();
  }
  if (!loaded_) {
    if (Status told = host_->tell({{"command", "load"}, {"id", id_}}); !told) return told;
    loaded_ = true;
  }
  return Unit{};
}

PeerJob::~PeerJob() {
  (void)inputs_->host().tell({{"command", "drop"}, {"id", id_}});
  std::remove(output_file().c_str());
}

std::string PeerJob::output_file() const { return fmt::format("{}/{}-out", inputs_->host().folder(), id_); }

Status PeerJob::bring() {
  PeerHost& host = inputs_->host();
  if (Status alive = host.revive(); !alive) return alive;
  if (Status brought = inputs_->bring(); !brought) return brought;
  if (generation_ == host.generation()) return Unit{};
  Json request = {{"command", "prepare"},
                  {"id", id_},
                  {"inputs", inputs_->id()},
                  {"mode", mode_},
                  {"work", inputs_->workload().target},
                  {"parameters", Json::object()},
                  {"source", inputs_->workload().source}};
  for (const auto& [key, value] : inputs_->workload().parameters) request["parameters"][key] = value;
  if (Status told = host.tell(request); !told) return told;
  generation_ = host.generation();
  // Outputs that another's end took with it: the same call makes them again.
  if (last_ < 0) return Unit{};
  return host.tell({{"command", "run"}, {"id", id_}, {"first", last_}, {"count", 1}});
}

Result<Json> PeerJob::ask(Json request) {
  if (ended_) return *ended_;
  request["id"] = id_;
  PeerHost& host = inputs_->host();
  Result<Json> answer = Json();
  if (Status brought = bring(); !brought)
    answer = brought.error();
  else
    answer = host.ask(request);
  if (!answer && !host.is_alive()) ended_ = answer.error();
  return answer;
}

Result<double> PeerJob::run(const char* command, std::int64_t first, std::int64_t count) {
  const auto answer = ask({{"command", command},
                           {"first", first},
                           {"count", count},
                           {"gaps", inputs_->host().options().device_time == DeviceTime::events}});
  if (!answer) return answer.error();
  last_ = first + count - 1;
  waited_us_ += answer->value("waited_us", 0.0);
  return answer->at("us").get<double>();
}

Result<double> PeerJob::call_us(std::int64_t first, std::int64_t count) { return run("run", first, count); }

Result<double> PeerJob::device_us(std::int64_t first, std::int64_t count) {
  return run("device", first, count);
}

Status PeerJob::poison(std::size_t output, std::uint8_t byte) {
  const auto answer = ask({{"command", "poison"}, {"output", output}, {"byte", byte}});
  if (!answer) return answer.error();
  last_ = -1;
  return Unit{};
}

Status PeerJob::release() {
  last_ = -1;
  const auto answer = ask({{"command", "release"}});
  if (!answer) return answer.error();
  return Unit{};
}

Status PeerJob::read(std::size_t output, const ElementsVisitor& visit) {
  const OutputSpec& spec = inputs_->workload().outputs[output];
  return with_mapped_file(output_file(), bytes_of(spec.dtype, spec.shape), [&](void* content) -> Status {
    const auto written = ask({{"command", "read"}, {"output", output}, {"file", output_file()}});
    if (!written) return written.error();
    visit({content, spec.dtype, 0, spec.shape.size()});
    return Unit{};
  });
}

}  // namespace tilewright::lab
