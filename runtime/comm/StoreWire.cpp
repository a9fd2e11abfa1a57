// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Socket calls with deadlines, and little-endian words.

#include "comm/StoreWire.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace dfa::rt::wire {

void appendU32(std::string &text, uint32_t value) {
  for (int i = 0; i < 4; ++i)
    text += char(value >> (8 * i));
}

void appendU64(std::string &text, uint64_t value) {
  for (int i = 0; i < 8; ++i)
    text += char(value >> (8 * i));
}

uint32_t readU32(const char *bytes) {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i)
    value |= uint32_t(static_cast<unsigned char>(bytes[i])) << (8 * i);
  return value;
}

uint64_t readU64(const char *bytes) {
  return uint64_t(readU32(bytes)) | uint64_t(readU32(bytes + 4)) << 32;
}

int Socket::release() {
  int fd = descriptor;
  descriptor = -1;
  return fd;
}

void Socket::reset(int fd) {
  if (descriptor >= 0)
    ::close(descriptor);
  descriptor = fd;
}

/// Waits for an event; false with errno at the deadline.
static bool waitFor(int fd, short events, Deadline deadline) {
  while (true) {
    int64_t left = std::chrono::duration_cast<std::chrono::milliseconds>(
                       deadline - std::chrono::steady_clock::now())
                       .count();
    pollfd entry = {fd, events, 0};
    int n = ::poll(&entry, 1,
                   int(std::clamp<int64_t>(left + 1, 0, 60 * 60 * 1000)));
    if (n > 0)
      return true;
    if (n < 0 && errno != EINTR)
      return false;
    if (left <= 0) {
      errno = ETIMEDOUT;
      return false;
    }
  }
}

bool sendAll(int fd, const char *data, size_t bytes, Deadline deadline) {
  while (bytes > 0) {
    ssize_t n = ::send(fd, data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) {
      data += n;
      bytes -= size_t(n);
    } else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      if (!waitFor(fd, POLLOUT, deadline))
        return false;
    } else if (n < 0 && errno != EINTR) {
      return false;
    }
  }
  return true;
}

bool receiveAll(int fd, char *data, size_t bytes, Deadline deadline) {
  while (bytes > 0) {
    ssize_t n = ::recv(fd, data, bytes, MSG_DONTWAIT);
    if (n > 0) {
      data += n;
      bytes -= size_t(n);
    } else if (n == 0) {
      errno = ECONNRESET;
      return false;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!waitFor(fd, POLLIN, deadline))
        return false;
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

void configure(int fd) {
  int on = 1, idle = 10, interval = 5, probes = 3;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  // A host that lost power sends no FIN: probes find it within 25 s.
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
}

} // namespace dfa::rt::wire
