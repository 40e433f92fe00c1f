// Launches that overlap (programmatic dependent launch, from sm_90 on): a kernel may be launched before the
// one ahead of it in the stream has ended, since its own text waits for that. Until then it computes indices
// and makes its barriers ready.
#pragma once

#include <string>
#include <string_view>

namespace tilewright::cuda {

// The line that waits.
inline constexpr std::string_view kWaitForPrevious = "wait_for_previous_kernel();";

// Whether the text has that line, as printed or edited: a kernel without it, and one where it is a comment,
// starts after the one before has ended. Where the line stands is the editor's own affair.
bool waits_for_previous(const std::string& text);

}  // namespace tilewright::cuda
