// tw devices: what this machine has, what each device is made of, and what it was measured to do at best.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include <nlohmann/json.hpp>

#include <tilewright/base/thread_pool.h>
#include <tilewright/perf/cost.h>

#include "base/interrupt.h"
#include "runtime/binary_cache.h"
#include "runtime/device_name.h"
#include "runtime/probe.h"
#include "tw/command/arguments.h"
#include "tw/command/commands.h"
#include "tw/command/number_checks.h"
#include "tw/command/output.h"

namespace tilewright::tw {

namespace {

using Json = nlohmann::ordered_json;
using perf::with_prefix;

struct DevicesInput {
  std::string device, cache = "auto";
  int threads = 0;
  double seconds = 0.25;
  bool probe = false, force = false;
  OutputOptions output;
};

// A device that was looked for: opened, or why not.
struct Found {
  std::string name;
  std::shared_ptr<runtime::Device> device;
  Failure why;
};

std::vector<Found> find_devices(const DevicesInput& input) {
  checked_threads(input.threads);
  const auto open = [&](const std::string& name) {
    auto device = runtime::Device::open(name, {.threads = input.threads});
    return device ? Found{name, *device, {}} : Found{name, nullptr, device.error()};
  };
  if (!input.device.empty()) {
    std::vector<Found> one = {open(input.device)};
    if (!one[0].device) give_up(one[0].why, one[0].why.message);
    return one;
  }
  std::vector<Found> all;
  for (const runtime::BackendKind& kind : runtime::backend_kinds()) {
    const auto named = [&](int ordinal) {
      return runtime::DeviceName{std::string(kind.name), ordinal}.full();
    };
    all.push_back(open(named(0)));
    for (int i = 1; kind.numbered && all.back().device; ++i) {
      Found next = open(named(i));
      if (!next.device) break;
      all.push_back(std::move(next));
    }
  }
  return all;
}

// The interpreter says what kernels mean, on any machine: nothing of it is measured.
bool is_interpreter(const runtime::Device& device) {
  return device.target().kind == tile::TargetKind::reference;
}

std::string rates_text(const perf::Hardware& h) {
  std::string all;
  const auto line = [&all](const std::string& label, const std::string& text) {
    all += fmt::format("    {:<18}{}\n", label, text);
  };
  const auto traffic = [&](const std::string& name, const perf::Traffic& t) {
    std::string text;
    for (const auto& [kind, figure] : {std::pair{"read", t.read}, {"write", t.write}, {"copy", t.copy}})
      if (figure)
        text += fmt::format("{}{} {:>8}B/s", text.empty() ? "" : ",  ", kind, with_prefix(figure->value));
    if (!text.empty()) line(name, text);
  };
  for (const perf::MemoryLevel& level : h.levels) traffic(level.name, level.traffic);
  traffic("memory", h.memory_traffic);
  for (const auto& [unit, rates] : {std::pair{"multiply-add", &h.vector}, {"dot", &h.matrix}})
    for (const perf::MathRate& r : *rates)
      line(fmt::format("{} {}", unit, name(r.dtype)),
           fmt::format("{}FLOP/s", with_prefix(r.flops_per_s.value)));
  if (h.launch_s)
    line("launch", fmt::format("{}s a kernel, one after another", with_prefix(h.launch_s->value)));
  if (h.graph_launch_s)
    line("launch in a graph", fmt::format("{}s a kernel", with_prefix(h.graph_launch_s->value)));
  return all;
}

std::string to_text(const std::vector<Found>& all, const std::string& cache) {
  std::string text;
  for (const Found& found : all) {
    if (!found.device) {
      text += fmt::format("{}: not available: {}\n", found.name, found.why.message);
      continue;
    }
    text += fmt::format("{}: {}\n", found.name, found.device->target().name);
    for (const backends::DeviceFact& fact : found.device->backend().facts())
      if (!fact.text.empty() && fact.key != "processor")
        text += fmt::format("  {:<30}  {}\n", fact.key, fact.text);
    if (is_interpreter(*found.device)) continue;
    const auto ceilings = runtime::stored_ceilings(*found.device, cache);
    if (!ceilings) {
      const bool none = ceilings.error().kind == Failure::Kind::not_found;
      text += fmt::format("  {}\n", none ? "not measured; run tw devices --probe" : ceilings.error().message);
      continue;
    }
    text += fmt::format("  measured ({}):\n", ceilings->measurements.back().how);
    text += rates_text(perf::to_hardware(*ceilings));
  }
  return text;
}

Json to_json(const Found& found, const std::string& cache) {
  Json out = {{"device", found.name}, {"available", found.device != nullptr}};
  if (!found.device) {
    out["reason"] = found.why.message;
    return out;
  }
  out["name"] = found.device->target().name;
  out["limits"] = Json::object();
  for (const backends::DeviceFact& fact : found.device->backend().facts())
    out["limits"][fact.key] = fact.value > 0 ? Json(fact.value) : Json(fact.text);
  out["ceilings"] = nullptr;
  const auto ceilings = runtime::stored_ceilings(*found.device, cache);
  if (ceilings) {
    out["ceilings"] = Json::object();
    for (const perf::Measurement& m : ceilings->measurements)
      out["ceilings"][m.what] = {{"value", m.value}, {"how", m.how}};
    out["ceilings_file"] = runtime::ceilings_path(*found.device, cache);
  } else {
    out["reason"] = ceilings.error().message;
  }
  return out;
}

void probe_all(const std::vector<Found>& all, const DevicesInput& input, const std::string& cache) {
  if (cache.empty())
    throw Error("--probe has nowhere to store what it measures: set HOME or give a folder with --cache");
  const InterruptGuard guard;
  std::string busy;
  for (const Found& found : all) {
    if (!found.device || (is_interpreter(*found.device) && input.device.empty())) continue;
    ProgressLine progress(found.name, input.output.progress());
    const auto probed =
        runtime::probe(*found.device, {.seconds_each = input.seconds,
                                       .progress = [&](std::string_view what) { progress.step(what); },
                                       .stop = InterruptGuard::interrupted});
    progress.clear();
    if (InterruptGuard::interrupted()) {
      fmt::print(stderr, "{}: interrupted; nothing was stored for it\n", found.name);
      throw CLI::RuntimeError(130);
    }
    if (!probed) throw std::runtime_error(probed.error().message);
    if (!probed->busy.empty() && !input.force) {
      busy = fmt::format("{}: the machine was busy: {}", found.name, probed->busy);
      continue;
    }
    const std::string path = runtime::ceilings_path(*found.device, cache);
    const auto stored = runtime::store_best(probed->ceilings, path);
    if (!stored) throw std::runtime_error(stored.error().message);
    if (input.output.quiet) continue;
    for (const std::string& left : probed->left_out)
      fmt::print(stderr, "{}: left out {}\n", found.name, left);
    fmt::print(stderr, "{}: {} figures stored in {}, the best seen of each\n", found.name,
               stored->measurements.size(), path);
    if (!probed->busy.empty())
      fmt::print(stderr, "{}: marked as probed on a busy machine: {}\n", found.name, probed->busy);
  }
  if (!busy.empty())
    throw std::runtime_error(
        fmt::format("{}; nothing was stored for it. Probe again when it is quiet, or with --force", busy));
}

void run(const DevicesInput& input) {
  const std::vector<Found> all = find_devices(input);
  const std::string cache = cache_argument(input.cache);
  if (input.probe) probe_all(all, input, cache);
  if (!input.output.as_json()) return write_results(input.output, to_text(all, cache));
  Json out = Json::array();
  for (const Found& found : all) out.push_back(to_json(found, cache));
  write_results(input.output, out.dump(2) + "\n");
}

}  // namespace

void add_devices(CLI::App& app) {
  CLI::App* sub =
      app.add_subcommand("devices", "The devices of this machine, their limits and measured ceilings");
  auto in = std::make_shared<DevicesInput>();
  sub->add_flag(
      "--probe", in->probe,
      "Measure bandwidths of each cache level, multiply-add rates and launch latency, and store them "
      "for tw bench, tw explain and tw roofline --hw here");
  sub->add_flag("--force", in->force,
                "Store what was probed beside other work, too; the figures are marked as such");
  sub->add_option("--device", in->device, "Only this one")->type_name("DEVICE");
  sub->add_option("--seconds", in->seconds, "Time of measuring for each figure (default 0.25)")
      ->check(positive());
  sub->add_option("--threads", in->threads, "CPU threads (default: every allowed core)");
  sub->add_option("--cache", in->cache, "Folder that the figures are stored in (default: the user's cache)")
      ->type_name("FOLDER");
  add_output_options(*sub, in->output, "a list, an object for each device");
  sub->callback([in] { run(*in); });
}

}  // namespace tilewright::tw
