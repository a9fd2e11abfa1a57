// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Several processes in a test: fork, a report from each child over a pipe, a
// time limit. The parent must have no threads when it forks.

#ifndef DFA_TEST_COMM_PROCESSES_H
#define DFA_TEST_COMM_PROCESSES_H

#include <functional>
#include <string>
#include <sys/types.h>
#include <vector>

/// What a child left behind.
struct ChildResult {
  bool exited = false; ///< by itself, with `code`
  int code = -1;
  int signal = 0;     ///< that ended it, else 0
  bool late = false;  ///< killed at the time limit
  double seconds = 0; ///< from start() to its end
  std::string report;
};

/// N children that run one function each.
class Processes {
public:
  /// What a child runs; its return value is the exit code. Text given to
  /// `report` reaches the parent, whatever happens to the child afterwards.
  using Report = std::function<void(const std::string &)>;
  using Body = std::function<int(int rank, const Report &report)>;

  Processes(int count, const Body &body);
  ~Processes();

  pid_t pid(int rank) const { return pids[size_t(rank)]; }
  void kill(int rank, int signal) const;
  /// Waits until every child has reported `text`; false after `seconds`.
  bool waitForReports(const std::string &text, double seconds);
  /// Collects all children; those alive after `seconds` are killed.
  std::vector<ChildResult> wait(double seconds);

private:
  void read(size_t rank);

  std::vector<pid_t> pids;
  std::vector<int> pipes;
  std::vector<std::string> reports;
  double started;
};

/// Runs children and expects that all return 0; failures print their reports.
void expectAllSucceed(int count, const Processes::Body &body,
                      double seconds = 60);

/// A TCP port of the loopback address that is free now.
int freePort();

/// A fresh directory below the system's temporary one, removed at the end.
class TemporaryDirectory {
public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  const std::string &path() const { return directory; }

private:
  std::string directory;
};

#endif // DFA_TEST_COMM_PROCESSES_H
