// Proving a program: one launch on a device against the reference interpreter, every element.
#pragma once

#include "runtime/executable.h"

namespace tilewright::runtime {

struct KernelCheck {
  std::string problem;  // empty when every element is within its bound; else the first that is not
  Index compared = 0;   // elements of all written views
  Index undecided = 0;  // of these, where rounding may decide what is right: not compared
  Index wrong = 0;
  double worst = 0;  // largest |device - reference| as a share of what rounding allows
};

// Runs `program` once on the memory of `launch` and compares what it wrote with what `meaning` writes from
// the same memory, within the rounding that the kernel's types allow. Outputs are poisoned first, so that
// what is not written shows. A Failure when it cannot be run, when a written view overlaps another, or when
// `meaning` leaves its views: then the program was not run.
Result<KernelCheck> check_launch(Device& device, const tile::Kernel& meaning, backends::Program& program,
                                 const Executable::StepLaunch& launch);

// Interprets a kernel on copies of the memory of `launch`: a Failure where it leaves its views, which no
// backend looks at.
Status check_reach(Device& device, const tile::Kernel& kernel, const Executable::StepLaunch& launch);

}  // namespace tilewright::runtime
