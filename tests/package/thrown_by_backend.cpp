// A program of a user's whose Error is thrown inside libtw_cpu.so: the system gives its pool no more threads.
// Ends with 0 if it was caught as what the headers declare.
#include <tilewright/tilewright.hpp>

#include <sys/resource.h>

#include <cstdio>
#include <cstring>

int main() {
  {
    tilewright::Context loads_the_backend;
  }
  rlimit limit{};
  getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = std::size_t{4} << 30;  // stacks of 8 MiB: some hundreds of threads
  setrlimit(RLIMIT_AS, &limit);
  try {
    tilewright::Context context({.threads = 4096});
  } catch (const tilewright::Error& error) {
    std::printf("%s\n", error.what());
    return std::strstr(error.what(), "threads") == nullptr;
  }
  std::printf("nothing was thrown\n");
  return 1;
}
