// Asking cuBLASLt for algorithms, and its calls.
#include "backends/cuda/library/cublaslt.h"

#include "backends/cuda/library/blas_product.h"
#include "backends/cuda/library/cublaslt_objects.h"

#include <fmt/format.h>

#include <array>

namespace tilewright::cuda {

using tile::Kernel;

namespace {

using Functions = std::shared_ptr<const api::CublasLt>;

constexpr std::uint64_t kWorkspaceBytes = std::uint64_t{32} << 20;  // what NVIDIA advises for sm_90
constexpr int kMostAlgorithms = 4;                                  // that are worth a measurement

int data_type(DType dtype) {
  if (dtype == DType::f64) return api::kCudaR64F;
  if (dtype == DType::f16) return api::kCudaR16F;
  return dtype == DType::bf16 ? api::kCudaR16BF : api::kCudaR32F;
}

// What it multiplies as tile IR means it: sums of f32, narrow operands with a result of their type or of f32.
bool takes_types(const BlasProduct& p) {
  const DType in = p.left.of.dtype, out = p.result.of.dtype;
  if (in == DType::f64) return out == DType::f64 && p.sum_type == DType::f64;
  if (p.sum_type != DType::f32) return false;
  return (in == DType::f32 || in == DType::f16 || in == DType::bf16) && (out == in || out == DType::f32);
}

std::optional<BlasProduct> product_of(const Kernel& kernel) {
  const std::optional<Product> product = find_product(kernel);
  std::optional<BlasProduct> blas = product ? as_blas(*product) : std::nullopt;
  return blas && takes_types(*blas) ? blas : std::nullopt;
}

// The objects that describe a product.
struct Described {
  CublasLtDesc desc;
  CublasLtLayout left, right, result;
};

class Describer {
 public:
  explicit Describer(Functions lt) : lt_(std::move(lt)) {}

  Result<Described> describe(const BlasProduct& p) const {
    auto desc = this->desc(p);
    if (!desc) return desc.error();
    auto left = layout(p.left, p.batch), right = layout(p.right, p.batch), result = layout(p.result, p.batch);
    for (const auto* made : {&left, &right, &result})
      if (!*made) return made->error();
    return Described{std::move(*desc), std::move(*left), std::move(*right), std::move(*result)};
  }

 private:
  Result<CublasLtDesc> desc(const BlasProduct& p) const {
    const bool wide = p.sum_type == DType::f64;
    const int compute = wide ? api::kCompute64F : p.tf32 ? api::kCompute32FFastTf32 : api::kCompute32F;
    api::cublasLtMatmulDesc handle = nullptr;
    const auto made = lt_->matmul_desc_create(&handle, compute, data_type(p.sum_type));
    if (auto s = check(*lt_, made, "cublasLtMatmulDescCreate"); !s) return s.error();
    CublasLtDesc desc(lt_, handle);
    const std::int32_t left = p.left.transposed ? api::kOpT : api::kOpN,
                       right = p.right.transposed ? api::kOpT : api::kOpN;
    for (const auto& [attribute, value] :
         {std::pair(api::kMatmulDescTransA, left), std::pair(api::kMatmulDescTransB, right)}) {
      const auto set = lt_->matmul_desc_set_attribute(handle, attribute, &value, sizeof value);
      if (auto s = check(*lt_, set, "cublasLtMatmulDescSetAttribute"); !s) return s.error();
    }
    return desc;
  }

  Result<CublasLtLayout> layout(const BlasMatrix& x, Index batch) const {
    api::cublasLtMatrixLayout handle = nullptr;
    const auto made =
        lt_->matrix_layout_create(&handle, data_type(x.of.dtype), static_cast<std::uint64_t>(x.rows),
                                  static_cast<std::uint64_t>(x.columns), x.leading_dimension);
    if (auto s = check(*lt_, made, "cublasLtMatrixLayoutCreate"); !s) return s.error();
    CublasLtLayout layout(lt_, handle);
    if (batch == 1) return layout;
    const auto count = static_cast<std::int32_t>(batch);
    const std::int64_t stride = x.of.batch_stride;
    auto set = lt_->matrix_layout_set_attribute(handle, api::kLayoutBatchCount, &count, sizeof count);
    if (set == api::kCublasSuccess)
      set = lt_->matrix_layout_set_attribute(handle, api::kLayoutStridedBatchOffset, &stride, sizeof stride);
    if (auto s = check(*lt_, set, "cublasLtMatrixLayoutSetAttribute"); !s) return s.error();
    return layout;
  }

  Functions lt_;
};

class CublasLtCall final : public PreparedCall {
 public:
  CublasLtCall(Functions lt, api::cublasLtHandle handle, const BlasProduct& product, Described described,
               const api::CublasLtMatmulHeuristicResult& chosen, void* workspace, std::string text)
      : lt_(std::move(lt)),
        handle_(handle),
        product_(product),
        described_(std::move(described)),
        chosen_(chosen),
        workspace_(workspace),
        text_(std::move(text)) {}

  Status enqueue(void* const* views, api::CUstream stream) override {
    static constexpr float kOne = 1, kZero = 0;
    static constexpr double kWideOne = 1, kWideZero = 0;
    const bool wide = product_.sum_type == DType::f64;
    const auto* one = wide ? static_cast<const void*>(&kWideOne) : &kOne;
    const auto* zero = wide ? static_cast<const void*>(&kWideZero) : &kZero;
    void* result = address(product_.result, views);
    const auto done = lt_->matmul(
        handle_, described_.desc.get(), one, address(product_.left, views), described_.left.get(),
        address(product_.right, views), described_.right.get(), zero, result, described_.result.get(), result,
        described_.result.get(), &chosen_.algo, workspace_, chosen_.workspace_bytes, stream);
    return check(*lt_, done, "cublasLtMatmul");
  }

  std::string describe() const override { return text_; }

 private:
  static void* address(const BlasMatrix& x, void* const* views) {
    return static_cast<char*>(views[x.of.view]) + x.of.start * static_cast<Index>(size_bytes(x.of.dtype));
  }

  Functions lt_;
  api::cublasLtHandle handle_;
  BlasProduct product_;
  Described described_;
  api::CublasLtMatmulHeuristicResult chosen_;
  void* workspace_;
  std::string text_;
};

class CublasLtLibrary final : public Library {
 public:
  CublasLtLibrary(const api::CublasLt& functions, std::string path, LibraryHost host)
      : lt_(std::make_shared<const api::CublasLt>(functions)),
        path_(std::move(path)),
        host_(std::move(host)) {}

  std::string name() const override { return "cublaslt"; }
  std::string version() const override {
    const std::size_t v = lt_->get_version();
    return fmt::format("{}.{}.{}", v / 10000, v / 100 % 100, v % 100);
  }
  std::string path() const override { return path_; }

  int algorithms(const Kernel& kernel) override {
    const auto product = product_of(kernel);
    if (!product) return 0;
    const auto described = Describer(lt_).describe(*product);
    if (!described) return 0;
    const auto found = rank(kernel, *product, *described);
    return found ? static_cast<int>(found->size()) : 0;
  }

  Result<std::string> print(const Kernel& kernel, int algorithm) override {
    const auto p = product_of(kernel);
    if (!p) return no_product(kernel);
    const auto line = [&](const BlasMatrix& x) { return to_string(x, kernel, p->batch); };
    return fmt::format(
        "// {}: no kernel of ours, but a call of cuBLASLt {}, with its choice number {} of algorithms\n"
        "// result = left · right, all matrices by columns\n"
        "cublasLtMatmul\n  m={} n={} k={} batch={} sums={}{}\n  left: {}\n  right: {}\n  result: {}\n",
        kernel.name, version(), algorithm, p->m, p->n, p->k, p->batch, tilewright::name(p->sum_type),
        p->tf32 ? " operands=tf32" : "", line(p->left), line(p->right), line(p->result));
  }

  Result<std::unique_ptr<PreparedCall>> prepare(const Kernel& kernel, int algorithm) override {
    const auto p = product_of(kernel);
    if (!p) return no_product(kernel);
    auto described = Describer(lt_).describe(*p);
    if (!described) return described.error();
    const auto found = rank(kernel, *p, *described);
    if (!found) return found.error();
    if (algorithm < 0 || algorithm >= static_cast<int>(found->size()))
      return failure(Failure::Kind::unsupported,
                     fmt::format("cuBLASLt {} has {} algorithms for {}, no number {}", version(),
                                 found->size(), kernel.name, algorithm));
    const auto& chosen = (*found)[static_cast<std::size_t>(algorithm)];
    void* workspace = nullptr;
    if (chosen.workspace_bytes > 0) {
      auto there = this->workspace();
      if (!there) return there.error();
      workspace = *there;
    }
    std::string text =
        fmt::format("cuBLASLt {}, its choice number {} of {}, {:.1f} MiB of workspace", version(), algorithm,
                    found->size(), static_cast<double>(chosen.workspace_bytes) / (1 << 20));
    return std::unique_ptr<PreparedCall>(
        new CublasLtCall(lt_, handle_.get(), *p, std::move(*described), chosen, workspace, std::move(text)));
  }

 private:
  using Ranking = std::vector<api::CublasLtMatmulHeuristicResult>;

  static Failure no_product(const Kernel& kernel) {
    return failure(Failure::Kind::unsupported,
                   fmt::format("{} is no product that cuBLASLt computes", kernel.name));
  }

  // The library's own choices for a product, the best first.
  Result<Ranking> rank(const Kernel& kernel, const BlasProduct& p, const Described& described) {
    if (auto s = open_handle(); !s) return s.error();
    auto preference = this->preference(kernel, p);
    if (!preference) return preference.error();
    std::array<api::CublasLtMatmulHeuristicResult, kMostAlgorithms> results{};
    int found = 0;
    const auto asked =
        lt_->matmul_algo_get_heuristic(handle_.get(), described.desc.get(), described.left.get(),
                                       described.right.get(), described.result.get(), described.result.get(),
                                       preference->get(), kMostAlgorithms, results.data(), &found);
    if (asked == api::kCublasNotSupported) return Ranking();
    if (auto s = check(*lt_, asked, "cublasLtMatmulAlgoGetHeuristic"); !s) return s.error();
    Ranking out(results.begin(), results.begin() + found);
    std::erase_if(out, [](const auto& each) { return each.state != api::kCublasSuccess; });
    return out;
  }

  Result<CublasLtPreference> preference(const Kernel& kernel, const BlasProduct& p) const {
    api::cublasLtMatmulPreference handle = nullptr;
    const auto made = lt_->matmul_preference_create(&handle);
    if (auto s = check(*lt_, made, "cublasLtMatmulPreferenceCreate"); !s) return s.error();
    CublasLtPreference preference(lt_, handle);
    // Sums of several blocks' parts are of the sum's type: rounded once, as tile IR has it.
    const std::uint32_t schemes = p.result.of.dtype == p.sum_type
                                      ? api::kReductionInPlace | api::kReductionComputeType
                                      : api::kReductionComputeType;
    const auto alignment = [&](const BlasMatrix& x) {
      return static_cast<std::uint32_t>(alignment_of(kernel, p.batch, x.of));
    };
    auto set = lt_->matmul_preference_set_attribute(handle, api::kPreferenceMaxWorkspaceBytes,
                                                    &kWorkspaceBytes, sizeof kWorkspaceBytes);
    for (const auto& [attribute, value] : {std::pair(api::kPreferenceReductionSchemeMask, schemes),
                                           std::pair(api::kPreferenceMinAlignmentA, alignment(p.left)),
                                           std::pair(api::kPreferenceMinAlignmentB, alignment(p.right)),
                                           std::pair(api::kPreferenceMinAlignmentC, alignment(p.result)),
                                           std::pair(api::kPreferenceMinAlignmentD, alignment(p.result))})
      if (set == api::kCublasSuccess)
        set = lt_->matmul_preference_set_attribute(handle, attribute, &value, sizeof value);
    if (auto s = check(*lt_, set, "cublasLtMatmulPreferenceSetAttribute"); !s) return s.error();
    return preference;
  }

  Status open_handle() {
    if (handle_.get() != nullptr) return Unit{};
    api::cublasLtHandle handle = nullptr;
    if (auto s = check(*lt_, lt_->create(&handle), "cublasLtCreate"); !s) return s;
    handle_ = {lt_, handle};
    return Unit{};
  }

  // One for all calls, as these run one after another.
  Result<void*> workspace() {
    if (workspace_ == nullptr) {
      auto made = host_.allocate(kWorkspaceBytes);
      if (!made) return made;
      workspace_ = *made;
    }
    return workspace_;
  }

  Functions lt_;
  std::string path_;
  LibraryHost host_;
  CublasLtHandle handle_;  // made when first needed: it wants a device
  void* workspace_ = nullptr;
};

}  // namespace

std::unique_ptr<Library> make_cublaslt(const api::CublasLt& functions, std::string path,
                                       const LibraryHost& host) {
  return std::make_unique<CublasLtLibrary>(functions, std::move(path), host);
}

}  // namespace tilewright::cuda
