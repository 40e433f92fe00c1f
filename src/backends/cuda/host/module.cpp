// Loading cubins and asking about their kernels; see module.h.
#include "backends/cuda/host/module.h"

#include <fmt/format.h>

namespace tilewright::cuda {

Result<FunctionAttributes> Function::attributes() const {
  FunctionAttributes out;
  const std::pair<int*, api::FunctionAttribute> wanted[] = {
      {&out.registers, api::kFunctionNumRegs},
      {&out.local_bytes, api::kFunctionLocalSizeBytes},
      {&out.static_shared_bytes, api::kFunctionSharedSizeBytes},
      {&out.max_threads, api::kFunctionMaxThreadsPerBlock}};
  for (const auto& [value, which] : wanted) {
    const auto result = driver_->func_get_attribute(value, which, function_);
    if (auto status = check(*driver_, result, "cuFuncGetAttribute"); !status) return status.error();
  }
  return out;
}

Status Function::allow_shared_bytes(int bytes) const {
  const auto result = driver_->func_set_attribute(function_, api::kFunctionMaxDynamicSharedSizeBytes, bytes);
  return check(*driver_, result, fmt::format("cuFuncSetAttribute: {} bytes of shared memory a block", bytes));
}

Status Function::allow_large_clusters() const {
  const auto result = driver_->func_set_attribute(function_, api::kFunctionNonPortableClusterSizeAllowed, 1);
  return check(*driver_, result, "cuFuncSetAttribute: clusters of more than 8 blocks");
}

Result<int> Function::blocks_per_multiprocessor(int threads, std::size_t dynamic_shared_bytes) const {
  int blocks = 0;
  const auto result = driver_->occupancy_max_active_blocks(&blocks, function_, threads, dynamic_shared_bytes);
  if (auto status = check(*driver_, result, "cuOccupancyMaxActiveBlocksPerMultiprocessor"); !status)
    return status.error();
  return blocks;
}

Result<Module> Module::load(const Context& context, std::span<const char> cubin) {
  const Driver& driver = context.driver();
  api::CUmodule module = nullptr;
  const auto what = fmt::format("loading {} bytes of device code on {} ({})", cubin.size(),
                                context.limits().name, context.limits().arch().text());
  if (auto status = check(driver, driver.module_load_data(&module, cubin.data()), what); !status)
    return status.error();
  Module made;
  made.module_ = {driver, module};
  return made;
}

Result<Function> Module::function(const std::string& name) const {
  api::CUfunction function = nullptr;
  const Driver& driver = module_.driver();
  const auto result = driver.module_get_function(&function, module_.get(), name.c_str());
  if (auto status = check(driver, result, fmt::format("kernel \"{}\"", name)); !status) return status.error();
  return Function(driver, function);
}

}  // namespace tilewright::cuda
