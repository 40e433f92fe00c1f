// The published figures. Rates are dense: data sheets that print "with sparsity" are halved, and say so here.
#include <tilewright/perf/hardware.h>

#include <vector>

namespace tilewright::perf {

namespace {

constexpr const char* kRooflines =
    "Austin et al., How to Scale Your Model (2025), chapter 1, All About Rooflines";
constexpr const char* kH100Sheet = "NVIDIA H100 Tensor Core GPU data sheet, SXM";
constexpr const char* kH100SheetSparse =
    "NVIDIA H100 Tensor Core GPU data sheet, SXM; half of the figure with sparsity";
constexpr const char* kH100Paper = "NVIDIA H100 Tensor Core GPU Architecture white paper, H100 SXM5";
constexpr const char* kHopperSpecial =
    "16 results per clock and SM (CUDA C++ Programming Guide, arithmetic throughput) x 132 SMs x 1.83 GHz; "
    "FlashAttention-3 (2024) gives 3.9e12";
constexpr const char* kH200Sheet = "NVIDIA H200 Tensor Core GPU data sheet, SXM";
constexpr const char* kH200SheetSparse =
    "NVIDIA H200 Tensor Core GPU data sheet, SXM; half of the figure with sparsity";
constexpr const char* kA100Sheet = "NVIDIA A100 Tensor Core GPU data sheet, 80 GB SXM";
constexpr const char* kA100Paper = "NVIDIA A100 Tensor Core GPU Architecture white paper";
constexpr const char* kB200Brief = "NVIDIA Blackwell Architecture Technical Brief, HGX B200, dense";
constexpr const char* kNvlink = "; one direction, half of the NVLink total";
constexpr const char* kV5eDocs = "Google Cloud TPU v5e documentation";
constexpr const char* kV5pDocs = "Google Cloud TPU v5p documentation";
constexpr const char* kV6eDocs = "Google Cloud TPU v6e documentation";

// H200 is the H100's chip with other memory: what is not memory is shared.
Hardware hopper(const char* sheet, const char* sparse) {
  Hardware h;
  h.matrix = {{DType::f64, {6.7e13, sheet}},       {DType::f16, {9.89e14, sparse}},
              {DType::bf16, {9.89e14, sparse}},    {DType::f8e4m3, {1.979e15, sparse}},
              {DType::f8e5m2, {1.979e15, sparse}}, {DType::i8, {1.979e15, sparse}}};
  h.vector = {{DType::f64, {3.4e13, sheet}},
              {DType::f32, {6.7e13, sheet}},
              {DType::f16, {1.338e14, kH100Paper}},
              {DType::bf16, {1.338e14, kH100Paper}},
              {DType::i32, {3.35e13, kH100Paper}}};
  h.special_ops_per_s = Figure{16 * 132 * 1.83e9, kHopperSpecial};
  h.levels = {{"shared memory", {228 * 1024, kH100Paper}, 132, {}},
              {"L2", {50 * 1024 * 1024, kH100Paper}, 1, {}}};
  h.link_bytes_per_s = Figure{4.5e11, std::string(sheet) + kNvlink};
  return h;
}

Hardware h100() {
  Hardware h = hopper(kH100Sheet, kH100SheetSparse);
  h.name = "h100";
  h.title = "NVIDIA H100 SXM5 80 GB";
  h.memory_bytes = {80e9, kH100Sheet};
  h.memory_bytes_per_s = {3.35e12, kH100Sheet};
  return h;
}

Hardware h200() {
  Hardware h = hopper(kH200Sheet, kH200SheetSparse);
  h.name = "h200";
  h.title = "NVIDIA H200 SXM 141 GB";
  h.memory_bytes = {141e9, kH200Sheet};
  h.memory_bytes_per_s = {4.8e12, kH200Sheet};
  return h;
}

Hardware a100() {
  Hardware h;
  h.name = "a100";
  h.title = "NVIDIA A100 SXM4 80 GB";
  h.memory_bytes = {80e9, kA100Sheet};
  h.memory_bytes_per_s = {2.039e12, kA100Sheet};
  h.matrix = {{DType::f64, {1.95e13, kA100Sheet}},
              {DType::f16, {3.12e14, kA100Sheet}},
              {DType::bf16, {3.12e14, kA100Sheet}},
              {DType::i8, {6.24e14, kA100Sheet}}};
  h.vector = {{DType::f64, {9.7e12, kA100Sheet}},
              {DType::f32, {1.95e13, kA100Sheet}},
              {DType::f16, {7.8e13, kA100Paper}},
              {DType::bf16, {3.9e13, kA100Paper}},
              {DType::i32, {1.95e13, kA100Paper}}};
  h.special_ops_per_s =
      Figure{16 * 108 * 1.41e9,
             "16 results per clock and SM (CUDA C++ Programming Guide, arithmetic throughput) "
             "x 108 SMs x 1.41 GHz"};
  h.levels = {{"shared memory", {164 * 1024, kA100Paper}, 108, {}},
              {"L2", {40 * 1024 * 1024, kA100Paper}, 1, {}}};
  h.link_bytes_per_s = Figure{3e11, std::string(kA100Sheet) + kNvlink};
  return h;
}

Hardware b200() {
  Hardware h;
  h.name = "b200";
  h.title = "NVIDIA B200 (HGX, 1000 W)";
  h.memory_bytes = {192e9, kB200Brief};
  h.memory_bytes_per_s = {8e12, kB200Brief};
  h.matrix = {{DType::f64, {4e13, kB200Brief}},      {DType::f16, {2.25e15, kB200Brief}},
              {DType::bf16, {2.25e15, kB200Brief}},  {DType::f8e4m3, {4.5e15, kB200Brief}},
              {DType::f8e5m2, {4.5e15, kB200Brief}}, {DType::i8, {4.5e15, kB200Brief}}};
  h.vector = {{DType::f64, {4e13, kB200Brief}}, {DType::f32, {8e13, kB200Brief}}};
  h.levels = {{"shared memory",
               {228 * 1024, "CUDA C++ Programming Guide, compute capability 10.0, per multiprocessor"},
               148,
               {}}};
  h.link_bytes_per_s = Figure{9e11, std::string(kB200Brief) + kNvlink};
  return h;
}

Hardware tpu_v5e() {
  Hardware h;
  h.name = "tpu-v5e";
  h.title = "Google TPU v5e";
  h.memory_bytes = {16e9, kV5eDocs};
  h.memory_bytes_per_s = {8.2e11, std::string(kRooflines) + "; the documentation says 819 GB/s"};
  h.matrix = {{DType::bf16, {1.97e14, kRooflines}}, {DType::i8, {3.94e14, kRooflines}}};
  h.levels = {{"VMEM",
               {128 * 1024 * 1024, "How to Scale Your Model (2025), chapter 2, How to Think About TPUs"},
               1,
               {}}};
  h.link_bytes_per_s = Figure{4.5e10, std::string(kRooflines) + "; one link, one direction"};
  return h;
}

Hardware tpu_v5p() {
  Hardware h;
  h.name = "tpu-v5p";
  h.title = "Google TPU v5p";
  h.memory_bytes = {95e9, kV5pDocs};
  h.memory_bytes_per_s = {2.765e12, kV5pDocs};
  h.matrix = {{DType::bf16, {4.59e14, kV5pDocs}},
              {DType::i8, {9.18e14, "Google Cloud, TPU v5p announcement (2023)"}}};
  h.vector = {{DType::f32, {7e12, std::string(kRooflines) + ", note on the VPU"}}};
  h.link_bytes_per_s = Figure{
      1e11, std::string(kV5pDocs) + ": 1200 GB/s over 6 links and 2 directions; one link, one direction"};
  return h;
}

Hardware tpu_v6e() {
  Hardware h;
  h.name = "tpu-v6e";
  h.title = "Google TPU v6e (Trillium)";
  h.memory_bytes = {32e9, kV6eDocs};
  h.memory_bytes_per_s = {1.6e12, std::string(kRooflines) + "; the documentation says 1638 GB/s"};
  h.matrix = {{DType::bf16, {9.1e14, std::string(kRooflines) + "; the documentation says 918 TFLOP/s"}},
              {DType::i8, {1.836e15, kV6eDocs}}};
  h.link_bytes_per_s = Figure{
      1e11, std::string(kV6eDocs) + ": 800 GB/s over 4 links and 2 directions; one link, one direction"};
  return h;
}

}  // namespace

std::span<const Hardware> known_hardware() {
  static const std::vector<Hardware> table = {h100(),    h200(),    a100(),   b200(),
                                              tpu_v5e(), tpu_v5p(), tpu_v6e()};
  return table;
}

}  // namespace tilewright::perf
