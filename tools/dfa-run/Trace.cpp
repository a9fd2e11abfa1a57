// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Spans as complete events ("ph": "X").
#include "Trace.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

bool dfa::run::Trace::write(const std::string &path) const {
  std::error_code error;
  llvm::raw_fd_ostream file(path, error);
  if (error)
    return false;
  llvm::json::OStream json(file, 1);
  json.object([&] {
    json.attribute("displayTimeUnit", "ms");
    json.attributeArray("traceEvents", [&] {
      for (const Event &event : events)
        json.object([&] {
          json.attribute("name", event.name);
          json.attribute("ph", "X");
          json.attribute("ts", event.begin);
          json.attribute("dur", event.length);
          json.attribute("pid", 0);
          json.attribute("tid", 0);
        });
    });
  });
  file << "\n";
  file.close();
  bool failed = file.has_error();
  file.clear_error();
  return !failed;
}
