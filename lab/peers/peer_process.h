// PeerProcess: a Python program at the other end of a socket, and one JSON object a line each way.
#pragma once

#include <tilewright/base/error.h>

#include <sys/types.h>
#include <string>

namespace tilewright::lab {

class PeerProcess {
 public:
  // Starts `python script`. The Failure says what is missing.
  static Result<PeerProcess> start(const std::string& python, const std::string& script);
  PeerProcess(PeerProcess&& other) noexcept;
  PeerProcess& operator=(PeerProcess&&) = delete;
  ~PeerProcess();

  // Sends a line and waits for the answering one. After a Failure the process is ended: every later call
  // fails.
  Result<std::string> ask(const std::string& line);

 private:
  PeerProcess(pid_t pid, int socket) : pid_(pid), socket_(socket) {}
  Failure end(const std::string& why);
  pid_t pid_;
  int socket_;
  std::string received_;  // beyond the last answer
};

}  // namespace tilewright::lab
