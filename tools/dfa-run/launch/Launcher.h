// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ranks as processes on this machine: starts them, passes on what they print,
// says which failed and ends the others. What a rank does is not known here.
#ifndef DFA_TOOLS_DFA_RUN_LAUNCH_LAUNCHER_H
#define DFA_TOOLS_DFA_RUN_LAUNCH_LAUNCHER_H

#include <cstdint>
#include <string>
#include <vector>

namespace dfa::run {

struct LaunchOptions {
  int64_t ranks = 1;
  /// The command line of every rank; the first word names the program.
  std::vector<std::string> words;
  /// What the word "-" among them stands for: standard input was read already.
  std::string standardInput;
};

/// Runs this program once for each rank with RANK, WORLD_SIZE, LOCAL_RANK,
/// LOCAL_WORLD_SIZE and DFA_STORE set. Returns the exit code of the run: that
/// of the ranks, where wrong input goes before device and peer failures.
/// A signal that ends this process ends all of them.
int launchRanks(const LaunchOptions &options);

} // namespace dfa::run

#endif // DFA_TOOLS_DFA_RUN_LAUNCH_LAUNCHER_H
