// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Keys of .npz files to their parts and back.
#include "support/Keys.h"

using namespace dfa::run;

static const std::string bf16Suffix = ":bf16";

std::string Key::str() const {
  return kind + "/" + name + (bf16 ? bf16Suffix : "");
}

Status dfa::run::parseKey(const std::string &text, Key &key) {
  size_t slash = text.find('/');
  if (slash == std::string::npos || slash == 0)
    return Status::expects("a key of the form KIND/NAME", quoted(text));
  key.kind = text.substr(0, slash);
  key.name = text.substr(slash + 1);
  size_t stem = key.name.size() - bf16Suffix.size();
  key.bf16 = key.name.size() >= bf16Suffix.size() &&
             key.name.compare(stem, bf16Suffix.size(), bf16Suffix) == 0;
  if (key.bf16)
    key.name.resize(stem);
  if (key.name.empty())
    return Status::expects("a name behind the slash", quoted(text));
  if (key.bf16 && key.kind == controlKind)
    return Status::expects("a control field without ':bf16'", quoted(text));
  return Status();
}
