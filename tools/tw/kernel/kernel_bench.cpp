// Kernels with their memory.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tilewright/base/philox.h>
#include <tilewright/tile/text.h>

#include <charconv>
#include <sstream>

#include "tensor/storage.h"
#include "tw/kernel/kernel_input.h"

namespace tilewright::tw {

namespace {

constexpr std::string_view kHead = "// tw kernel: ", kLaunch = "// launch: ";

// The elements a view reaches, which must start at its coordinate 0.
Index reach(const tile::ViewParam& view, const std::vector<std::int64_t>& scalars) {
  Index last = 0;
  for (std::size_t d = 0; d < view.extents.size(); ++d) {
    if (view.extents[d].in(scalars.data()) <= 0) return 0;
    const Index stride = view.strides[d].in(scalars.data());
    if (stride < 0)
      throw Error(fmt::format("view %{} runs backwards: tw kernel run binds views at their first element",
                              view.name));
    last += stride * (view.extents[d].in(scalars.data()) - 1);
  }
  return last + 1;
}

std::vector<std::int64_t> scalar_values(const tile::Kernel& kernel, const std::vector<std::string>& given) {
  std::vector<std::int64_t> bits;
  for (const tile::ScalarParam& p : kernel.scalars) {
    std::optional<double> value;
    for (const std::string& text : given) {
      if (!text.starts_with(p.name + "=")) continue;
      const char* const number = text.c_str() + p.name.size() + 1;
      char* end = nullptr;
      value = std::strtod(number, &end);
      if (end == number || *end != 0 || (!is_float(p.dtype) && !holds(p.dtype, *value)))
        throw Error(fmt::format("--scalar {}: the scalar is an {}, '{}' is no such number", p.name,
                                name(p.dtype), number));
    }
    if (!value)
      throw Error(fmt::format("kernel {} takes the scalar {}: give it with --scalar {}=…", kernel.name,
                              p.name, p.name));
    bits.push_back(tile::scalar_bits(p.dtype, *value));
  }
  return bits;
}

// Small random values: floats in (-2, 2), integers that index any extent of the kernel's constant views.
std::vector<char> random_elements(DType dtype, Index count, Index limit, std::uint64_t seed) {
  const std::size_t size = size_bytes(dtype);
  std::vector<char> bytes(static_cast<std::size_t>(count) * size);
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    const auto word = philox4x32(seed, i)[0];
    if (is_float(dtype))
      store_f64(bytes.data() + i * size, dtype, 4.0 * word / 4294967296.0 - 2);
    else
      store_i64(bytes.data() + i * size, dtype, dtype == DType::boolean ? word & 1 : word % limit);
  }
  return bytes;
}

}  // namespace

bool is_tile_path(const std::string& path) { return path.ends_with(".tile"); }

KernelBench KernelBench::open(const KernelInput& input) {
  KernelBench bench;
  if (is_tile_path(input.subject.what))
    bench.open_tile_file(input);
  else
    bench.open_subject_kernels(input.subject);
  return bench;
}

void KernelBench::open_subject_kernels(const SubjectInput& input) {
  subject_.emplace(open_subject(input));
  title_ = subject_->title;
  call_ = subject_->prepare();
  for (const Tensor& t : call_.inputs) inputs_.push_back(t.impl()->buffer);
  const std::shared_ptr<detail::ContextState> context = subject_->open.context->state();
  detail::DeviceState& device = context->device(subject_->open.device.name);
  store_ = &device.store;
  for (const ir::Type& type : call_.graph->outputs) outputs_.push_back(detail::allocate(device.device, type));
  kernels_ = call_.graph->compiled.plan.kernels;
  loaded_ = call_.graph->executable->kernels();
  reports_ = subject_->report().kernels;
}

void KernelBench::open_tile_file(const KernelInput& input) {
  const std::string& path = input.subject.what;
  const std::string text = read_text(path);
  if (text.empty())
    throw Error(path + ": is empty; `tw kernel edit --tile -o FILE` writes a kernel to change");
  auto kernel = tile::parse(text);
  if (!kernel) throw Error(fmt::format("{}: {}", path, kernel.error().message));
  open_.emplace(lab::open_lab_device({.device = input.subject.device,
                                      .cache_directory = input.subject.cache,
                                      .threads = input.subject.threads}));
  title_ = path;
  detail::DeviceState& device = open_->context->state()->device(open_->device.name);
  store_ = &device.store;
  auto loaded = store_->get(*kernel);
  if (!loaded) throw Error(fmt::format("{}: {}", path, loaded.error().message));
  loaded_.push_back(std::move(*loaded));
  scalars_ = scalar_values(*kernel, input.scalars);
  Index limit = 100;
  for (const tile::ViewParam& view : kernel->views)
    for (const tile::Dim& d : view.extents) limit = std::min(limit, d.in(scalars_.data()));
  for (const tile::ViewParam& view : kernel->views) {
    const Index count = reach(view, scalars_);
    inputs_.push_back(detail::allocate(device.device, {view.dtype, {count}}));
    const std::vector<char> values =
        random_elements(view.dtype, count, std::max<Index>(limit, 1), inputs_.size());
    if (Status s = inputs_.back()->write(values.data(), values.size()); !s) throw Error(s.error().message);
  }
  kernels_.push_back(std::move(*kernel));
}

std::size_t KernelBench::find(const std::string& kernel) const {
  if (kernel.empty() && !kernels_.empty()) return 0;
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(kernel.data(), kernel.data() + kernel.size(), index);
  if (error == std::errc() && end == kernel.data() + kernel.size() && index < kernels_.size()) return index;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kernels_.size(); ++i) {
    if (kernels_[i].name == kernel) return i;
    names.push_back(fmt::format("{} {}", i, kernels_[i].name));
  }
  throw Error(fmt::format("{} has no kernel '{}'; it has {}", title_, kernel, fmt::join(names, ", ")));
}

runtime::Executable::StepLaunch KernelBench::launch(std::size_t kernel) {
  if (!subject_) {
    runtime::Executable::StepLaunch launch{0, {}, scalars_, {1, 1, 1}};
    for (const auto& buffer : inputs_) launch.views.push_back(buffer->data());
    const std::vector<Index> grid = tile::grid_extents(kernels_[0], scalars_);
    std::copy(grid.begin(), grid.end(), std::begin(launch.grid));
    return launch;
  }
  runtime::Executable& executable = *call_.graph->executable;
  if (Status s = executable.bind(inputs_, outputs_); !s) throw Error(s.error().message);
  for (std::size_t s = 0; s < executable.plan().steps.size(); ++s) {
    if (executable.plan().steps[s].kernel == static_cast<int>(kernel)) return executable.launch_of(s);
    if (Status ran = executable.run_step(s); !ran) throw Error(ran.error().message);
  }
  throw Error(fmt::format("{}: kernel {} is never launched", title_, kernel));
}

std::string file_head(const KernelInput& input, std::size_t kernel, const backends::Source* source) {
  std::string text = fmt::format("{}{} of {}\n", kHead, kernel, subject_arguments(input.subject));
  if (source == nullptr) return text;
  const backends::LaunchShape* const launch = &source->launch;
  text += fmt::format("// schedule: {}\n", to_string(source->schedule));
  text += fmt::format("{}threads={} cluster={} shared_bytes={} programs_per_block={}\n", kLaunch,
                      launch->threads, launch->cluster, launch->shared_bytes, launch->programs_per_block);
  return text;
}

namespace {

SubjectInput read_subject(std::istringstream& words, const std::string& line) {
  SubjectInput subject;
  std::string word;
  words >> subject.what;
  while (words >> word) {
    std::string value;
    if (!(words >> value) || (word != "--set" && word != "--device"))
      throw Error(fmt::format("'{}': expected what, --set key=value and --device name", line));
    if (word == "--set")
      subject.settings.push_back(value);
    else
      subject.device = value;
  }
  return subject;
}

backends::LaunchShape read_launch(const std::string& line) {
  backends::LaunchShape shape;
  std::istringstream words(line.substr(kLaunch.size()));
  for (std::string word; words >> word;) {
    const auto equals = word.find('=');
    const std::string key = word.substr(0, equals);
    const Index value = equals == std::string::npos ? 0 : std::atoll(word.c_str() + equals + 1);
    if (key == "threads")
      shape.threads = static_cast<int>(value);
    else if (key == "cluster")
      shape.cluster = static_cast<int>(value);
    else if (key == "shared_bytes")
      shape.shared_bytes = value;
    else if (key == "programs_per_block")
      shape.programs_per_block = value;
    else
      throw Error(fmt::format(
          "'{}': unknown '{}'; a launch has threads, cluster, shared_bytes, programs_per_block", line, key));
  }
  return shape;
}

}  // namespace

std::optional<FileHead> read_head(const std::string& text) {
  std::optional<FileHead> head;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kHead)) {
      std::istringstream words(line.substr(kHead.size()));
      std::string of;
      head.emplace();
      words >> head->kernel >> of;
      if (of != "of")
        throw Error(fmt::format("'{}': expected a kernel's number, 'of' and what it is from", line));
      head->subject = read_subject(words, line);
    } else if (head && line.starts_with(kLaunch)) {
      head->launch = read_launch(line);
    }
  }
  return head;
}

}  // namespace tilewright::tw
