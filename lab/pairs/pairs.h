// Every pair of the lab. To add one: a folder with its file, a line here, a line in pairs.cpp.
#pragma once

#include "harness/workload.h"

namespace tilewright::lab {

Pair elu_pair();
Pair softmax_pair();

std::vector<Pair> all_pairs();

// quick: everything once, small enough for a minute and a half on two cores.
std::vector<Suite> all_suites();

}  // namespace tilewright::lab
