// Whether others kept the processors busy while something was measured.
//
// What is measured: the share of the processors' time that went to anyone but this process, between two looks
// at /proc/stat. Time in which a processor worked, and time that the hypervisor gave to another guest
// ("steal"), less what getrusage counts of this process and its children. It is taken over the processors
// that this process may use and over all of the machine, for a neighbour on another core takes memory
// bandwidth, too; the larger counts.
//
// Why not something else:
// - The load average follows by a minute: it calls a machine busy after a build and quiet at the start of
// one.
// - Involuntary context switches count how often, not how long, and none happen beside a neighbour on another
// core.
// - The spread of a probe's own samples is wide on quiet virtual machines and narrow beside a steady
// neighbour. What stays unseen is another guest that streams through the same memory on cores of its own; for
// that, the best of all probes is kept (tilewright/perf/best_ceilings.h) and what beats a ceiling has it
// probed again.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::runtime {

// Processor time in seconds since the start, of some processors: in which they worked or were taken away, and
// in all.
struct ProcessorTime {
  double taken_s = 0, all_s = 0;
};
// Reads /proc/stat's text; `processors` empty: all of the machine. Nothing when it has none of these lines.
std::optional<ProcessorTime> processor_time(std::string_view proc_stat, const std::vector<int>& processors);

// One look.
struct ProcessorLook {
  std::optional<ProcessorTime> ours, machine;  // the processors that we may use; all
  double own_s = 0;                            // this process and its children
};
ProcessorLook look_at_processors();
// The share that others took between two looks, 0 to 1; 0 where nothing is known or no tick has passed.
double share_of_others(const ProcessorLook& before, const ProcessorLook& after);

// A larger share is busy. An idle system's services take under 1 %, and /proc/stat counts in ticks of 10 ms:
// of a probe of two seconds on two processors four ticks are 1 %. A neighbour's process on 2 cores is 50 %.
inline constexpr double kBusyShare = 0.05;
// "others took 43 % of the processors' time"; empty when `share` is not busy.
std::string busy_text(double share);

}  // namespace tilewright::runtime
