// Why a schedule is refused.
#pragma once

#include <tilewright/base/error.h>

#include <string>
#include <utility>

namespace tilewright::cuda {

inline Failure refusal(std::string why) { return failure(Failure::Kind::unsupported, std::move(why)); }

}  // namespace tilewright::cuda
