// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// SLURM's compressed lists: node names ("n[01-03,7],m2") and task counts
// ("4(x2),3"). Pure string functions, so no scontrol is needed. Which variable
// holds which list is Bootstrap.h's business.

#ifndef DFA_COMM_SLURMNODELIST_H
#define DFA_COMM_SLURMNODELIST_H

#include "base/Status.h"

#include <string>
#include <vector>

namespace dfa::rt {

/// Expands a node list to host names in the order of the list; several
/// brackets in one name are multiplied out, the last one fastest.
Status expandNodeList(const std::string &list, std::vector<std::string> &hosts);

/// Expands a list of task counts, one number a node.
Status expandTaskCounts(const std::string &list, std::vector<int> &counts);

} // namespace dfa::rt

#endif // DFA_COMM_SLURMNODELIST_H
