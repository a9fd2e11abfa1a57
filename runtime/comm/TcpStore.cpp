// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The client half of the TCP store, and how rank 0 comes to serve it.

#include "comm/Store.h"
#include "comm/TcpStoreServer.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <thread>

namespace dfa::rt {

namespace {

using Clock = std::chrono::steady_clock;
using wire::Deadline;

/// What an answer may take beyond the time asked for, at most. Less where the
/// timeout of collectives is short: who waits for the store of a machine that
/// cannot be reached must still be in time to say so.
constexpr Milliseconds kAnswerTime(20000);
constexpr Milliseconds kShortestAnswerTime(500);

Deadline after(Milliseconds time) { return Clock::now() + time; }

/// Connects to one address; empty with errno on failure.
wire::Socket connectTo(const addrinfo &address, Deadline deadline) {
  wire::Socket socket(::socket(address.ai_family,
                               SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (socket.fd() < 0)
    return socket;
  int error = 0;
  if (::connect(socket.fd(), address.ai_addr, address.ai_addrlen) != 0) {
    error = errno;
    if (error == EINPROGRESS) {
      pollfd entry = {socket.fd(), POLLOUT, 0};
      int64_t left =
          std::chrono::duration_cast<Milliseconds>(deadline - Clock::now())
              .count();
      // A lost SYN must not eat the whole time: the caller tries again.
      int n = ::poll(&entry, 1, int(std::clamp<int64_t>(left, 1, 3000)));
      socklen_t bytes = sizeof(error);
      error = ETIMEDOUT;
      if (n > 0)
        ::getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &bytes);
    }
  }
  if (error != 0) {
    socket.reset();
    errno = error;
    return socket;
  }
  wire::configure(socket.fd());
  return socket;
}

class TcpStore : public Store {
public:
  TcpStore(StoreAddress address, int rank,
           std::shared_ptr<TcpStoreServer> server, Milliseconds answerTime)
      : address(std::move(address)), rank(rank), server(std::move(server)),
        answerTime(answerTime) {}

  ~TcpStore() override {
    if (socket.fd() < 0)
      return;
    std::string goodbye;
    appendRequest(goodbye, wire::Request::Goodbye, "", "", 0);
    wire::sendAll(socket.fd(), goodbye.data(), goodbye.size(),
                  after(Milliseconds(100)));
  }

  /// Connects until the deadline; the server may start after us.
  Status connect(Deadline deadline) {
    Milliseconds pause(5);
    while (true) {
      std::string why;
      bool foreign = false;
      if (tryConnect(deadline, why, foreign))
        return Status();
      if (foreign || Clock::now() >= deadline)
        return DFA_RT_ERROR(CollectiveError, "store %s: %s", name().c_str(),
                            why.c_str());
      std::this_thread::sleep_for(pause);
      pause = std::min(pause * 2, Milliseconds(250));
    }
  }

  Status set(const std::string &key, const std::string &value) override {
    Answer answer;
    return ask(wire::Request::Set, key, value, 0, Milliseconds(0), answer);
  }

  Status tryGet(const std::string &key, std::string &value,
                bool &found) override {
    Answer answer;
    DFA_RT_TRY(ask(wire::Request::Get, key, "", 0, Milliseconds(0), answer));
    found = answer.kind == wire::Reply::Ok;
    value = std::move(answer.value);
    return Status();
  }

  Status get(const std::string &key, std::string &value,
             Milliseconds timeout) override {
    Answer answer;
    DFA_RT_TRY(
        ask(wire::Request::Get, key, "", timeout.count(), timeout, answer));
    if (answer.kind != wire::Reply::Ok)
      return DFA_RT_ERROR(
          CollectiveError, "key '%s' did not appear in %s within %lld ms",
          key.c_str(), name().c_str(), (long long)timeout.count());
    value = std::move(answer.value);
    return Status();
  }

  Status add(const std::string &key, int64_t delta, int64_t &sum) override {
    Answer answer;
    DFA_RT_TRY(
        ask(wire::Request::Add, key, "", delta, Milliseconds(0), answer));
    sum = answer.number;
    return Status();
  }

  Status lostRanks(std::vector<int> &ranks) override {
    Answer answer;
    ranks.clear();
    DFA_RT_TRY(ask(wire::Request::Lost, "", "", 0, Milliseconds(0), answer));
    for (size_t at = 0; at + 4 <= answer.value.size(); at += 4)
      ranks.push_back(int(wire::readU32(answer.value.data() + at)));
    return Status();
  }

  Status clone(std::unique_ptr<Store> &copy) override {
    std::unique_ptr<TcpStore> store =
        std::make_unique<TcpStore>(address, rank, server, answerTime);
    // It was there: a server that is not is gone.
    DFA_RT_TRY(store->connect(after(answerTime)));
    copy = std::move(store);
    return Status();
  }

  int servedBy() const override { return 0; }
  std::string name() const override { return address.str(); }

private:
  struct Answer {
    wire::Reply kind = wire::Reply::Ok;
    int64_t number = 0;
    std::string value;
  };

  static void appendRequest(std::string &message, wire::Request kind,
                            const std::string &key, const std::string &value,
                            int64_t number) {
    message += char(kind);
    wire::appendU32(message, uint32_t(key.size()));
    wire::appendU32(message, uint32_t(value.size()));
    wire::appendU64(message, uint64_t(number));
    message += key;
    message += value;
  }

  bool tryConnect(Deadline deadline, std::string &why, bool &foreign);
  Status ask(wire::Request kind, const std::string &key,
             const std::string &value, int64_t number, Milliseconds wait,
             Answer &answer);

  const StoreAddress address;
  const int rank;
  std::shared_ptr<TcpStoreServer> server; // rank 0 only
  const Milliseconds answerTime;
  std::mutex mutex; // one request at a time
  wire::Socket socket;
};

bool TcpStore::tryConnect(Deadline deadline, std::string &why, bool &foreign) {
  addrinfo hints = {}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  int code =
      ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(),
                    &hints, &found);
  if (code != 0) {
    why = format("cannot resolve the host: %s", ::gai_strerror(code));
    return false;
  }
  wire::Socket connected;
  for (addrinfo *it = found; it && connected.fd() < 0; it = it->ai_next)
    connected = connectTo(*it, deadline);
  int error = errno;
  ::freeaddrinfo(found);
  if (connected.fd() < 0) {
    why = format("rank %d cannot connect to rank 0: %s", rank,
                 std::strerror(error));
    return false;
  }
  std::string hello(wire::kMagic, sizeof(wire::kMagic));
  wire::appendU32(hello, uint32_t(rank));
  char answer[sizeof(wire::kMagic)] = {};
  Deadline limit = std::max(deadline, after(Milliseconds(200)));
  limit = std::min(limit, after(kAnswerTime));
  bool spoke =
      wire::sendAll(connected.fd(), hello.data(), hello.size(), limit) &&
      wire::receiveAll(connected.fd(), answer, sizeof(answer), limit);
  if (!spoke) {
    why = format("the listener does not answer: %s", std::strerror(errno));
    return false;
  }
  if (std::memcmp(answer, wire::kMagic, sizeof(answer)) != 0) {
    why = "expected a dfa store of this version, found another program on the "
          "port";
    foreign = true;
    return false;
  }
  socket = std::move(connected);
  return true;
}

Status TcpStore::ask(wire::Request kind, const std::string &key,
                     const std::string &value, int64_t number,
                     Milliseconds wait, Answer &answer) {
  if (key.size() > wire::kLargestText || value.size() > wire::kLargestText)
    return DFA_RT_ERROR(InvalidArgument,
                        "store: expected at most %u bytes for a value, found "
                        "%zu",
                        wire::kLargestText, value.size());
  std::string message;
  appendRequest(message, kind, key, value, number);
  char head[wire::kReplyBytes];
  std::lock_guard<std::mutex> guard(mutex);
  Deadline deadline = after(wait) + answerTime;
  errno = ENOTCONN;
  bool done =
      socket.fd() >= 0 &&
      wire::sendAll(socket.fd(), message.data(), message.size(), deadline) &&
      wire::receiveAll(socket.fd(), head, sizeof(head), deadline);
  if (done) {
    answer.kind = wire::Reply(head[0]);
    answer.number = int64_t(wire::readU64(head + 5));
    uint32_t bytes = wire::readU32(head + 1);
    done = bytes <= wire::kLargestText;
    if (done) {
      answer.value.resize(bytes);
      done = wire::receiveAll(socket.fd(), &answer.value[0], bytes, deadline);
    }
  }
  if (done)
    return Status();
  int error = errno;
  // Half a message may be on its way: the connection is of no more use.
  socket.reset();
  return DFA_RT_ERROR(CollectiveError,
                      "store %s: rank 0, which serves it, does not answer: %s",
                      name().c_str(), std::strerror(error));
}

} // namespace

Status openTcpStore(const StoreAddress &address, int rank, Milliseconds timeout,
                    std::unique_ptr<Store> &store, int listening) {
  std::shared_ptr<TcpStoreServer> server;
  Deadline deadline = after(timeout);
  StoreAddress actual = address;
  if (rank == 0) {
    DFA_RT_TRY(TcpStoreServer::start(
        address.host, address.port,
        std::min(deadline, after(Milliseconds(5000))), listening, server));
    actual.port = server->port();
  }
  std::unique_ptr<TcpStore> client = std::make_unique<TcpStore>(
      actual, rank, server,
      std::clamp(timeout / 4, kShortestAnswerTime, kAnswerTime));
  DFA_RT_TRY(client->connect(deadline));
  store = std::move(client);
  return Status();
}

} // namespace dfa::rt
