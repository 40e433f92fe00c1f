// The charts of a run: the roofline, the share of it that each contender reaches, and rate against
// size.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/run/record.h"

namespace tilewright::lab {

// Contender name → CSS class of its series ("s0", …), the same in every chart of a page.
using SeriesStyles = std::map<std::string, std::string>;
SeriesStyles series_styles(const RunRecord& run);
// The contenders in the order in which they first appear.
std::vector<std::string> contenders_of(const RunRecord& run);

struct Chart {
  std::string title, caption, svg;
  std::vector<std::string> key = {};  // contenders that are told apart by colour alone
  std::string narrow = {};            // the same chart for a phone
};

// The work of the instance that a row is of; null when the run does not say.
const WorkEntry* work_of(const RunRecord& run, const Row& row);
// Whether a chart of this device may show a row's time; and what the row's point says.
bool drawable(const Row& row, const std::string& device);
std::string tooltip(const Row& row);
// The rows of a device to show where each workload has one place: of a target that ran at four sizes or more
// only the largest.
std::vector<const Row*> representative_rows(const RunRecord& run, const std::string& device);
bool leaves_out_sizes(const RunRecord& run, const std::string& device);  // whether there are such targets

// Log-log roofline of one device: its measured memory and math ceilings, a point for every timed row.
// Empty svg when the run has no ceilings or no arithmetic to show.
Chart roofline_chart(const RunRecord& run, const std::string& device, const SeriesStyles& styles);

// One line a workload, one dot a contender, from 0 to 100 % of the roofline.
Chart share_chart(const RunRecord& run, const std::string& device, const SeriesStyles& styles);

// The same chart of the first row's device as a file of its own: title, legend and both colour schemes in it.
// Empty when no row has a share.
std::string share_picture(const RunRecord& run, const std::string& title);
// CSS by which a series has its colour.
std::string series_rules();

// Charts of rate against N, or what the pair says is swept, one for each target that ran at four sizes or
// more: a curve a contender, with intervals, and the ceiling dashed.
std::vector<Chart> rate_charts(const RunRecord& run, const std::string& device, const SeriesStyles& styles);

}  // namespace tilewright::lab
