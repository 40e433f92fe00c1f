// Which schedules a kernel may run under on a CPU, with the time each should take.
#pragma once

#include "backends/backend.h"

#include <vector>

namespace tilewright::cpu {

std::vector<backends::Candidate> list_candidates(const tile::Kernel& kernel, const tile::Target& target);

// Predicted microseconds of the first of them.
double predicted_us(const tile::Kernel& kernel, const tile::Target& target);

// Predicted time of one program of the grid on one core.
double predict_program_us(const tile::Kernel& kernel, const tile::Target& target);

}  // namespace tilewright::cpu
