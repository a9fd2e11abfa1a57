// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One loop around poll(): lines of the children, their ends, signals to us.
#include "launch/Launcher.h"
#include "Options.h"
#include "launch/Child.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <netinet/in.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace dfa::run;

namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

/// How long the others have to say what they saw of a failed rank: to find out
/// takes a few heartbeats of the runtime.
constexpr double explainSeconds = 15;
/// The same where the rank ended by an error of its input, which the others
/// have too.
constexpr double inputSeconds = 2;
/// From the request to end to the signal that cannot be refused.
constexpr double endSeconds = 3;

// Written by the handlers, read by the loop.
int wakeEnds[2] = {-1, -1};
volatile sig_atomic_t stopSignal = 0;

extern "C" void onSignal(int number) {
  int error = errno;
  if (number != SIGCHLD)
    stopSignal = number;
  char byte = 0;
  (void)!::write(wakeEnds[1], &byte, 1);
  errno = error;
}

/// Handlers as long as this lives.
class Signals {
public:
  Signals() {
    struct sigaction action = {};
    action.sa_handler = onSignal;
    action.sa_flags = SA_RESTART;
    for (size_t i = 0; i < count; ++i)
      ::sigaction(numbers[i], &action, &before[i]);
  }
  ~Signals() {
    for (size_t i = 0; i < count; ++i)
      ::sigaction(numbers[i], &before[i], nullptr);
  }
  Signals(const Signals &) = delete;

private:
  static constexpr size_t count = 4;
  static constexpr int numbers[count] = {SIGINT, SIGTERM, SIGHUP, SIGCHLD};
  struct sigaction before[count];
};

class Launcher {
public:
  explicit Launcher(const LaunchOptions &options) : options(options) {}
  ~Launcher() {
    for (int fd : {listening, text, wakeEnds[0], wakeEnds[1]})
      if (fd >= 0)
        ::close(fd);
  }
  int run();

private:
  bool prepare();
  bool listen();
  bool keepInput();
  bool startAll();
  void wait();
  void reap();
  void giveTime(const Child &child);
  void endAll(int number);
  /// In seconds, or less than 0: nothing to wait for but the children.
  double untilDeadline() const;
  bool allEnded() const;
  int code() const;

  const LaunchOptions &options;
  std::vector<std::string> words;
  std::vector<std::unique_ptr<Child>> children;
  int listening = -1, port = 0;
  int text = -1; // holds standard input
  bool failed = false;
  bool asked = false, forced = false; // to end
  Clock::time_point deadline;
};

} // namespace

static void complain(const std::string &what) {
  std::fprintf(stderr, "dfa-run: error: %s\n", what.c_str());
}

/// Listens where no other program can come first; rank 0 serves there.
bool Launcher::listen() {
  listening = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof(address);
  sockaddr *any = reinterpret_cast<sockaddr *>(&address);
  if (listening < 0 || ::bind(listening, any, bytes) != 0 ||
      ::listen(listening, 4096) != 0 ||
      ::getsockname(listening, any, &bytes) != 0)
    return false;
  port = ntohs(address.sin_port);
  return true;
}

/// Gives the ranks a file in memory instead of "-".
bool Launcher::keepInput() {
  words = options.words;
  for (std::string &word : words) {
    if (word != "-")
      continue;
    text = ::memfd_create("dfa-run", 0);
    if (text < 0)
      return false;
    const std::string &input = options.standardInput;
    for (size_t done = 0; done < input.size();) {
      ssize_t now = ::write(text, input.data() + done, input.size() - done);
      if (now <= 0)
        return false;
      done += static_cast<size_t>(now);
    }
    word = "/proc/self/fd/" + std::to_string(text);
  }
  return true;
}

bool Launcher::prepare() {
  return ::pipe2(wakeEnds, O_CLOEXEC | O_NONBLOCK) == 0 && listen() &&
         keepInput();
}

/// The environment of a rank. SLURM's variables say less: RANK goes first.
static std::vector<std::string> environmentOf(int64_t rank, int64_t ranks,
                                              int port, int listening) {
  std::vector<std::pair<std::string, std::string>> own = {
      {"RANK", std::to_string(rank)},
      {"WORLD_SIZE", std::to_string(ranks)},
      {"LOCAL_RANK", std::to_string(rank)},
      {"LOCAL_WORLD_SIZE", std::to_string(ranks)},
      {"DFA_STORE", "tcp://127.0.0.1:" + std::to_string(port)},
      {"DFA_STORE_FD", rank == 0 ? std::to_string(listening) : ""},
  };
  std::vector<std::string> all;
  for (char **it = environ; *it; ++it) {
    std::string variable = *it;
    bool replaced = false;
    for (const std::pair<std::string, std::string> &pair : own)
      replaced |=
          variable.compare(0, pair.first.size() + 1, pair.first + "=") == 0;
    if (!replaced)
      all.push_back(variable);
  }
  for (const std::pair<std::string, std::string> &pair : own)
    if (!pair.second.empty())
      all.push_back(pair.first + "=" + pair.second);
  return all;
}

bool Launcher::startAll() {
  for (int64_t rank = 0; rank < options.ranks && !stopSignal; ++rank) {
    children.push_back(std::make_unique<Child>());
    Child &child = *children.back();
    child.rank = rank;
    if (!child.start(words, environmentOf(rank, options.ranks, port, listening),
                     rank == 0 ? listening : -1)) {
      complain("cannot start rank " + std::to_string(rank) + ": " +
               std::strerror(errno));
      children.pop_back();
      return false;
    }
  }
  // Nobody else answers there when rank 0 is gone.
  ::close(listening);
  listening = -1;
  return true;
}

bool Launcher::allEnded() const {
  for (const std::unique_ptr<Child> &child : children)
    if (!child->ended)
      return false;
  return true;
}

void Launcher::endAll(int number) {
  for (const std::unique_ptr<Child> &child : children)
    if (!child->ended)
      ::kill(child->pid, number);
}

void Launcher::giveTime(const Child &child) {
  int code = child.code();
  failed = true;
  bool input = code == exitWrongInput || code == exitWrongUsage;
  deadline =
      Clock::now() + std::chrono::milliseconds(static_cast<int64_t>(
                         1000 * (input ? inputSeconds : explainSeconds)));
}

void Launcher::reap() {
  for (const std::unique_ptr<Child> &child : children) {
    if (child->ended || ::waitpid(child->pid, &child->status, WNOHANG) <= 0)
      continue;
    child->ended = true;
    child->drain();
    int code = child->code();
    // What we ended ourselves is no news; a difference is a result.
    if (asked || code == exitFine)
      continue;
    if (code != exitDifference || WIFSIGNALED(child->status))
      complain("rank " + std::to_string(child->rank) + " " + child->ending());
    if (!failed)
      giveTime(*child);
  }
}

double Launcher::untilDeadline() const {
  if (!failed && !asked)
    return -1;
  return std::max(0.0, Seconds(deadline - Clock::now()).count());
}

void Launcher::wait() {
  while (!allEnded()) {
    std::vector<pollfd> fds = {{wakeEnds[0], POLLIN, 0}};
    for (const std::unique_ptr<Child> &child : children)
      for (const LinePipe *pipe : {&child->out, &child->err})
        if (pipe->fd() >= 0)
          fds.push_back({pipe->fd(), POLLIN, 0});
    double left = untilDeadline();
    int limit = left < 0 ? -1 : static_cast<int>(left * 1000) + 1;
    (void)::poll(fds.data(), fds.size(), forced ? -1 : limit);
    char bytes[64];
    while (::read(wakeEnds[0], bytes, sizeof(bytes)) > 0)
      ;
    for (const std::unique_ptr<Child> &child : children)
      child->drain();
    reap();
    bool late = !forced && untilDeadline() == 0;
    if ((stopSignal || (failed && late)) && !asked) {
      asked = true;
      if (!stopSignal)
        complain("the other ranks do not end by themselves and are stopped");
      endAll(SIGTERM);
      deadline = Clock::now() + std::chrono::milliseconds(
                                    static_cast<int64_t>(1000 * endSeconds));
    } else if (asked && late) {
      forced = true;
      endAll(SIGKILL);
    }
  }
}

/// What is wrong with the input explains what is wrong with the peers.
int Launcher::code() const {
  int found = exitFine;
  for (const std::unique_ptr<Child> &child : children) {
    int code = child->code();
    if (code != exitFine && (found == exitFine || code < found))
      found = code;
  }
  return found;
}

int Launcher::run() {
  Signals signals;
  if (!prepare()) {
    complain(std::string("cannot start ranks: ") + std::strerror(errno));
    return exitDevice;
  }
  bool started = startAll();
  if (!started) {
    asked = forced = true;
    endAll(SIGKILL);
  }
  wait();
  return started ? code() : exitDevice;
}

int dfa::run::launchRanks(const LaunchOptions &options) {
  stopSignal = 0;
  int code = exitDevice;
  {
    Launcher launcher(options);
    code = launcher.run();
  }
  if (stopSignal) {
    // The caller sees what happened: a shell stops its script.
    ::signal(stopSignal, SIG_DFL);
    ::raise(stopSignal);
  }
  return code;
}
