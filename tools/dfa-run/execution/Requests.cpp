// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// After the steps the first rank leads: it broadcasts what it wants to know,
// and all ranks do their part of it. With one rank only the parts are left.
#include "execution/Execution.h"

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <thread>

using namespace dfa::run;

/// Bytes that are compared at a time.
constexpr size_t compareBytes = size_t(16) << 20;

/// The others hear at least that often that the first rank lives and works.
constexpr std::chrono::milliseconds lifeSign(200);

Execution::~Execution() {
  // Without it the others would take our end for a failure.
  if (leads && !broken)
    (void)request(Ask::Quit);
}

Status Execution::request(Ask ask, int64_t number, int param,
                          const std::string &role) {
  if (place.ranks == 1)
    return Status();
  Request wanted;
  wanted.ask = ask;
  wanted.number = number;
  wanted.param = param;
  wanted.roleBytes = static_cast<int64_t>(role.size());
  Status status = rank.broadcast(&wanted, sizeof(wanted), 0);
  std::string text = role;
  if (status.ok() && !text.empty())
    status = rank.broadcast(&text[0], text.size(), 0);
  return shared(status);
}

Status Execution::serve(const std::function<std::string()> &text) {
  for (bool quit = false; !quit;) {
    Request wanted;
    Status status = rank.broadcast(&wanted, sizeof(wanted), 0);
    std::string role(static_cast<size_t>(wanted.roleBytes), ' ');
    if (status.ok() && !role.empty())
      status = rank.broadcast(&role[0], role.size(), 0);
    if (status.ok())
      status = answer(wanted, role, text, quit);
    if (!status.ok())
      return shared(status);
  }
  return Status();
}

Status Execution::answer(const Request &wanted, const std::string &role,
                         const std::function<std::string()> &text, bool &quit) {
  double milliseconds = 0;
  std::vector<double> host;
  std::vector<CommandSum> commands;
  std::vector<char> first;
  std::vector<int64_t> equal;
  Status status;
  switch (wanted.ask) {
  case Ask::Quit:
    quit = true;
    return status;
  case Ask::Nothing:
    return status;
  case Ask::Read:
    return exchangeParts(
        role, wanted.number, wanted.param,
        [](const Fragment &, const char *) { return Status(); });
  case Ask::Compare:
    return exchangeEqual(wanted.param, first, equal);
  case Ask::Time:
    status = rank.timeBatch(wanted.number, milliseconds, host);
    return status.ok() ? exchangeSlowest(milliseconds) : status;
  case Ask::Profile:
    return rank.profile(commands);
  case Ask::Text:
    for (int64_t i = 1; i < place.ranks && status.ok(); ++i) {
      std::string part = i == place.rank ? text() : "";
      status = exchangeText(part, i);
    }
    return status;
  }
  return Status::expects("a request of the first rank", "another");
}

Status Execution::exchangeParts(
    const std::string &role, int64_t replica, int param,
    const std::function<Status(const Fragment &, const char *)> &take) {
  size_t width = storedBytes(role, param);
  Status status;
  for (int64_t shard = 0; shard < shards && status.ok(); ++shard) {
    int64_t owner = replica * shards + shard;
    Fragment part = rank.fragmentOf(role, param, shard);
    std::vector<char> bytes(static_cast<size_t>(part.count) * width);
    if (owner == place.rank)
      status = rank.read(role, param, bytes.data());
    if (status.ok() && place.ranks > 1)
      status = rank.broadcast(bytes.data(), bytes.size(), owner);
    if (status.ok())
      status = take(part, bytes.data());
    // Every rank has all of it.
    if (part.count == graph->params[param].elements)
      break;
  }
  return status;
}

/// `first` is the first rank's parameter, `equal` whether that of each rank has
/// the same bits.
Status Execution::exchangeEqual(int param, std::vector<char> &first,
                                std::vector<int64_t> &equal) {
  const ParamSpec &spec = graph->params[param];
  size_t bytes =
      static_cast<size_t>(spec.elements) * storedBytes("param", param);
  first.resize(bytes);
  Status status = rank.read("param", param, first.data());
  int64_t same = 1;
  std::vector<char> other;
  for (size_t done = 0; done < bytes && status.ok(); done += compareBytes) {
    size_t now = std::min(compareBytes, bytes - done);
    other.assign(first.begin() + static_cast<long>(done),
                 first.begin() + static_cast<long>(done + now));
    status = rank.broadcast(other.data(), now, 0);
    same &= std::memcmp(other.data(), first.data() + done, now) == 0;
  }
  equal.assign(static_cast<size_t>(place.ranks), same);
  for (int64_t i = 0; i < place.ranks && status.ok(); ++i)
    status = rank.broadcast(&equal[static_cast<size_t>(i)], sizeof(int64_t), i);
  return status;
}

Status Execution::exchangeText(std::string &text, int64_t root) {
  int64_t bytes = static_cast<int64_t>(text.size());
  Status status = rank.broadcast(&bytes, sizeof(bytes), root);
  text.resize(static_cast<size_t>(bytes));
  return status.ok() ? rank.broadcast(&text[0], text.size(), root) : status;
}

Status Execution::exchangeSlowest(double &milliseconds) {
  double own = milliseconds;
  Status status;
  for (int64_t i = 0; i < place.ranks && place.ranks > 1 && status.ok(); ++i) {
    double other = own;
    status = rank.broadcast(&other, sizeof(other), i);
    milliseconds = std::max(milliseconds, other);
  }
  return status;
}

Status Execution::gatherTexts(const std::string &own,
                              std::vector<std::string> &texts) {
  texts.assign(static_cast<size_t>(place.ranks), own);
  Status status = request(Ask::Text);
  for (int64_t i = 1; i < place.ranks && status.ok(); ++i) {
    texts[static_cast<size_t>(i)].clear();
    status = exchangeText(texts[static_cast<size_t>(i)], i);
  }
  return shared(status);
}

Status Execution::meanwhile(const std::function<void()> &work) {
  if (place.ranks == 1) {
    work();
    return Status();
  }
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  std::thread worker([&] {
    work();
    std::lock_guard<std::mutex> lock(mutex);
    done = true;
    changed.notify_all();
  });
  Status status;
  std::unique_lock<std::mutex> lock(mutex);
  while (!changed.wait_for(lock, lifeSign, [&] { return done; })) {
    lock.unlock();
    if (status.ok())
      status = request(Ask::Nothing);
    lock.lock();
  }
  lock.unlock();
  worker.join();
  return status;
}
