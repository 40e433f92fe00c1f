// tw devices, cache and doctor as a user meets them.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <set>

#include "tw/command/run_command.h"

namespace tilewright::tw {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

// A cache folder of its own, empty.
std::string fresh_cache(const std::string& name) {
  const std::string folder = work_folder() + "/" + name;
  fs::remove_all(folder);
  return folder;
}

TEST(Devices, SaysWhatIsThereAndThatNothingWasMeasured) {
  const std::string cache = fresh_cache("devices");
  const Outcome text = run_tw("devices --cache " + cache);
  EXPECT_EQ(text.exit_code, 0) << text.output;
  EXPECT_TRUE(contains(text.output, "cpu: ")) << text.output;
  EXPECT_TRUE(contains(text.output, "not measured; run tw devices --probe")) << text.output;
  const Json all = Json::parse(run_tw("devices --json --cache " + cache).output);
  EXPECT_EQ(all.at(0).at("device"), "cpu");
  EXPECT_GT(all.at(0).at("limits").at("cores").get<double>(), 0);
  EXPECT_GT(all.at(0).at("limits").at("memory_bytes").get<double>(), 1e9);
  EXPECT_TRUE(all.at(0).at("ceilings").is_null());
  EXPECT_EQ(all.at(1).at("device"), "cuda:0");
  EXPECT_TRUE(all.at(1).at("available").get<bool>() || !all.at(1).at("reason").get<std::string>().empty());
  EXPECT_EQ(all.back().at("device"), "reference");
  EXPECT_TRUE(contains(text.output, "\nreference: float64 interpreter\n")) << text.output;
}

TEST(Devices, ProbedFiguresServeEveryCommand) {
  // Ceilings go into a user's cache, where --hw finds them.
  const std::string home = fresh_cache("home"), prefix = "XDG_CACHE_HOME=" + home;
  const Outcome probed = run_tw("devices --device cpu --probe --seconds 0.001 --force", prefix);
  ASSERT_EQ(probed.exit_code, 0) << probed.output;
  EXPECT_TRUE(contains(probed.output, "figures stored in " + home + "/tilewright/ceilings/"))
      << probed.output;
  EXPECT_TRUE(contains(probed.output, "measured (tw devices --probe, ")) << probed.output;
  const Json all = Json::parse(run_tw("devices --device cpu --json", prefix).output);
  for (const char* key :
       {"memory.read_bytes_per_s", "memory.copy_bytes_per_s", "vector.f32", "vector.f64", "launch_s"})
    EXPECT_GT(all.at(0).at("ceilings").at(key).at("value").get<double>(), 0) << key;
  const Outcome roofline = run_tw("roofline dot --n 1000 --dtype f32 --hw here --json", prefix);
  ASSERT_EQ(roofline.exit_code, 0) << roofline.output;
  EXPECT_EQ(Json::parse(roofline.output).at("hardware"), "cpu");
  const Outcome explained = run_tw("explain copy --set n=4096 --no-time", prefix);
  EXPECT_TRUE(contains(explained.output, "floors: tw devices --probe, ")) << explained.output;
  // Not the exit status: ceilings probed for a millisecond may lie below what the bench then measures.
  run_tw("bench run copy --set n=4096 --budget 0.05 --output copy.json", prefix);
  const Json run = Json::parse(std::ifstream(work_folder() + "/copy.json"));
  EXPECT_TRUE(contains(run.back().dump(), "tw devices --probe")) << run.back().dump();
}

TEST(Devices, WhatIsProbedBesideOtherWorkIsNotStored) {
  // The other work is a loop on each processor.
  const std::string cache = fresh_cache("busy");
  const Outcome probed =
      run_tw("devices --device cpu --probe --seconds 0.02 --cache " + cache,
             "for i in $(seq $(nproc)); do timeout 60 sh -c 'while :; do :; done' >/dev/null 2>&1 & "
             "pids=\"$pids $!\"; done; trap 'kill $pids' EXIT; timeout 55");
  EXPECT_EQ(probed.exit_code, 1) << probed.output;
  EXPECT_TRUE(contains(probed.output, "tw: cpu: the machine was busy: others took ")) << probed.output;
  EXPECT_TRUE(contains(probed.output, "nothing was stored for it")) << probed.output;
  EXPECT_FALSE(fs::exists(cache + "/ceilings"));
}

TEST(Devices, CtrlCStoresNothing) {
  const std::string cache = fresh_cache("stopped");
  const Outcome outcome = run_tw("devices --device cpu --probe --seconds 60 --cache " + cache,
                                 "timeout --preserve-status -s INT 2");
  EXPECT_EQ(outcome.exit_code, 130) << outcome.output;
  EXPECT_TRUE(contains(outcome.output, "interrupted; nothing was stored")) << outcome.output;
  EXPECT_FALSE(fs::exists(cache + "/ceilings"));
}

TEST(Devices, MistakesAreNamed) {
  const Outcome unknown = run_tw("devices --device tpu");
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_TRUE(contains(unknown.output, "unknown device 'tpu'")) << unknown.output;
  EXPECT_EQ(run_tw("devices --probe --seconds 0").exit_code, 2);
}

TEST(Cache, IsCountedVerifiedAndCleared) {
  const std::string cache = fresh_cache("kernels"), option = " --cache " + cache;
  EXPECT_TRUE(contains(run_tw("cache info" + option).output, "entries    0"));
  ASSERT_EQ(run_tw("explain elu --set n=4096 --no-time" + option).exit_code, 0);
  const Json info = Json::parse(run_tw("cache info --json" + option).output);
  EXPECT_GE(info.at("entries").get<int>(), 1);
  EXPECT_GT(info.at("bytes").get<double>(), 100);
  EXPECT_GT(info.at("limit_bytes").get<double>(), 1e6);
  EXPECT_EQ(run_tw("cache verify" + option).exit_code, 0);
  // One byte of one entry.
  std::string path;
  for (const auto& entry : fs::directory_iterator(cache))
    if (entry.path().extension() == ".twk") path = entry.path().string();
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-1, std::ios::end);
  file.put('\x5a');
  file.close();
  const Outcome damaged = run_tw("cache verify" + option);
  EXPECT_EQ(damaged.exit_code, 1);
  EXPECT_TRUE(contains(damaged.output, "damaged: " + path)) << damaged.output;
  EXPECT_EQ(run_tw("explain elu --set n=4096 --no-time" + option).exit_code, 0)
      << "a damaged entry is a miss";
  const Outcome cleared = run_tw("cache clear" + option);
  EXPECT_EQ(cleared.exit_code, 0);
  EXPECT_TRUE(contains(cleared.output, "removed ")) << cleared.output;
  EXPECT_TRUE(contains(run_tw("cache info" + option).output, "entries    0"));
}

TEST(Cache, AFolderThatCannotBeListedIsNotAnEmptyOne) {
  const std::string path = fresh_cache("a_file");
  std::ofstream(path) << "text\n";
  for (const std::string command : {"info", "verify", "clear"}) {
    const Outcome outcome = run_tw(fmt::format("cache {} --cache {}", command, path));
    EXPECT_EQ(outcome.exit_code, 1) << outcome.output;
    EXPECT_EQ(outcome.output, "tw: cache " + path + ": Not a directory\n");
  }
  EXPECT_TRUE(fs::exists(path));
}

TEST(Doctor, FindsThisMachineWell) {
  const std::string cache = fresh_cache("doctor");
  const Outcome outcome = run_tw("doctor --json --python /nonexistent --cache " + cache);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  const Json report = Json::parse(outcome.output);
  EXPECT_TRUE(report.at("well").get<bool>());
  std::set<std::string> seen;
  for (const Json& finding : report.at("findings")) {
    seen.insert(finding.at("what").get<std::string>());
    const bool ok = finding.at("state") == "ok";
    EXPECT_TRUE(ok || !finding.at("advice").get<std::string>().empty()) << finding;
  }
  for (const char* what : {"CPU backend", "Clang", "NVRTC", "CUDA driver", "cache", "cache limits",
                           "huge pages", "frequency governor", "peers", "ceilings of cpu"})
    EXPECT_TRUE(seen.count(what)) << what;
}

TEST(Doctor, ACacheThatCannotBeWrittenIsBad) {
  std::ofstream(work_folder() + "/file") << "no folder";
  const Outcome outcome = run_tw("doctor --python /nonexistent --cache file");
  EXPECT_EQ(outcome.exit_code, 1) << outcome.output;
  EXPECT_TRUE(contains(outcome.output, "BAD   cache")) << outcome.output;
  EXPECT_TRUE(contains(outcome.output, "XDG_CACHE_HOME")) << outcome.output;
}

}  // namespace
}  // namespace tilewright::tw
