// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One thread: publish, read the verdict, look for deaths and for a collective
// that takes too long. All store calls return at once; the transport's thread
// may scan too (explain), so shared state is under one mutex that is never held
// over a store call.

#include "comm/Watchdog.h"

#include "comm/Heartbeat.h"

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <condition_variable>
#include <cstdio>
#include <thread>
#include <unordered_map>

namespace dfa::rt {

namespace {

using Clock = std::chrono::steady_clock;

/// Above this many ranks a scan reads only the members of the collective.
constexpr size_t kScanAll = 512;
/// How long a second finder waits for the first one's verdict.
constexpr Milliseconds kVerdictTime(2000);

class WatchdogImpl : public Watchdog {
public:
  WatchdogImpl(const WatchdogOptions &options, std::unique_ptr<Store> store,
               SequenceLog &log)
      : options(options), store(std::move(store)), log(log) {}

  ~WatchdogImpl() override;
  Status begin();

  Status explain(uint64_t number, const std::string &transport,
                 bool timedOut) override;
  Status failure() override;
  bool failure(CollectiveFailure &found) override;
  void reportLocalFailure(const std::string &reason) override;
  void onFailure(std::function<void()> callback) override {
    std::lock_guard<std::mutex> guard(mutex);
    action = std::move(callback);
  }
  void setProbe(std::function<std::string()> callback) override {
    std::lock_guard<std::mutex> guard(mutex);
    probe = std::move(callback);
  }
  Milliseconds interval() const override { return options.interval; }
  Milliseconds stale() const override { return options.stale; }

private:
  void run();
  void tick();
  Status publish();
  void readVerdict();
  /// Reads the peers' heartbeats and the list of deaths.
  Status scan(const CollectiveInfo &info, std::vector<PeerView> &peers);
  /// Makes `own` the verdict, unless another rank was faster.
  void decide(CollectiveFailure own);
  void adopt(const CollectiveFailure &verdict);
  void waitForOthers();
  bool known() { return hasVerdict.load(std::memory_order_acquire); }
  Culprit judge(uint64_t number, bool timedOut, bool transportSays = false);
  /// Whether this rank still looks for a culprit. Under the mutex.
  bool searches() const {
    return state == Heartbeat::State::Running ||
           state == Heartbeat::State::Stuck;
  }
  CollectiveFailure failureOf(uint64_t number, const Culprit &culprit);

  WatchdogOptions options;
  std::unique_ptr<Store> store;
  SequenceLog &log;

  std::atomic<bool> hasVerdict{false};
  std::mutex mutex;
  std::condition_variable wakeUp;
  bool stopping = false;
  bool acted = false;
  std::function<void()> action;
  std::function<std::string()> probe;
  CollectiveFailure verdict;
  Heartbeat::State state = Heartbeat::State::Running;
  std::string stateText;
  uint64_t beat = 0;
  struct Pulse {
    uint64_t beat = 0;
    Clock::time_point changed;
  };
  std::unordered_map<int, Pulse> pulses;

  // The watchdog thread's own.
  uint64_t watched = 0;
  Clock::time_point watchedSince;
  bool storeFailed = false;

  std::mutex publishMutex; // beats reach the store in order
  std::thread thread;
};

std::string heartbeatKey(int rank) {
  return "heartbeat/" + std::to_string(rank);
}

std::string encodeVerdict(const CollectiveFailure &failure) {
  return format("%d %" PRId64 " %" PRIu64 "\n", failure.rank, failure.bucket,
                failure.number) +
         failure.collective + "\n" + failure.reason;
}

bool decodeVerdict(const std::string &text, CollectiveFailure &failure) {
  size_t first = text.find('\n');
  size_t second =
      first == std::string::npos ? first : text.find('\n', first + 1);
  if (second == std::string::npos ||
      std::sscanf(text.c_str(), "%d %" SCNd64 " %" SCNu64, &failure.rank,
                  &failure.bucket, &failure.number) != 3)
    return false;
  failure.collective = text.substr(first + 1, second - first - 1);
  failure.reason = text.substr(second + 1);
  return true;
}

Status WatchdogImpl::begin() {
  DFA_RT_TRY(publish());
  thread = std::thread([this] { run(); });
  return Status();
}

WatchdogImpl::~WatchdogImpl() {
  {
    std::lock_guard<std::mutex> guard(mutex);
    stopping = true;
    if (searches())
      state = Heartbeat::State::Closed;
  }
  wakeUp.notify_all();
  if (thread.joinable())
    thread.join();
  // Best effort: if the store is gone there is nobody to tell.
  (void)publish();
}

void WatchdogImpl::run() {
  std::unique_lock<std::mutex> lock(mutex);
  while (!stopping) {
    wakeUp.wait_for(lock, options.interval, [this] { return stopping; });
    if (stopping)
      return;
    lock.unlock();
    tick();
    lock.lock();
    if (known() && !acted) {
      acted = true;
      std::function<void()> callback = action;
      lock.unlock();
      if (callback)
        callback();
      lock.lock();
    }
  }
}

void WatchdogImpl::tick() {
  storeFailed = !publish().ok();
  if (known())
    return;
  if (!storeFailed)
    readVerdict();
  if (known())
    return;

  uint64_t begun = log.begun();
  Clock::time_point now = Clock::now();
  if (begun == log.ended()) {
    watched = 0;
    return;
  }
  if (begun != watched) {
    watched = begun;
    watchedSince = now;
    return;
  }
  std::function<std::string()> ask;
  {
    std::lock_guard<std::mutex> guard(mutex);
    ask = probe;
  }
  std::string trouble = ask ? ask() : std::string();
  if (!trouble.empty()) {
    (void)explain(begun, trouble, false);
    return;
  }
  Milliseconds inFlight =
      std::chrono::duration_cast<Milliseconds>(now - watchedSince);
  // A death is looked for at every tick (one small request), silence and a
  // failed store only when the collective is slow already, lateness at the
  // timeout. A rank may end its part and quit while ours is still completing:
  // hence the patience.
  bool timedOut = inFlight >= options.timeout;
  std::vector<int> lost;
  bool look = timedOut || inFlight >= options.stale / 2;
  if (!look && !storeFailed && inFlight >= options.interval * 2)
    look = store->lostRanks(lost).ok() && !lost.empty();
  if (!look)
    return;
  Culprit culprit = judge(begun, timedOut);
  if (culprit.rank < 0 && timedOut)
    culprit.reason = format("not done within %.1f s, and no rank is late",
                            double(options.timeout.count()) / 1000);
  if (!culprit.reason.empty())
    decide(failureOf(begun, culprit));
}

Status WatchdogImpl::publish() {
  std::lock_guard<std::mutex> order(publishMutex);
  Heartbeat heartbeat;
  {
    std::lock_guard<std::mutex> guard(mutex);
    heartbeat.beat = ++beat;
    heartbeat.state = state;
    heartbeat.text = stateText;
  }
  // `ended` first: read the other way round, a collective that ends in between
  // would look as if one ended that never began.
  heartbeat.ended = log.ended();
  heartbeat.begun = log.begun();
  CollectiveInfo info;
  if (log.lookup(heartbeat.begun, info))
    heartbeat.what = info.str() + format(", %" PRId64 " bytes", info.bytes);
  return store->set(heartbeatKey(options.rank), heartbeat.encode());
}

void WatchdogImpl::readVerdict() {
  std::string text;
  bool found = false;
  CollectiveFailure other;
  if (store->tryGet("verdict", text, found).ok() && found &&
      decodeVerdict(text, other))
    adopt(other);
}

Status WatchdogImpl::scan(const CollectiveInfo &info,
                          std::vector<PeerView> &peers) {
  peers.clear();
  std::vector<int> lost;
  DFA_RT_TRY(store->lostRanks(lost));
  for (int rank : options.ranks) {
    bool member = info.ranks.empty() ||
                  std::find(info.ranks.begin(), info.ranks.end(), rank) !=
                      info.ranks.end();
    std::vector<int>::iterator death =
        std::find(lost.begin(), lost.end(), rank);
    if (rank == options.rank ||
        (!member && death == lost.end() && options.ranks.size() > kScanAll))
      continue;
    PeerView peer;
    peer.rank = rank;
    peer.member = member;
    if (death != lost.end())
      peer.lostOrder = int(death - lost.begin());
    std::string text;
    bool found = false;
    DFA_RT_TRY(store->tryGet(heartbeatKey(rank), text, found));
    peer.seen = found && Heartbeat::decode(text, peer.heartbeat);

    std::lock_guard<std::mutex> guard(mutex);
    Clock::time_point now = Clock::now();
    Pulse &pulse = pulses[rank];
    if (pulse.changed == Clock::time_point() ||
        pulse.beat != peer.heartbeat.beat) {
      pulse.beat = peer.heartbeat.beat;
      pulse.changed = now;
    }
    peer.silentSeconds =
        std::chrono::duration<double>(now - pulse.changed).count();
    peer.silent = now - pulse.changed >= options.stale;
    peers.push_back(std::move(peer));
  }
  return Status();
}

Culprit WatchdogImpl::judge(uint64_t number, bool timedOut,
                            bool transportSays) {
  CollectiveInfo info;
  Stuck stuck;
  stuck.number = number;
  stuck.timedOut = timedOut;
  stuck.transportSays = transportSays;
  if (log.lookup(number, info))
    stuck.what = info.str() + format(", %" PRId64 " bytes", info.bytes);
  std::vector<PeerView> peers;
  Status status = scan(info, peers);
  if (status.ok())
    return findCulprit(peers, stuck);
  int server = store->servedBy();
  bool member = info.ranks.empty() ||
                std::find(info.ranks.begin(), info.ranks.end(), server) !=
                    info.ranks.end();
  if (!member && !timedOut)
    return {};
  if (server < 0 || server == options.rank)
    return {-1, "the store failed: " + status.message()};
  return {server, "died or left (the store that it serves is gone: " +
                      status.message() + ")"};
}

CollectiveFailure WatchdogImpl::failureOf(uint64_t number,
                                          const Culprit &culprit) {
  CollectiveFailure failure;
  failure.rank = culprit.rank;
  failure.reason = culprit.reason;
  failure.number = number;
  CollectiveInfo info;
  if (log.lookup(number, info)) {
    failure.collective = info.collective;
    failure.bucket = info.bucket;
  }
  return failure;
}

void WatchdogImpl::decide(CollectiveFailure own) {
  if (known())
    return;
  int64_t turn = 0;
  if (store->add("verdict-turn", 1, turn).ok()) {
    if (turn == 1) {
      (void)store->set("verdict", encodeVerdict(own));
    } else {
      std::string text;
      CollectiveFailure other;
      if (store->get("verdict", text, kVerdictTime).ok() &&
          decodeVerdict(text, other))
        own = other;
    }
  }
  adopt(own);
}

void WatchdogImpl::adopt(const CollectiveFailure &found) {
  {
    std::lock_guard<std::mutex> guard(mutex);
    if (known())
      return;
    verdict = found;
    if (searches())
      state = Heartbeat::State::Informed;
    hasVerdict.store(true, std::memory_order_release);
  }
  (void)publish();
}

void WatchdogImpl::waitForOthers() {
  // The store dies with this process, and with it the evidence: let the others
  // read the verdict before the caller sees the error and quits.
  Clock::time_point deadline =
      Clock::now() + options.interval * 3 + Milliseconds(500);
  while (Clock::now() < deadline) {
    std::vector<PeerView> peers;
    if (!scan(CollectiveInfo(), peers).ok())
      return;
    bool all = std::all_of(peers.begin(), peers.end(), [](const PeerView &p) {
      return p.lostOrder >= 0 || p.silent ||
             (p.seen && p.heartbeat.state != Heartbeat::State::Running &&
              p.heartbeat.state != Heartbeat::State::Stuck);
    });
    if (all)
      return;
    std::this_thread::sleep_for(Milliseconds(10));
  }
}

Status WatchdogImpl::explain(uint64_t number, const std::string &transport,
                             bool timedOut) {
  Clock::time_point patience =
      Clock::now() + options.stale + options.interval * 3;
  Milliseconds pause =
      std::min<Milliseconds>(options.interval, Milliseconds(50));
  bool transportSays = !timedOut && !transport.empty();
  if (transportSays && !known()) {
    {
      std::lock_guard<std::mutex> guard(mutex);
      if (state == Heartbeat::State::Running) {
        state = Heartbeat::State::Stuck;
        stateText = transport;
      }
    }
    // If all ranks say so, nobody waits for evidence of a death.
    (void)publish();
  }
  while (!known()) {
    bool last = Clock::now() >= patience;
    Culprit culprit = judge(number, timedOut || last, transportSays);
    if (culprit.rank < 0 && last)
      culprit.reason = "the transport failed, and no rank is to blame";
    if (!culprit.reason.empty()) {
      decide(failureOf(number, culprit));
      break;
    }
    std::this_thread::sleep_for(pause);
    if (known())
      break;
    // This may be the watchdog's own thread: stay alive in the others' eyes.
    (void)publish();
    readVerdict();
  }
  if (store->servedBy() == options.rank)
    waitForOthers();

  // The verdict names the culprit; the collective is the one stuck here.
  CollectiveFailure mine;
  failure(mine);
  CollectiveFailure here = failureOf(number, {mine.rank, mine.reason});
  std::string text = here.str();
  if (!transport.empty())
    text += "; rank " + std::to_string(options.rank) + " saw: " + transport;
  {
    std::lock_guard<std::mutex> guard(mutex);
    if (!here.collective.empty())
      verdict = here;
  }
  return DFA_RT_ERROR(CollectiveError, "%s", text.c_str());
}

Status WatchdogImpl::failure() {
  CollectiveFailure found;
  if (!failure(found))
    return Status();
  return DFA_RT_ERROR(CollectiveError, "%s", found.str().c_str());
}

bool WatchdogImpl::failure(CollectiveFailure &found) {
  if (!known())
    return false;
  std::lock_guard<std::mutex> guard(mutex);
  found = verdict;
  return true;
}

void WatchdogImpl::reportLocalFailure(const std::string &reason) {
  if (known())
    return;
  {
    std::lock_guard<std::mutex> guard(mutex);
    state = Heartbeat::State::Failed;
    stateText = reason;
  }
  (void)publish();
  decide(failureOf(log.begun(), {options.rank, "failed: " + reason}));
  if (store->servedBy() == options.rank)
    waitForOthers();
}

} // namespace

std::string CollectiveFailure::str() const {
  std::string text = "collective " + SequenceLog::numberName(number);
  if (!collective.empty())
    text += ", " + collective +
            (bucket >= 0 ? " of bucket " + std::to_string(bucket)
                         : std::string(" of the control exchange"));
  text += ": ";
  if (rank >= 0)
    text += "rank " + std::to_string(rank) + " ";
  return text + reason;
}

Status Watchdog::start(const WatchdogOptions &given, Store &store,
                       SequenceLog &log, std::unique_ptr<Watchdog> &watchdog) {
  WatchdogOptions options = given;
  // Rank 0 answers two requests a rank and interval: stretch it for many.
  int64_t crowd = 1 + int64_t(options.ranks.size()) / 1024;
  if (options.interval.count() <= 0)
    options.interval = Milliseconds(
        std::clamp<int64_t>(options.timeout.count() / 50, 20, 1000) * crowd);
  if (options.stale.count() <= 0)
    options.stale = Milliseconds(
        std::clamp<int64_t>(options.timeout.count() / 10, 500, 30000) * crowd);
  std::unique_ptr<Store> own;
  DFA_RT_TRY(store.clone(own));
  std::unique_ptr<WatchdogImpl> made =
      std::make_unique<WatchdogImpl>(options, std::move(own), log);
  DFA_RT_TRY(made->begin());
  watchdog = std::move(made);
  return Status();
}

} // namespace dfa::rt
