// The table of the embedded device headers; the texts come from device/tw_cpu through tw_embed.
#include "backends/cpu/device_headers.h"

namespace tilewright::embedded {
extern const std::string_view tw_cpu_atan2, tw_cpu_convert, tw_cpu_core, tw_cpu_cos, tw_cpu_dot,
    tw_cpu_elementwise, tw_cpu_erf, tw_cpu_exp, tw_cpu_exp2, tw_cpu_expm1, tw_cpu_extreme, tw_cpu_f64,
    tw_cpu_log, tw_cpu_log1p, tw_cpu_log2, tw_cpu_lookup, tw_cpu_masked, tw_cpu_memory, tw_cpu_narrow,
    tw_cpu_philox, tw_cpu_pow, tw_cpu_reduce, tw_cpu_relayout, tw_cpu_root, tw_cpu_scale, tw_cpu_scan,
    tw_cpu_sigmoid, tw_cpu_sin, tw_cpu_split, tw_cpu_strided, tw_cpu_tan, tw_cpu_tanh, tw_cpu_trig;
}

namespace tilewright::cpu {

std::span<const DeviceHeader> device_headers() {
  using namespace embedded;
  static const DeviceHeader headers[] = {
      {"tw_cpu/atan2.h", tw_cpu_atan2},       {"tw_cpu/convert.h", tw_cpu_convert},
      {"tw_cpu/core.h", tw_cpu_core},         {"tw_cpu/cos.h", tw_cpu_cos},
      {"tw_cpu/dot.h", tw_cpu_dot},           {"tw_cpu/elementwise.h", tw_cpu_elementwise},
      {"tw_cpu/erf.h", tw_cpu_erf},           {"tw_cpu/exp.h", tw_cpu_exp},
      {"tw_cpu/exp2.h", tw_cpu_exp2},         {"tw_cpu/expm1.h", tw_cpu_expm1},
      {"tw_cpu/extreme.h", tw_cpu_extreme},   {"tw_cpu/f64.h", tw_cpu_f64},
      {"tw_cpu/log.h", tw_cpu_log},           {"tw_cpu/log1p.h", tw_cpu_log1p},
      {"tw_cpu/log2.h", tw_cpu_log2},         {"tw_cpu/lookup.h", tw_cpu_lookup},
      {"tw_cpu/masked.h", tw_cpu_masked},     {"tw_cpu/memory.h", tw_cpu_memory},
      {"tw_cpu/narrow.h", tw_cpu_narrow},     {"tw_cpu/philox.h", tw_cpu_philox},
      {"tw_cpu/pow.h", tw_cpu_pow},           {"tw_cpu/reduce.h", tw_cpu_reduce},
      {"tw_cpu/relayout.h", tw_cpu_relayout}, {"tw_cpu/root.h", tw_cpu_root},
      {"tw_cpu/scale.h", tw_cpu_scale},       {"tw_cpu/scan.h", tw_cpu_scan},
      {"tw_cpu/sigmoid.h", tw_cpu_sigmoid},   {"tw_cpu/sin.h", tw_cpu_sin},
      {"tw_cpu/split.h", tw_cpu_split},       {"tw_cpu/strided.h", tw_cpu_strided},
      {"tw_cpu/tan.h", tw_cpu_tan},           {"tw_cpu/tanh.h", tw_cpu_tanh},
      {"tw_cpu/trig.h", tw_cpu_trig},
  };
  return headers;
}

}  // namespace tilewright::cpu
