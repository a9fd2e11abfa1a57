// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The TCP store's bytes on the wire, and the socket calls both ends share.
// Messages are little endian, whatever the host is.

#ifndef DFA_COMM_STOREWIRE_H
#define DFA_COMM_STOREWIRE_H

#include "base/Status.h"

#include <chrono>
#include <cstdint>
#include <string>

namespace dfa::rt::wire {

/// First bytes of a connection in both directions: says that the other end is
/// one of us, in this version, and not e.g. torchrun's agent.
constexpr char kMagic[8] = {'d', 'f', 'a', 's', 't', 'o', 'r', '1'};
/// Hello of a client: magic, then its rank.
constexpr size_t kHelloBytes = sizeof(kMagic) + 4;

/// Larger keys or values are a protocol error, not an allocation.
constexpr uint32_t kLargestText = 64u << 20;

enum class Request : uint8_t { Set, Get, Add, Lost, Goodbye };
enum class Reply : uint8_t { Ok, Absent };

/// Request: kind (1), key bytes (4), value bytes (4), number (8), key, value.
/// The number is Add's delta, or Get's timeout in milliseconds.
constexpr size_t kRequestBytes = 17;
/// Reply: kind (1), value bytes (4), number (8), value.
constexpr size_t kReplyBytes = 13;

void appendU32(std::string &text, uint32_t value);
void appendU64(std::string &text, uint64_t value);
uint32_t readU32(const char *bytes);
uint64_t readU64(const char *bytes);

using Deadline = std::chrono::steady_clock::time_point;

/// Owns a socket.
class Socket {
public:
  explicit Socket(int fd = -1) : descriptor(fd) {}
  ~Socket() { reset(); }
  Socket(Socket &&other) noexcept : descriptor(other.release()) {}
  Socket &operator=(Socket &&other) noexcept {
    reset(other.release());
    return *this;
  }
  int fd() const { return descriptor; }
  int release();
  void reset(int fd = -1);

private:
  int descriptor;
};

/// Sends all bytes; raises no SIGPIPE. False with errno set on failure,
/// ETIMEDOUT at the deadline.
bool sendAll(int fd, const char *data, size_t bytes, Deadline deadline);
/// Receives exactly `bytes`; ECONNRESET if the peer closed.
bool receiveAll(int fd, char *data, size_t bytes, Deadline deadline);

/// Sets what both ends want: no delay, keep-alive probes, close on exec.
void configure(int fd);

} // namespace dfa::rt::wire

#endif // DFA_COMM_STOREWIRE_H
