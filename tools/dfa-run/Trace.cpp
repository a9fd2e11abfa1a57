// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Spans as complete events ("ph": "X").
#include "Trace.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <fstream>
#include <sstream>

/// Names what shares this machine's clock; empty if the system does not say.
static std::string bootId() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

/// Microseconds on the clock that all processes of a machine share.
static double sinceBoot(std::chrono::steady_clock::time_point time) {
  return std::chrono::duration<double, std::micro>(time.time_since_epoch())
      .count();
}

std::string dfa::run::Trace::text() const {
  std::ostringstream stream;
  stream.precision(17);
  stream << bootId() << "\n" << sinceBoot(start) << " " << marked << "\n";
  for (const Event &event : events)
    stream << event.begin << " " << event.length << " " << event.name << "\n";
  return stream.str();
}

void dfa::run::Trace::append(int64_t rank, const std::string &text) {
  std::istringstream stream(text);
  std::string host;
  double theirStart = 0, theirMark = 0;
  std::getline(stream, host);
  stream >> theirStart >> theirMark;
  double offset =
      host == bootId() ? theirStart - sinceBoot(start) : marked - theirMark;
  Event event;
  event.rank = rank;
  while (stream >> event.begin >> event.length) {
    std::getline(stream >> std::ws, event.name);
    event.begin += offset;
    events.push_back(event);
  }
}

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
          json.attribute("pid", event.rank);
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
