// A backend that prints for a machine that is not there, writes down what it prints, and runs nothing.
#pragma once

#include "backends/backend.h"

#include "replay/machine.h"
#include "replay/program_record.h"

#include <memory>

namespace tilewright::replay {

// What is printed for, and where kernels are written down at present; null: nowhere.
struct Recording {
  const Machine& machine;
  ProgramRecord* program = nullptr;
};

class RecordingBackend final : public backends::Backend {
 public:
  explicit RecordingBackend(const Recording& recording) : to_(recording) {}

  const tile::Target& target() const override { return to_.machine.target; }
  std::string binary_key() const override { return "printed for " + to_.machine.name; }

  std::vector<backends::Candidate> candidates(const tile::Kernel& kernel) const override;
  Result<backends::Source> print(const tile::Kernel& kernel, const tile::Schedule& schedule) const override;
  Result<backends::Binary> compile(const tile::Kernel&, const backends::Source&) const override {
    return backends::Binary{};
  }
  Result<std::unique_ptr<backends::Program>> load(const tile::Kernel&, const backends::Source&,
                                                  const backends::Binary&) override;

  Result<void*> allocate(std::size_t bytes) override;
  void release(void* address, std::size_t bytes) override;
  Status copy(void*, const void*, std::size_t, backends::CopyKind) override { return Unit{}; }
  Status fill(void*, int, std::size_t) override { return Unit{}; }
  Status synchronize() override { return Unit{}; }
  Status timer_start() override { return Unit{}; }
  Result<double> timer_stop_us() override { return 0.0; }
  Result<std::unique_ptr<backends::Replay>> record(const std::vector<backends::RecordedLaunch>&) override {
    return std::unique_ptr<backends::Replay>();
  }

 private:
  const Recording& to_;
  mutable std::vector<backends::Candidate> listed_;  // of the kernel asked for last, which is printed next
};

// What the contexts that this thread makes from now on record into, whatever their device's name. It must
// outlive them.
void record_contexts(const Recording& recording);

}  // namespace tilewright::replay

extern "C" tilewright::Result<std::unique_ptr<tilewright::backends::Backend>> tw_open_recording_backend();
