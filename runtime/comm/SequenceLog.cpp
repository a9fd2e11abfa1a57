// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table behind the sequence words.

#include "comm/SequenceLog.h"

#include "base/Status.h"

namespace dfa::rt {

std::string CollectiveInfo::str() const {
  std::string text = collective;
  text += bucket >= 0 ? " of bucket " + std::to_string(bucket)
                      : std::string(" of the control exchange");
  if (!axis.empty())
    text += " over axis '" + axis + "'";
  return text;
}

uint64_t SequenceLog::issue(CollectiveInfo info) {
  std::lock_guard<std::mutex> guard(mutex);
  ++issued;
  ring[issued % kRemembered] = std::move(info);
  return issued;
}

uint32_t SequenceLog::beginRecording() {
  std::lock_guard<std::mutex> guard(mutex);
  recorded[++recordings];
  return recordings;
}

uint64_t SequenceLog::issueRecorded(uint32_t recording, CollectiveInfo info) {
  std::lock_guard<std::mutex> guard(mutex);
  std::vector<CollectiveInfo> &entries = recorded[recording];
  entries.push_back(std::move(info));
  return kRecorded | uint64_t(recording) << 32 | entries.size();
}

void SequenceLog::dropRecording(uint32_t recording) {
  std::lock_guard<std::mutex> guard(mutex);
  recorded.erase(recording);
}

bool SequenceLog::lookup(uint64_t number, CollectiveInfo &info) const {
  std::lock_guard<std::mutex> guard(mutex);
  if (number & kRecorded) {
    auto found = recorded.find(uint32_t((number & ~kRecorded) >> 32));
    uint64_t position = number & UINT32_MAX;
    if (found == recorded.end() || position == 0 ||
        position > found->second.size())
      return false;
    info = found->second[position - 1];
    return true;
  }
  if (number == 0 || number > issued || issued - number >= kRemembered)
    return false;
  info = ring[number % kRemembered];
  return true;
}

std::string SequenceLog::numberName(uint64_t number) {
  if (!(number & kRecorded))
    return std::to_string(number);
  return format("%u of recording %u", unsigned(number & UINT32_MAX),
                unsigned((number & ~kRecorded) >> 32));
}

} // namespace dfa::rt
