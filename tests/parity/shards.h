// Seeds shared out among processes of one machine: a compiler at work in each of them keeps many cores and a
// GPU busy.
#pragma once

#include "parity/seeds.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <vector>

namespace tilewright::test {

// In each of as many new processes as there are jobs returns nothing, with its shard of the seeds. In the one
// that called it, their common exit status when all have ended and what they said was printed, one after
// another. To be called before a device is opened: a driver does not survive a fork.
inline std::optional<int> share_out(Seeds& seeds) {
  const int jobs = seeds.jobs;
  if (jobs <= 1) return std::nullopt;
  std::vector<std::pair<pid_t, std::FILE*>> children;
  for (int i = 0; i < jobs; ++i) {
    std::FILE* said = std::tmpfile();
    const pid_t child = said ? fork() : -1;
    if (child < 0) return fmt::print(stderr, "process {} of {} could not be started\n", i, jobs), 1;
    if (child == 0) {
      dup2(fileno(said), STDOUT_FILENO);
      seeds.shard = fmt::format("{}/{}", i, jobs);
      return std::nullopt;
    }
    children.push_back({child, said});
  }
  int status = 0;
  for (const auto& [child, said] : children) {
    int ended = 0;
    waitpid(child, &ended, 0);
    if (std::fseek(said, 0, SEEK_SET) != 0) status = 1;
    char block[4096];
    for (std::size_t n; (n = std::fread(block, 1, sizeof block, said)) > 0;) std::fwrite(block, 1, n, stdout);
    std::fclose(said);
    // A process that a signal ended has the status that a shell gives it.
    status = std::max(status, WIFEXITED(ended) ? WEXITSTATUS(ended) : 128 + WTERMSIG(ended));
  }
  fmt::print("{} processes, {}\n", jobs, status == 0 ? "nothing failed" : "see above");
  return status;
}

}  // namespace tilewright::test
