// The page of a run: one self-contained HTML file with the table, the charts and the conditions, light and
// dark.
#pragma once

#include "harness/run/record.h"

namespace tilewright::lab {

// No script, no font, no address of another machine in it.
std::string render_html(const RunRecord& run, const std::string& title = "Tilewright bench");

}  // namespace tilewright::lab
