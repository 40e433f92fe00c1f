// The rounds of verification.
#include "harness/run/verify.h"

#include <fmt/format.h>

#include <map>

namespace tilewright::lab {

namespace {

// 0xFF… is NaN in every float type and −1 or 255 in the integers. 0x5A… is finite and odd in all: 1.5e16 in
// f32 and bf16, 203.25 in f16, 20 and 192 in the 8-bit floats.
constexpr std::uint8_t kPoisons[] = {0xFF, 0x5A};

bool overlap(const MemoryRange& a, const MemoryRange& b) {
  return a.size_bytes > 0 && b.size_bytes > 0 && a.begin < b.begin + b.size_bytes &&
         b.begin < a.begin + a.size_bytes;
}

void fail(Verification& v, std::string reason) {
  v.verified = false;
  if (v.reason.empty()) v.reason = std::move(reason);
}

// A contender that could not be asked, for a reason of its own.
void fail(Verification& v, const Contender& contender, const std::string& where, const Failure& failure) {
  v.no_memory = failure.kind == Failure::Kind::out_of_memory;
  v.gone = contender.is_foreign() && !v.no_memory;
  fail(v, where + failure.message);
}

// Keeps the worst error, measured by how much of its bound it uses up.
void merge_worst(Verification& v, const OutputCheck& check) {
  const auto used = [](double error, double bound) {
    return bound > 0 ? error / bound : (error > 0 ? 1e300 : 0);
  };
  const bool first = v.tolerance == 0 && v.max_rel_err == 0;
  if (!first && used(check.max_rel_err, check.tolerance) < used(v.max_rel_err, v.tolerance)) return;
  v.max_rel_err = check.max_rel_err;
  v.tolerance = check.tolerance;
}

Status poison(const Contender& contender, std::uint8_t byte) {
  for (const OutputAccess& output : contender.outputs) {
    if (Status s = output.poison(byte); !s) return s;
  }
  return Unit{};
}

Status run_once(const Contender& contender, std::int64_t iteration) {
  if (contender.batch_us) {
    const auto time = contender.batch_us(iteration, 1);
    if (!time) return time.error();
  } else if (Status s = contender.run(iteration); !s) {
    return s;
  }
  return contender.finish ? contender.finish() : Status(Unit{});
}

std::string aliasing(const PairInstance& instance, const Contender& contender) {
  if (!instance.input_memory) return "";
  const std::vector<MemoryRange> inputs = instance.input_memory();
  for (std::size_t o = 0; o < contender.outputs.size(); ++o) {
    if (!contender.outputs[o].memory) continue;
    const MemoryRange output = contender.outputs[o].memory();
    for (const MemoryRange& input : inputs) {
      if (overlap(output, input))
        return fmt::format("output {} lies in an input's memory", instance.outputs[o].name);
    }
  }
  return "";
}

void compare(const PairInstance& instance, const Contender& contender, const std::vector<Reference>& truth,
             std::optional<std::uint8_t> poison_byte, std::string_view when, Verification& v) {
  for (std::size_t o = 0; o < instance.outputs.size(); ++o) {
    OutputChecker checker(truth[o], instance.outputs[o], poison_byte);
    const Status read =
        contender.outputs[o].read([&](const StoredElements& elements) { checker.add(elements); });
    if (!read)
      return fail(v, contender, fmt::format("{}: output {} cannot be read: ", when, instance.outputs[o].name),
                  read.error());
    const OutputCheck check = checker.result();
    merge_worst(v, check);
    if (check.elements > 0)
      v.compared =
          std::min(v.compared, static_cast<double>(check.compared) / static_cast<double>(check.elements));
    if (!check.ok()) fail(v, fmt::format("{}: {}", when, describe(check, instance.outputs[o])));
  }
}

// One contender in one round; the inputs are fresh and `digest_before` is theirs.
void verify_round(const PairInstance& instance, const Contender& contender, int round,
                  const std::vector<Reference>& truth, const Result<std::uint64_t>& digest_before,
                  Verification& v) {
  const std::string when = fmt::format("round {}", round + 1);
  if (Status s = poison(contender, kPoisons[round]); !s)
    return fail(v, contender, when + ": poisoning: ", s.error());
  if (Status s = run_once(contender, round); !s) return fail(v, contender, when + ": ", s.error());
  if (const std::string why = aliasing(instance, contender); !why.empty()) return fail(v, when + ": " + why);
  const auto digest_after = instance.input_digest();
  if (!digest_before || !digest_after) return fail(v, when + ": the inputs cannot be read back");
  if (*digest_before != *digest_after) fail(v, when + ": the run changed its inputs");
  compare(instance, contender, truth, kPoisons[round], when, v);
}

void check_instance(const PairInstance& instance) {
  TW_CHECK(instance.reference && instance.refresh_inputs && instance.input_digest,
           "an instance has all its functions");
  TW_CHECK(!instance.outputs.empty(), "an instance has an output to verify");
  for (const Contender& contender : instance.contenders) {
    if (!contender.unavailable.empty()) continue;
    TW_CHECK(contender.run || contender.batch_us, "an available contender can run");
    TW_CHECK(contender.outputs.size() == instance.outputs.size(),
             "a contender has every output of its instance");
  }
}

}  // namespace

std::vector<Verification> verify(PairInstance& instance, std::uint64_t seed, const VerifyOptions& options) {
  check_instance(instance);
  TW_CHECK(options.rounds >= 1 && options.rounds <= static_cast<int>(std::size(kPoisons)),
           "a round has a poison");
  const auto tell = [&](const std::string& what) {
    if (options.progress) options.progress(what);
  };
  std::vector<Verification> all(instance.contenders.size());
  for (std::size_t c = 0; c < all.size(); ++c) {
    all[c].verified = instance.contenders[c].unavailable.empty();
    all[c].reason = instance.contenders[c].unavailable;
  }
  for (int round = 0; round < options.rounds; ++round) {
    bool inputs_intact = false;
    std::vector<Reference> truth;
    Result<std::uint64_t> before = std::uint64_t{0};
    for (std::size_t c = 0; c < all.size(); ++c) {
      if (!instance.contenders[c].unavailable.empty() || !all[c].verified) continue;
      if (options.stop && options.stop()) {
        fail(all[c], "interrupted");
        continue;
      }
      if (!inputs_intact) {  // the round begins, or the last contender spoilt the inputs for the next
        if (Status s = instance.refresh_inputs(seed + static_cast<std::uint64_t>(round)); !s) {
          fail(all[c], "the inputs cannot be made: " + s.error().message);
          continue;
        }
        tell("reference");
        truth = instance.reference(round);
        TW_CHECK(truth.size() == instance.outputs.size(), "one reference per output");
        before = instance.input_digest();
        inputs_intact = true;
      }
      tell("verify " + instance.contenders[c].name);
      verify_round(instance, instance.contenders[c], round, truth, before, all[c]);
      if (!all[c].verified && !all[c].no_memory && !all[c].gone) inputs_intact = false;
    }
  }
  return all;
}

Result<std::uint64_t> prepare_timed(PairInstance& instance, std::vector<Verification>& verifications,
                                    std::uint64_t seed) {
  TW_CHECK(verifications.size() == instance.contenders.size(), "one verification per contender");
  if (Status s = instance.refresh_inputs(seed + std::size(kPoisons)); !s) return s.error();
  for (std::size_t c = 0; c < verifications.size(); ++c) {
    if (!verifications[c].verified) continue;
    if (Status s = poison(instance.contenders[c], kPoisons[0]); !s)
      fail(verifications[c], instance.contenders[c], "poisoning: ", s.error());
  }
  return instance.input_digest();
}

void verify_timed(PairInstance& instance, std::uint64_t digest_before,
                  std::span<const std::int64_t> last_iteration, std::vector<Verification>& verifications) {
  TW_CHECK(last_iteration.size() == instance.contenders.size(), "one iteration per contender");
  const auto digest_after = instance.input_digest();
  const bool intact = digest_after && *digest_after == digest_before;
  std::map<std::int64_t, std::vector<Reference>> truths;  // by input copy
  for (std::size_t c = 0; c < last_iteration.size(); ++c) {
    if (last_iteration[c] < 0 || !verifications[c].verified) continue;
    if (!intact) {
      fail(verifications[c], "after the timed runs: a contender changed the inputs that all share");
      continue;
    }
    const std::int64_t copy = last_iteration[c] % instance.input_copies;
    if (!truths.contains(copy)) truths[copy] = instance.reference(copy);
    compare(instance, instance.contenders[c], truths[copy], kPoisons[0], "after the timed runs",
            verifications[c]);
  }
}

}  // namespace tilewright::lab
