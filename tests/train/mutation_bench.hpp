// A bench for mutation tests: training runs with one seeded bug, put in from outside (a decorated store, a mutated
// schedule, another loader, ...), and what the existing checks make of them.
//
// A bug counts as caught when on some rank the run differs from the oracle, ends in an error (tracker, order check,
// deadline, ...), or shows other counters than planned. Every bug is tried beside a control: the same setting without
// it, which must be clean on all ranks.
#pragma once

#include "train/training_world.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace lamina::test {

// A run and what surrounds its engine. What is left empty is the real part.
struct Experiment {
  std::string model = "tied", units = "layer";
  RunConfig config = small_run();
  std::int64_t steps = 4;
  std::vector<int> nodes = {};
  double deadline_s = 60;                          // of all waits; bugs that end in one take little
  std::set<std::int64_t> skipped = {};             // steps that must be skipped
  std::int64_t sequences = 0;                      // of the data, if > 0; those beyond have no labels
  bool against_plain_run = false;                  // expect what a run of the real parts gives, instead of the oracle
  std::function<void(TrainingWorld&)> first = {};  // before the first step

  std::function<std::unique_ptr<WeightStore>(TrainingWorld&)> store = {};
  std::function<std::unique_ptr<Optimizer>(TrainingWorld&)> optimizer = {};
  std::function<std::unique_ptr<ModelRunner>(TrainingWorld&)> runner = {};
  std::function<LoadBatch(LoadBatch)> batches = {};
  std::function<void(std::vector<Operation>&)> schedule = {};
  StreamHooks hooks = {};
};

using Change = std::function<void(Experiment&)>;

struct Setting {
  std::string name;  // the control is run once for each
  Change apply;
};

struct Mutation {
  std::string of;  // the case of CASES.md, such as "N4"
  std::string what;
  Setting setting;
  Change bug;
  std::vector<std::string> says = {};  // texts that what was seen must hold, on some rank
};

// What a rank saw. Empty texts: nothing wrong.
struct Observation {
  std::string error, difference, counters;
};
// Runs the experiment. By rank; the same on every rank. Collective.
[[nodiscard]] std::vector<Observation> observe(const Experiment& experiment);

// Runs control and mutation; fails the test when the control is not clean or the bug is not caught; notes a line of the
// table that is printed at the end. Collective.
void expect_caught(const Mutation& mutation);
// A line of the table for a bug that this number of ranks cannot have.
void note_not_here(const std::string& of, const std::string& what);

// All ranks of the test.
[[nodiscard]] const mpi::Communicator& judges();

}  // namespace lamina::test
