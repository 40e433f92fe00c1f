// Starting, asking and ending the process.
#include "peers/peer_process.h"

#include <fmt/format.h>

#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

extern char** environ;

namespace tilewright::lab {

namespace {

// torch.compile with autotuning may take minutes over one kernel.
constexpr int kPatienceMs = 600'000;

}  // namespace

Result<PeerProcess> PeerProcess::start(const std::string& python, const std::string& script,
                                       const std::vector<std::string>& variables) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return failure(Failure::Kind::io, fmt::format("no socket for a peer: {}", std::strerror(errno)));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  char* const arguments[] = {const_cast<char*>(python.c_str()), const_cast<char*>(script.c_str()), nullptr};
  std::vector<char*> environment;
  environment.reserve(variables.size());
  for (const std::string& variable : variables) environment.push_back(const_cast<char*>(variable.c_str()));
  for (char** at = environ; *at != nullptr; ++at) environment.push_back(*at);
  environment.push_back(nullptr);
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, python.c_str(), &actions, nullptr, arguments, environment.data());
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error != 0) {
    close(ends[0]);
    return failure(Failure::Kind::not_found, fmt::format("{}: {}", python, std::strerror(error)));
  }
  return PeerProcess(pid, ends[0]);
}

PeerProcess::PeerProcess(PeerProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      socket_(std::exchange(other.socket_, -1)),
      received_(std::move(other.received_)) {}

PeerProcess::~PeerProcess() { end(""); }

Failure PeerProcess::end(const std::string& why) {
  if (socket_ >= 0) close(socket_);
  socket_ = -1;
  std::string how;
  if (pid_ > 0) {
    kill(pid_, SIGCONT);
    // It ends by itself at the end of its input; a process stuck in a kernel does not.
    int status = 0;
    pid_t ended = 0;
    for (int wait = 0; wait < 50 && ended == 0; ++wait) {
      ended = waitpid(pid_, &status, WNOHANG);
      if (ended == 0) usleep(20'000);
    }
    if (ended == 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, &status, 0);
    } else if (WIFSIGNALED(status)) {
      how = fmt::format(" by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
    } else if (WIFEXITED(status) && WEXITSTATUS(status) != 0) {
      how = fmt::format(" with exit status {}", WEXITSTATUS(status));
    }
  }
  pid_ = -1;
  return failure(Failure::Kind::io, why + how);
}

Result<std::string> PeerProcess::ask(const std::string& line) {
  if (socket_ < 0) return failure(Failure::Kind::io, "the peer's process has ended");
  const std::string text = line + "\n";
  kill(pid_, SIGCONT);
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t n = send(socket_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return end("the peer's process has ended");
    sent += static_cast<std::size_t>(n);
  }
  while (true) {
    if (const auto at = received_.find('\n'); at != std::string::npos) {
      std::string answer = received_.substr(0, at);
      received_.erase(0, at + 1);
      kill(pid_, SIGSTOP);  // its threads may spin for a while, beside what is timed next
      return answer;
    }
    pollfd waiting{socket_, POLLIN, 0};
    const int ready = poll(&waiting, 1, kPatienceMs);
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) return end(fmt::format("the peer gave no answer for {} s", kPatienceMs / 1000));
    char part[4096];
    const ssize_t n = recv(socket_, part, sizeof part, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return end("the peer's process has ended");
    received_.append(part, static_cast<std::size_t>(n));
  }
}

}  // namespace tilewright::lab
