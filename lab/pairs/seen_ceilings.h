// What a run knows of the machine's ceilings: those stored, joined with every probe taken since, the best
// seen of each figure.
#pragma once

#include <string>

#include "harness/run/ceiling.h"
#include "runtime/probe.h"

namespace tilewright::lab {

class SeenCeilings {
 public:
  // `path`: a ceiling file that exists and is to be raised by what is seen; empty: none.
  SeenCeilings(perf::Ceilings known, std::string source, std::string path);
  // A nearer level that is slower than a farther one is raised to it (perf/best_ceilings.h). The file is
  // written when the probe found the machine quiet and something better than is stored; one taken beside
  // other work counts for this run alone.
  Status join(const runtime::Probed& probed);
  Ceilings ceilings() const;

 private:
  perf::Ceilings best_;
  std::string source_, path_;
};

}  // namespace tilewright::lab
