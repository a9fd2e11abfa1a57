// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table of GPUs. Names with a letter have instructions that later chips
// do not run; they are listed since a cubin of them runs on that chip only.

#include "dfa/Target/Chips.h"

using namespace mlir::dfa;

static constexpr Chip chips[] = {
    {"sm_80", "Ampere"},     {"sm_86", "Ampere"},
    {"sm_87", "Ampere"},     {"sm_89", "Ada"},
    {"sm_90", "Hopper"},     {"sm_90a", "Hopper"},
    {"sm_100", "Blackwell"}, {"sm_100a", "Blackwell"},
    {"sm_103", "Blackwell"}, {"sm_103a", "Blackwell"},
    {"sm_120", "Blackwell"}, {"sm_120a", "Blackwell"},
    {"sm_121", "Blackwell"}, {"sm_121a", "Blackwell"},
};

const Chip *mlir::dfa::findChip(llvm::StringRef name) {
  for (const Chip &chip : chips)
    if (chip.name == name)
      return &chip;
  return nullptr;
}

std::string mlir::dfa::listChips() {
  std::string list;
  for (const Chip &chip : chips) {
    if (!list.empty())
      list += ", ";
    list += chip.name;
  }
  return list;
}
