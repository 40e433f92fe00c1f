// One line a workload, one column a contender: the tables of the documents.
#pragma once

#include <string>

#include "harness/report/figures.h"

namespace tilewright::lab {

// Markdown: the medians of the contenders in the order of their first rows (with the device's own times where
// they were taken, "call / device", and with the name of whom a family's best is), then rate and share of the
// roofline of the first of them, and the day. The figures of one line come from one run: what was taken at
// different times stands in different lines. Below the table, the machine.
std::string render_summary(const Figures& figures);

}  // namespace tilewright::lab
