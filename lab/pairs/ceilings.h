// The ceilings that floors are made of: those stored by `tw devices --probe`, else the same probes, run
// briefly; and probes beside the work, for what beats them.
#pragma once

#include <functional>
#include <string_view>

#include "harness/run/workload.h"

namespace tilewright::lab {

enum class CeilingSource { stored_or_measured, measured };

// `progress` is told what is measured, `stop` asked in between; stopped, the ceilings are empty.
struct CeilingEvents {
  std::function<void(std::string_view what)> progress = {};
  std::function<bool()> stop = {};
};
// Sets device.ceilings and device.probe_again. What is measured here joins what is stored: a ceiling is the
// best seen. Throws Error when the device cannot be measured.
void find_ceilings(LabDevice& device, CeilingSource source, const CeilingEvents& events = {});

}  // namespace tilewright::lab
