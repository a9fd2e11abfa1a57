// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One thread, one epoll set, no locks: the map belongs to the thread. A get
// that finds nothing is parked until its key is set or its time is up. A client
// that vanishes without a goodbye is noted: its death is the first evidence of
// a failure that others will only feel as a broken pipe.

#include "comm/TcpStoreServer.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <list>
#include <map>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <unordered_map>
#include <vector>

namespace dfa::rt {

namespace {

using Clock = std::chrono::steady_clock;
using wire::Deadline;

/// One client.
struct Connection {
  wire::Socket socket;
  std::string in, out;
  int rank = -1;
  bool greeted = false;
  bool leaving = false; // said goodbye
  bool waiting = false; // has a parked get
};

/// A get whose key is not there yet.
struct Parked {
  int fd;
  std::string key;
  Deadline deadline;
};

class Server : public TcpStoreServer {
public:
  Server(wire::Socket listener, wire::Socket epoll, wire::Socket stopper,
         int port)
      : listener(std::move(listener)), epoll(std::move(epoll)),
        stopper(std::move(stopper)), listenPort(port),
        thread([this] { run(); }) {}

  ~Server() override {
    uint64_t one = 1;
    while (::write(stopper.fd(), &one, sizeof(one)) < 0 && errno == EINTR) {
    }
    thread.join();
  }

  int port() const override { return listenPort; }

private:
  void run();
  void accept();
  void readFrom(int fd);
  /// Handles the complete messages in a connection's input; false if the
  /// client does not speak our protocol.
  bool handleInput(int fd, Connection &client);
  void handle(int fd, Connection &client, wire::Request kind,
              const std::string &key, std::string value, int64_t number);
  void reply(int fd, Connection &client, wire::Reply kind, int64_t number,
             const std::string &value);
  void flush(int fd, Connection &client);
  void drop(int fd);
  void wake(const std::string &key);
  void expire();
  int pause() const;

  wire::Socket listener, epoll, stopper;
  const int listenPort;
  std::unordered_map<int, Connection> clients;
  std::map<std::string, std::string> values;
  std::map<std::string, int64_t> counters;
  std::list<Parked> parked;
  std::vector<int> lost;
  std::thread thread; // last: starts when all else is there
};

void Server::run() {
  std::vector<epoll_event> events(64);
  while (true) {
    int n =
        ::epoll_wait(epoll.fd(), events.data(), int(events.size()), pause());
    if (n < 0 && errno != EINTR)
      return;
    for (int i = 0; i < n; ++i) {
      int fd = events[size_t(i)].data.fd;
      if (fd == stopper.fd())
        return;
      if (fd == listener.fd()) {
        accept();
        continue;
      }
      auto client = clients.find(fd);
      if (client == clients.end())
        continue; // dropped earlier in this round
      if (events[size_t(i)].events & EPOLLOUT)
        flush(fd, client->second);
      if (events[size_t(i)].events & ~uint32_t(EPOLLOUT))
        readFrom(fd);
    }
    expire();
  }
}

void Server::accept() {
  while (true) {
    wire::Socket socket(::accept4(listener.fd(), nullptr, nullptr,
                                  SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket.fd() < 0)
      return;
    wire::configure(socket.fd());
    epoll_event event = {};
    event.events = EPOLLIN;
    event.data.fd = socket.fd();
    int fd = socket.fd();
    if (::epoll_ctl(epoll.fd(), EPOLL_CTL_ADD, fd, &event) == 0)
      clients[fd].socket = std::move(socket);
  }
}

void Server::readFrom(int fd) {
  Connection &client = clients[fd];
  char buffer[16384];
  while (true) {
    ssize_t n = ::recv(fd, buffer, sizeof(buffer), 0);
    if (n > 0) {
      client.in.append(buffer, size_t(n));
      if (!handleInput(fd, client))
        return drop(fd);
      continue;
    }
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
      return;
    return drop(fd);
  }
}

bool Server::handleInput(int fd, Connection &client) {
  size_t at = 0;
  if (!client.greeted) {
    size_t known = std::min(client.in.size(), sizeof(wire::kMagic));
    if (std::memcmp(client.in.data(), wire::kMagic, known) != 0)
      return false;
    if (client.in.size() < wire::kHelloBytes)
      return true;
    client.rank = int(wire::readU32(client.in.data() + sizeof(wire::kMagic)));
    client.greeted = true;
    at = wire::kHelloBytes;
    client.out.append(wire::kMagic, sizeof(wire::kMagic));
    flush(fd, client);
  }
  while (client.in.size() - at >= wire::kRequestBytes) {
    const char *head = client.in.data() + at;
    uint32_t keyBytes = wire::readU32(head + 1);
    uint32_t valueBytes = wire::readU32(head + 5);
    if (keyBytes > wire::kLargestText || valueBytes > wire::kLargestText ||
        uint8_t(*head) > uint8_t(wire::Request::Goodbye))
      return false;
    size_t whole = wire::kRequestBytes + size_t(keyBytes) + valueBytes;
    if (client.in.size() - at < whole)
      break;
    handle(fd, client, wire::Request(*head),
           client.in.substr(at + wire::kRequestBytes, keyBytes),
           client.in.substr(at + wire::kRequestBytes + keyBytes, valueBytes),
           int64_t(wire::readU64(head + 9)));
    at += whole;
  }
  client.in.erase(0, at);
  return true;
}

void Server::handle(int fd, Connection &client, wire::Request kind,
                    const std::string &key, std::string value, int64_t number) {
  switch (kind) {
  case wire::Request::Set:
    values[key] = std::move(value);
    reply(fd, client, wire::Reply::Ok, 0, "");
    wake(key);
    return;
  case wire::Request::Get: {
    auto found = values.find(key);
    if (found != values.end())
      return reply(fd, client, wire::Reply::Ok, 0, found->second);
    if (number <= 0)
      return reply(fd, client, wire::Reply::Absent, 0, "");
    client.waiting = true;
    parked.push_back(
        {fd, key, Clock::now() + std::chrono::milliseconds(number)});
    return;
  }
  case wire::Request::Add:
    return reply(fd, client, wire::Reply::Ok, counters[key] += number, "");
  case wire::Request::Lost: {
    std::string ranks;
    for (int rank : lost)
      wire::appendU32(ranks, uint32_t(rank));
    return reply(fd, client, wire::Reply::Ok, 0, ranks);
  }
  case wire::Request::Goodbye:
    client.leaving = true;
    return;
  }
}

void Server::reply(int fd, Connection &client, wire::Reply kind, int64_t number,
                   const std::string &value) {
  client.out += char(kind);
  wire::appendU32(client.out, uint32_t(value.size()));
  wire::appendU64(client.out, uint64_t(number));
  client.out += value;
  flush(fd, client);
}

void Server::flush(int fd, Connection &client) {
  while (!client.out.empty()) {
    ssize_t n = ::send(fd, client.out.data(), client.out.size(), MSG_NOSIGNAL);
    if (n > 0) {
      client.out.erase(0, size_t(n));
      continue;
    }
    if (n < 0 && errno == EINTR)
      continue;
    break; // full: wait for EPOLLOUT; broken: the read side will see it
  }
  epoll_event event = {};
  event.events = EPOLLIN | (client.out.empty() ? 0u : unsigned(EPOLLOUT));
  event.data.fd = fd;
  ::epoll_ctl(epoll.fd(), EPOLL_CTL_MOD, fd, &event);
}

void Server::drop(int fd) {
  Connection &client = clients[fd];
  if (client.greeted && !client.leaving && client.rank >= 0 &&
      std::find(lost.begin(), lost.end(), client.rank) == lost.end())
    lost.push_back(client.rank);
  parked.remove_if([fd](const Parked &entry) { return entry.fd == fd; });
  clients.erase(fd);
}

void Server::wake(const std::string &key) {
  for (auto it = parked.begin(); it != parked.end();) {
    if (it->key != key) {
      ++it;
      continue;
    }
    int fd = it->fd;
    it = parked.erase(it);
    reply(fd, clients[fd], wire::Reply::Ok, 0, values[key]);
  }
}

void Server::expire() {
  Deadline now = Clock::now();
  for (auto it = parked.begin(); it != parked.end();) {
    if (it->deadline > now) {
      ++it;
      continue;
    }
    int fd = it->fd;
    it = parked.erase(it);
    reply(fd, clients[fd], wire::Reply::Absent, 0, "");
  }
}

int Server::pause() const {
  if (parked.empty())
    return -1;
  Deadline first = parked.front().deadline;
  for (const Parked &entry : parked)
    first = std::min(first, entry.deadline);
  int64_t left = std::chrono::duration_cast<std::chrono::milliseconds>(
                     first - Clock::now())
                     .count();
  return int(std::clamp<int64_t>(left + 1, 0, 60 * 1000));
}

bool isLoopback(const sockaddr *address) {
  if (address->sa_family == AF_INET) {
    const auto *v4 = reinterpret_cast<const sockaddr_in *>(address);
    return (ntohl(v4->sin_addr.s_addr) >> 24) == 127;
  }
  const auto *v6 = reinterpret_cast<const sockaddr_in6 *>(address);
  return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

/// Makes a listening socket; the returned socket is empty with errno on error.
wire::Socket listenOn(const sockaddr *address, socklen_t bytes) {
  wire::Socket socket(::socket(address->sa_family,
                               SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (socket.fd() < 0)
    return socket;
  int on = 1, off = 0;
  ::setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (address->sa_family == AF_INET6) // serve IPv4 clients on the same socket
    ::setsockopt(socket.fd(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  if (::bind(socket.fd(), address, bytes) != 0 ||
      ::listen(socket.fd(), 4096) != 0) {
    int error = errno;
    socket.reset();
    errno = error;
  }
  return socket;
}

wire::Socket listenFor(const std::string &host, int port) {
  addrinfo hints = {}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints,
                    &found) == 0) {
    wire::Socket socket;
    for (addrinfo *it = found; it && socket.fd() < 0; it = it->ai_next)
      if (isLoopback(it->ai_addr))
        socket = listenOn(it->ai_addr, it->ai_addrlen);
    bool loopback = isLoopback(found->ai_addr);
    ::freeaddrinfo(found);
    if (loopback)
      return socket;
  }
  sockaddr_in6 any6 = {};
  any6.sin6_family = AF_INET6;
  any6.sin6_port = htons(uint16_t(port));
  wire::Socket socket =
      listenOn(reinterpret_cast<sockaddr *>(&any6), sizeof(any6));
  if (socket.fd() >= 0 || errno == EADDRINUSE)
    return socket;
  sockaddr_in any4 = {}; // a host without IPv6
  any4.sin_family = AF_INET;
  any4.sin_port = htons(uint16_t(port));
  return listenOn(reinterpret_cast<sockaddr *>(&any4), sizeof(any4));
}

/// A duplicate of a listening socket of another owner.
wire::Socket adopt(int listening) {
  int accepts = 0;
  socklen_t bytes = sizeof(accepts);
  if (::getsockopt(listening, SOL_SOCKET, SO_ACCEPTCONN, &accepts, &bytes) != 0)
    return wire::Socket();
  if (!accepts) {
    errno = EINVAL;
    return wire::Socket();
  }
  wire::Socket socket(::fcntl(listening, F_DUPFD_CLOEXEC, 0));
  if (socket.fd() >= 0)
    ::fcntl(socket.fd(), F_SETFL, O_NONBLOCK);
  return socket;
}

} // namespace

Status TcpStoreServer::start(const std::string &host, int port,
                             Deadline deadline, int listening,
                             std::shared_ptr<TcpStoreServer> &server) {
  wire::Socket listener;
  if (listening >= 0) {
    listener = adopt(listening);
    if (listener.fd() < 0)
      return DFA_RT_ERROR(InvalidArgument,
                          "DFA_STORE_FD: expected a listening socket, found "
                          "descriptor %d: %s",
                          listening, std::strerror(errno));
  }
  while (listener.fd() < 0) {
    listener = listenFor(host, port);
    if (listener.fd() >= 0)
      break;
    // After a restart the old rank 0 may still be on its way out.
    if (errno != EADDRINUSE || Clock::now() >= deadline)
      return DFA_RT_ERROR(CollectiveError,
                          "store: cannot listen on port %d (%s): %s; choose "
                          "another with DFA_STORE=tcp://host:port",
                          port, host.c_str(), std::strerror(errno));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  sockaddr_storage bound = {};
  socklen_t bytes = sizeof(bound);
  ::getsockname(listener.fd(), reinterpret_cast<sockaddr *>(&bound), &bytes);
  int boundPort =
      ntohs(bound.ss_family == AF_INET6
                ? reinterpret_cast<sockaddr_in6 *>(&bound)->sin6_port
                : reinterpret_cast<sockaddr_in *>(&bound)->sin_port);

  wire::Socket epoll(::epoll_create1(EPOLL_CLOEXEC));
  wire::Socket stopper(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  for (int fd : {listener.fd(), stopper.fd()}) {
    epoll_event event = {};
    event.events = EPOLLIN;
    event.data.fd = fd;
    if (::epoll_ctl(epoll.fd(), EPOLL_CTL_ADD, fd, &event) != 0)
      return DFA_RT_ERROR(CollectiveError, "store: cannot poll: %s",
                          std::strerror(errno));
  }
  server = std::make_shared<Server>(std::move(listener), std::move(epoll),
                                    std::move(stopper), boundPort);
  return Status();
}

} // namespace dfa::rt
