// Every pair of the lab. To add one: a folder with its file, and its name in CMakeLists.txt.
#pragma once

#include "harness/run/workload.h"

namespace tilewright::lab {

// NAME_pair() of each lab/pairs/NAME/NAME.cpp, in the order of CMakeLists.txt, which writes the list.
std::vector<Pair> all_pairs();

// quick: each kind of work once, small enough for a minute and a half on two cores. products: every pair
// around matrix products, smaller still. Their pairs come in the order in which these are given.
std::vector<Suite> suites_of(PairList pairs);
std::vector<Suite> all_suites();

}  // namespace tilewright::lab
