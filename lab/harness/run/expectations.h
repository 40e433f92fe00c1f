// Expected medians per hardware, with where they come from: the lab's memory against which a run is judged.
#pragma once

#include <functional>

#include "harness/run/record.h"

namespace tilewright::lab {

struct Expectation {
  std::string target, contender, device, shape, dtype;
  double median_us = 0;
  Interval ci95_us;
  int samples = 0;
  std::optional<double> device_us = {};  // as in the row, and what follows
  std::string chosen = {};
  std::optional<double> rate;
  std::string unit;
  std::optional<double> roofline, speedup;
  std::string commit, date, cpu, gpu, driver, kernel, compiler, governor;  // provenance
  std::string key() const;                                                 // as Row::key
  friend bool operator==(const Expectation&, const Expectation&) = default;
};

struct Expectations {
  std::string key;  // hardware_key()
  std::vector<Expectation> entries;
  const Expectation* find(const std::string& row_key) const;
  friend bool operator==(const Expectations&, const Expectations&) = default;
};

std::string to_json(const Expectations& expectations);
Result<Expectations> parse_expectations(const std::string& json);
// `folder`/`key`.json; a missing file is an empty set. Refuses a file whose entries are not to be trusted:
// above the roofline, without an interval or with too few samples.
Result<Expectations> read_expectations(const std::string& folder, const std::string& key);
Status write_expectations(const Expectations& expectations, const std::string& folder);

struct ExpectationRules {
  double tolerance = 0.25;  // a median within this share of the expected one is as expected
  int reruns = 2;           // a deviation counts only if this many reruns show it too
  int least_samples = 15;   // a row with fewer is not stored
  // The ceilings are measured too; above this share of the roofline a rate is an error, not a record.
  double most_roofline = 1.05;
};

enum class Outcome { as_expected, regression, improvement, unknown, unusable };
std::string_view name(Outcome outcome);  // "ok", "REGRESSION", "IMPROVEMENT", "new", "UNUSABLE"

struct ExpectationCheck {
  std::string key;
  Outcome outcome = Outcome::unknown;
  double expected_us = 0, median_us = 0;
  int reruns = 0;
  std::string text;  // "412.0 us, expected 300.1 us (+37 %), confirmed by 2 reruns"
};

// Times one row again; empty when that is not possible.
using Rerun = std::function<std::optional<Row>(const Row&)>;

// Judges each row against its expectation: as expected when the median is within the tolerance or the
// intervals overlap; else the row is run again, and the deviation stands only if every rerun shows it.
std::vector<ExpectationCheck> check_expectations(const std::vector<Row>& rows,
                                                 const Expectations& expectations,
                                                 const ExpectationRules& rules = {}, const Rerun& rerun = {});

enum class Regressions { refuse, accept };

struct ExpectationUpdate {
  Expectations merged;
  std::vector<std::string> accepted, refused;  // "key: reason"
};

// Merges the rows that are verified, timed with enough samples and possible; a row slower than its
// expectation beyond the tolerance only with Regressions::accept. What is not in `rows` stays.
ExpectationUpdate update_expectations(const RunRecord& run, const Expectations& old, Regressions regressions,
                                      const ExpectationRules& rules = {});

}  // namespace tilewright::lab
