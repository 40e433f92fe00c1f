// Judging against expectations, and storing them.
#include "harness/run/expectations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tilewright::lab {

namespace {

bool overlap(const Interval& a, const Interval& b) { return a.low <= b.high && b.low <= a.high; }

// Why a row's time may not be relied on; empty when it may.
std::string unusable(const Row& row) {
  if (row.verdict == Verdict::impossible) return "faster than the measured ceilings allow";
  if (!row.verified) return "not verified";
  if (!row.median_us || !row.ci95_us) return "not timed";
  return "";
}

Outcome judge(const Row& row, const Expectation& expected, const ExpectationRules& rules) {
  const double ratio = *row.median_us / expected.median_us;
  if (std::fabs(ratio - 1) <= rules.tolerance || overlap(*row.ci95_us, expected.ci95_us))
    return Outcome::as_expected;
  return ratio > 1 ? Outcome::regression : Outcome::improvement;
}

std::string describe(const Row& row, const Expectation& expected) {
  return fmt::format("{:.4g} us, expected {:.4g} us ({:+.0f} %)", *row.median_us, expected.median_us,
                     100 * (*row.median_us / expected.median_us - 1));
}

ExpectationCheck check_row(const Row& row, const Expectation* expected, const ExpectationRules& rules,
                           const Rerun& rerun) {
  ExpectationCheck check{.key = row.key()};
  if (const std::string why = unusable(row); !why.empty()) {
    check.outcome = Outcome::unusable;
    check.text = why;
    return check;
  }
  check.median_us = *row.median_us;
  if (!expected) {
    check.text = fmt::format("{:.4g} us, nothing expected yet", *row.median_us);
    return check;
  }
  check.expected_us = expected->median_us;
  check.outcome = judge(row, *expected, rules);
  check.text = describe(row, *expected);
  while (check.outcome != Outcome::as_expected && rerun && check.reruns < rules.reruns) {
    const auto again = rerun(row);
    if (!again || !unusable(*again).empty()) break;
    ++check.reruns;
    const Outcome outcome = judge(*again, *expected, rules);
    if (outcome == check.outcome) continue;
    check.outcome = Outcome::as_expected;
    check.median_us = *again->median_us;
    check.text += fmt::format("; not confirmed: {}", describe(*again, *expected));
    return check;
  }
  if (check.outcome != Outcome::as_expected && check.reruns > 0) {
    check.text += fmt::format(", confirmed by {} reruns", check.reruns);
  }
  return check;
}

// Why a row may not become an expectation; empty when it may.
std::string refusal(const Row& row, const Expectation* old, Regressions regressions,
                    const ExpectationRules& rules) {
  if (std::string why = unusable(row); !why.empty()) return why;
  if (row.samples < rules.least_samples)
    return fmt::format("{} samples, at least {} are needed", row.samples, rules.least_samples);
  if (row.roofline && *row.roofline > rules.most_roofline) {
    return fmt::format("{:.0f} % of the roofline is above what the machine can do", 100 * *row.roofline);
  }
  if (old && regressions == Regressions::refuse && judge(row, *old, rules) == Outcome::regression) {
    return fmt::format("slower than what is stored: {}", describe(row, *old));
  }
  return "";
}

Expectation make_expectation(const Row& row, const Environment& e) {
  Expectation x{row.target, row.contender,  row.device,   row.shape,
                row.dtype,  *row.median_us, *row.ci95_us, row.samples};
  x.device_us = row.device_us;
  x.chosen = row.chosen;
  x.rate = row.rate;
  x.unit = row.unit;
  x.roofline = row.roofline;
  x.speedup = row.speedup;
  x.commit = e.git_commit;
  x.date = e.date;
  x.cpu = e.cpu_model;
  x.gpu = e.gpu_name;
  x.driver = e.gpu_driver;
  x.kernel = e.kernel;
  x.compiler = e.compiler;
  x.governor = e.governor;
  return x;
}

// Why a stored entry is not to be trusted; empty when it is.
std::string distrust(const Expectation& e, const ExpectationRules& rules) {
  if (!(e.median_us > 0)) return "its time is not positive";
  if (!(e.ci95_us.low <= e.median_us && e.median_us <= e.ci95_us.high))
    return "its median is outside its interval";
  if (e.samples < rules.least_samples) return fmt::format("it rests on {} samples", e.samples);
  if (e.roofline && *e.roofline > rules.most_roofline) return "it is above the roofline";
  if (e.commit.empty() || e.date.empty()) return "it does not say where it comes from";
  return "";
}

}  // namespace

std::string Expectation::key() const { return Row{target, contender, device, shape, dtype}.key(); }

const Expectation* Expectations::find(const std::string& row_key) const {
  const auto it =
      std::find_if(entries.begin(), entries.end(), [&](const auto& e) { return e.key() == row_key; });
  return it == entries.end() ? nullptr : &*it;
}

Result<Expectations> read_expectations(const std::string& folder, const std::string& key) {
  const std::string path = fmt::format("{}/{}.json", folder, key);
  const auto text = read_file(path);
  if (!text && text.error().kind == Failure::Kind::not_found) return Expectations{key, {}};
  if (!text) return text.error();
  auto expectations = parse_expectations(*text);
  if (!expectations)
    return failure(Failure::Kind::invalid, fmt::format("{}: {}", path, expectations.error().message));
  if (expectations->key != key) {
    return failure(Failure::Kind::invalid,
                   fmt::format("{}: is for the hardware '{}'", path, expectations->key));
  }
  for (const Expectation& e : expectations->entries) {
    if (const std::string why = distrust(e, {}); !why.empty()) {
      return failure(Failure::Kind::invalid, fmt::format("{}: {}: {}; remove the entry", path, e.key(), why));
    }
  }
  return expectations;
}

Status write_expectations(const Expectations& expectations, const std::string& folder) {
  return write_file(fmt::format("{}/{}.json", folder, expectations.key), to_json(expectations));
}

std::string_view name(Outcome outcome) {
  switch (outcome) {
    case Outcome::as_expected:
      return "ok";
    case Outcome::regression:
      return "REGRESSION";
    case Outcome::improvement:
      return "IMPROVEMENT";
    case Outcome::unknown:
      return "new";
    case Outcome::unusable:
      return "UNUSABLE";
  }
  return "?";
}

std::vector<ExpectationCheck> check_expectations(const std::vector<Row>& rows,
                                                 const Expectations& expectations,
                                                 const ExpectationRules& rules, const Rerun& rerun) {
  std::vector<ExpectationCheck> checks;
  for (const Row& row : rows) {
    if (could_not_run(row.verdict) || row.verdict == Verdict::untimed) continue;
    checks.push_back(check_row(row, expectations.find(row.key()), rules, rerun));
  }
  return checks;
}

ExpectationUpdate update_expectations(const RunRecord& run, const Expectations& old, Regressions regressions,
                                      const ExpectationRules& rules) {
  ExpectationUpdate update{old, {}, {}};
  for (const Row& row : run.rows) {
    if (could_not_run(row.verdict)) continue;
    const std::string key = row.key();
    const Expectation* known = old.find(key);
    if (const std::string why = refusal(row, known, regressions, rules); !why.empty()) {
      update.refused.push_back(fmt::format("{}: {}", key, why));
      continue;
    }
    auto& entries = update.merged.entries;
    std::erase_if(entries, [&](const Expectation& e) { return e.key() == key; });
    entries.push_back(make_expectation(row, run.environment));
    update.accepted.push_back(fmt::format("{}: {:.4g} us", key, *row.median_us));
  }
  std::sort(update.merged.entries.begin(), update.merged.entries.end(),
            [](const Expectation& a, const Expectation& b) { return a.key() < b.key(); });
  return update;
}

}  // namespace tilewright::lab
