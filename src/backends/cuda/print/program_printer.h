// ProgramPrinter: where a thread stands, and which programs its block runs.
#pragma once

#include "backends/cuda/print/printer_state.h"

namespace tilewright::cuda {

class ProgramPrinter : PrinterState {
 public:
  explicit ProgramPrinter(KernelPrinter& k) : PrinterState(k) {}

  // Names of a thread's coordinates in tiles that stand as `frame` says; the head declares them.
  ThreadNames thread(const TileFrame& frame);
  // The name of a program's place along an axis, which the head, or print_program_ids(), declares.
  std::string axis_name(int axis);
  std::string program_id(int axis);
  void print_program_ids();
  void print_tile_swizzle();
  std::string programs_text() const;  // all programs
  void wait_for_cluster();
  void print_thread_coordinates(Text& head);

 private:
  IndexText grid(int axis) const;  // programs along it
  std::string longest_first_id(int axis) const;

  std::map<std::pair<int, int>, ThreadNames> threads_;  // by threads per row and cluster
  std::vector<std::string> thread_lines_;
  std::set<int> axes_;  // that the kernel asks for
  bool cluster_waited_ = false;
};

}  // namespace tilewright::cuda
