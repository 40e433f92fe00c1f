// Opening the device for the tests; see gpu.h.
#include "backends/cuda/gpu_tests/gpu.h"

#include "backends/cuda/nvrtc/device_headers.h"

namespace tilewright::cuda {

Gpu::Gpu()
    : driver(must(open_driver())),
      context(must(Context::open(driver))),
      entered(must(Entered::enter(context))),
      nvrtc(must(Nvrtc::open(nvrtc_search_from_environment()))),
      stream(must(Stream::create(context))),
      pool(context),
      staging(must(Staging::create(context))) {}

Gpu& Gpu::open() {
  static Gpu gpu;
  return gpu;
}

Module Gpu::compile(std::string_view source, std::vector<std::string> flags) {
  const auto binary =
      must(nvrtc.compile(std::string(source), {.arch = context.limits().arch(), .flags = std::move(flags)}));
  return must(Module::load(context, binary.cubin));
}

void Gpu::launch(const Function& function, const LaunchShape& shape, Arguments arguments) {
  auto launch = must(PreparedLaunch::make(function, shape, std::move(arguments)));
  must(launch.launch(stream.get()));
}

}  // namespace tilewright::cuda
