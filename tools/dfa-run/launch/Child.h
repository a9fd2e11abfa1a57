// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One rank's process and the lines it prints. When children start and end is
// decided in Launcher.cpp.
#ifndef DFA_TOOLS_DFA_RUN_LAUNCH_CHILD_H
#define DFA_TOOLS_DFA_RUN_LAUNCH_CHILD_H

#include <cstdint>
#include <string>
#include <sys/types.h>
#include <vector>

namespace dfa::run {

/// Bytes of a pipe, handed on as whole lines with a prefix.
class LinePipe {
public:
  LinePipe() = default;
  LinePipe(const LinePipe &) = delete;
  ~LinePipe() { close(); }

  /// Makes the pipe. Returns the end to write to, or -1 with errno.
  int open();
  /// Hands on to `target` what is there, without waiting. Closes at the end.
  void drain(int target, const std::string &prefix);
  /// Hands on a last line without an end, and closes.
  void finish(int target, const std::string &prefix);
  int fd() const { return readEnd; }

private:
  void close();

  int readEnd = -1;
  std::string held; // no line yet
};

struct Child {
  int64_t rank = 0;
  pid_t pid = -1;
  bool ended = false;
  int status = 0; // as waitpid gives it
  LinePipe out, err;

  /// Starts the process. `words` and `environment` are whole; descriptor
  /// `inherited` stays open in it. False with errno.
  bool start(const std::vector<std::string> &words,
             const std::vector<std::string> &environment, int inherited);
  /// Reads what was printed; all of it if the process has ended.
  void drain();
  /// What a failed process is called, such as "ended by signal 9 (Killed)".
  std::string ending() const;
  /// Its exit code; that of a peer failure if a signal ended it.
  int code() const;
};

} // namespace dfa::run

#endif // DFA_TOOLS_DFA_RUN_LAUNCH_CHILD_H
