// What the subcommands of `tw kernel` share: the kernels of a subject, and edited files that remember where
// they are from.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/kernel_check.h"
#include "tensor/state.h"
#include "tw/command/output.h"
#include "tw/command/subject.h"

namespace tilewright::tw {

struct KernelInput {
  SubjectInput subject;
  std::string kernel;  // index or name; empty: the only one, or the first
  bool tile = false;   // tile IR instead of the printed source
  OutputOptions output;
  std::string file;                  // run
  std::vector<std::string> scalars;  // run, of a kernel in tile-IR text: n=4096
  double budget_s = 2;
};

// The kernels of a program with memory bound to each: a subject's, or one in tile-IR text.
class KernelBench {
 public:
  // `what` of the input is a pair, a graph file, or a .tile file.
  static KernelBench open(const KernelInput& input);

  std::size_t size() const { return kernels_.size(); }
  const tile::Kernel& kernel(std::size_t i) const { return kernels_[i]; }
  const runtime::LoadedKernel& loaded(std::size_t i) const { return *loaded_[i]; }
  const std::vector<KernelReport>& reports() const { return reports_; }  // of a subject's kernels
  runtime::KernelStore& store() const { return *store_; }
  runtime::Device& device() const { return *store_->device(); }
  const lab::LabDevice& lab_device() const { return subject_ ? subject_->open.device : open_->device; }
  const std::string& title() const { return title_; }
  // The index that --kernel means. Throws Error with the list.
  std::size_t find(const std::string& kernel) const;
  // What the program hands to the kernel, its inputs computed by the kernels before it.
  runtime::Executable::StepLaunch launch(std::size_t i);

 private:
  void open_subject_kernels(const SubjectInput& input);
  void open_tile_file(const KernelInput& input);

  std::optional<Subject> subject_;
  std::optional<lab::OpenDevice> open_;
  detail::CompiledCall call_;
  std::string title_;
  runtime::KernelStore* store_ = nullptr;
  std::vector<tile::Kernel> kernels_;
  std::vector<std::shared_ptr<runtime::LoadedKernel>> loaded_;
  std::vector<KernelReport> reports_;
  std::vector<std::shared_ptr<runtime::Buffer>> inputs_, outputs_;  // of a subject; views of a tile kernel
  std::vector<std::int64_t> scalars_;                               // of a tile kernel
};

// Whether a text or path is tile IR rather than C++.
bool is_tile_path(const std::string& path);

// The lines with which an edited file says where it is from:
//   // tw kernel: 0 of softmax --set columns=8192 --device cpu
//   // schedule: unroll=4
//   // launch: threads=1 cluster=1 shared_bytes=0 programs_per_block=1
std::string file_head(const KernelInput& input, std::size_t kernel, const backends::Source* source);
struct FileHead {
  SubjectInput subject;
  std::string kernel;
  std::optional<backends::LaunchShape> launch;
};
// The head that a text begins with; none if it has no such line. Throws Error for one that is malformed.
std::optional<FileHead> read_head(const std::string& text);

// tw kernel run. Throws CLI::RuntimeError(1) when the kernel is wrong.
void run_kernel(const KernelInput& input);

}  // namespace tilewright::tw
