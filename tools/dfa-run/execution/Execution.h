// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A compiled step on the ranks of a run, seen from one of them. All ranks take
// the steps; then the first asks and the others serve, so that results are one.
#ifndef DFA_TOOLS_DFA_RUN_EXECUTION_EXECUTION_H
#define DFA_TOOLS_DFA_RUN_EXECUTION_EXECUTION_H

#include "data/Results.h"
#include "execution/Rank.h"
#include "support/Comparison.h"

#include <functional>
#include <mutex>
#include <string>
#include <vector>

namespace dfa::run {

/// This process among all ranks.
struct Place {
  int64_t rank = 0, ranks = 1;
  int64_t localRank = 0, localRanks = 1;
  std::string source; // who says so

  bool first() const { return rank == 0; }
};

/// Reads the launcher's environment.
Status readPlace(Place &place);

struct ExecutionOptions {
  Place place;
  bool cuda = false;
  unsigned threads = 0; // of CPU devices, all ranks of this machine together
  bool replay = false;
  std::string agreement; // see RankOptions
};

class Execution : public Results {
public:
  ~Execution() override;

  // On all ranks, in the same order.
  /// Makes this rank and waits until all have met.
  Status create(const StepGraph &graph, const StepCode &code,
                const ExecutionOptions &options);
  /// Puts initial values in place.
  Status load(const Source &source);
  /// Puts the gradients of a step (from 1) in place.
  Status setGradients(const Source &source, int64_t number);
  /// Runs a step and waits for it.
  Status step();

  /// On all ranks but the first, behind the steps: does what the first asks
  /// for, until it has all it wants. `text` is what this rank has to add to
  /// gatherTexts().
  Status serve(const std::function<std::string()> &text);

  // On the first rank, behind the steps.
  /// From here on the others serve, until this object goes.
  void lead() { leads = true; }
  /// Runs something that takes long while the others wait.
  Status meanwhile(const std::function<void()> &work);
  /// One text of every rank, the first's own among them.
  Status gatherTexts(const std::string &own, std::vector<std::string> &texts);
  /// Times a copy on the first rank, then steps and their commands on the
  /// gradients that are in place.
  Status timeAll(const std::vector<KernelTraffic> &traffic, Timing &timing);
  /// Compares with the reference, which has run the same steps.
  Status verify(const Reference &reference, Comparison &comparison);
  Status read(const std::string &role, int param, void *target) override;
  Status readControl(int field, double &value) override;
  Status readSteps(int param, int64_t &steps) override;

  /// Lines about this rank: device and transport.
  std::string describe() const;

private:
  /// What the first rank asks the others to do with it.
  enum class Ask : int32_t {
    Quit,
    Nothing,
    Read,
    Compare,
    Time,
    Profile,
    Text
  };
  struct Request {
    Ask ask = Ask::Quit;
    int32_t param = 0;
    int64_t number = 0; // Read: of the replica; Time: of the steps
    int64_t roleBytes = 0;
  };

  /// Tells the others of a failure of this rank.
  Status shared(Status status);
  Status request(Ask ask, int64_t number = 0, int param = 0,
                 const std::string &role = "");
  Status answer(const Request &request, const std::string &role,
                const std::function<std::string()> &text, bool &quit);
  // The parts that all ranks do for a request.
  Status exchangeParts(
      const std::string &role, int64_t replica, int param,
      const std::function<Status(const Fragment &, const char *)> &take);
  Status exchangeEqual(int param, std::vector<char> &first,
                       std::vector<int64_t> &equal);
  Status exchangeText(std::string &text, int64_t root);
  Status exchangeSlowest(double &milliseconds);

  Status timeBatch(int64_t count, double &milliseconds,
                   std::vector<double> &hostMicroseconds);
  Status timeSteps(StepTime &time);
  Status timeCommands(std::vector<CommandSum> &commands);
  Status readStored(const std::string &role, int64_t replica, int param,
                    void *target);
  size_t storedBytes(const std::string &role, int param) const;
  Status verifyParam(const Reference &reference, int param,
                     Comparison &comparison);
  Status verifyStored(const Reference &reference, const StoredArray &array,
                      int param, Comparison &comparison);
  Status verifyEncoding(int param, Comparison &comparison);
  Status verifyReplicas(int param, Comparison &comparison);
  Status verifyControl(const Reference &reference, Comparison &comparison);

  const StepGraph *graph = nullptr;
  unsigned threads = 0;
  Place place;
  int64_t shards = 1;
  Rank rank;
  bool leads = false;            // the others serve
  bool broken = false;           // a rank failed
  std::recursive_mutex exchange; // one request at a time
};

} // namespace dfa::run

#endif // DFA_TOOLS_DFA_RUN_EXECUTION_EXECUTION_H
