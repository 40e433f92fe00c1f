// What a sweep says: a line a program while it goes on, and at the end the distribution and the worst.
#pragma once

#include <string>
#include <vector>

#include "sweep/measure.h"

namespace tilewright::sweep {

// Table, wrong results first; below it the distributions, then the twenty whose ratio is least with what
// explain() says.
std::string render(const std::vector<SweepRow>& rows, int width);
// A list: an object a program, then {"summary": …, "environment": …}.
std::string to_json(const std::vector<SweepRow>& rows, const lab::Environment& environment);

// Ratios above 0 only.
struct Distribution {
  int count = 0;
  double geometric_mean = 0, least = 0, lower_quartile = 0, median = 0, upper_quartile = 0, most = 0;
  double at_least_as_fast = 0, nearly = 0;  // shares of those from 1, and from 0.85
};
Distribution distribution(std::vector<double> ratios);

}  // namespace tilewright::sweep
