#include "train/mutation_bench.hpp"

#include "train/oracle.hpp"
#include "train/product.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <map>
#include <thread>

#include <lamina/train/step_plan.hpp>

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace lamina::test {

namespace {

struct Row {
  std::string of, what, how;
};
std::vector<Row>& table() {
  static std::vector<Row> rows;
  return rows;
}

class TablePrinter : public testing::Environment {
 public:
  void TearDown() override {
    if (judges().rank() != 0) return;
    std::printf("\n%-4s %-66s %s\n", "case", fmt::format("bug ({} ranks)", judges().size()).c_str(), "caught by");
    for (const Row& row : table()) std::printf("%-4s %-66s %s\n", row.of.c_str(), row.what.c_str(), row.how.c_str());
    std::printf("\n");
  }
};
const testing::Environment* const printer = testing::AddGlobalTestEnvironment(new TablePrinter);

// Tells all ranks of the host that one has failed, so that the others need not wait for their deadlines: each has a
// thread that listens and interrupts.
class Bell {
 public:
  Bell() : memory_(judges().split_by_node(), sizeof(std::atomic<std::uint32_t>)) {}
  void ring() { ++count(); }
  [[nodiscard]] std::uint32_t rung() { return count(); }

 private:
  [[nodiscard]] std::atomic<std::uint32_t>& count() {
    return *reinterpret_cast<std::atomic<std::uint32_t>*>(memory_.part(0));
  }
  mpi::SharedMemory memory_;
};
Bell& bell() {
  // Never destroyed: freeing is collective, and MPI has ended by then.
  static Bell* const only = new Bell;
  return *only;
}

// Everything of one run. A run that failed is left in memory: messages of its communicators may still be under way.
struct Run {
  explicit Run(const Experiment& experiment)
      : world(mpi::Communicator::world(std::chrono::duration<double>(experiment.deadline_s))),
        training(world, small_model(experiment.model, experiment.units), experiment.config, experiment.nodes) {
    if (experiment.first) experiment.first(training);
    if (experiment.store) store = experiment.store(training);
    if (experiment.optimizer) optimizer = experiment.optimizer(training);
    if (experiment.runner) runner = experiment.runner(training);
    const TrainContext real = training.context();
    context = std::make_unique<TrainContext>(
        TrainContext{real.config, real.plan, real.world, real.ops, runner ? *runner : real.runner,
                     store ? *store : real.store, real.store_plan, real.mesh, optimizer ? *optimizer : real.optimizer});
    engine = std::make_unique<StepEngine>(*context);
    engine->set_hooks(experiment.hooks);
    if (experiment.schedule) {
      std::vector<Operation> schedule = step_schedule(engine->shape());
      experiment.schedule(schedule);
      engine->set_schedule(std::move(schedule));
    }
  }

  mpi::Communicator world;
  TrainingWorld training;
  std::unique_ptr<WeightStore> store;
  std::unique_ptr<Optimizer> optimizer;
  std::unique_ptr<ModelRunner> runner;
  std::unique_ptr<TrainContext> context;
  std::unique_ptr<StepEngine> engine;
  StoreCounters counted;  // gathers and reductions of training steps
};

void count_step(Run& run, const StoreCounters& before) {
  const StoreCounters& after = run.training.store().counters();
  run.counted.gathers.resize(after.gathers.size());
  run.counted.reductions.resize(after.reductions.size());
  for (std::size_t unit = 0; unit < after.gathers.size(); ++unit) {
    run.counted.gathers[unit] += after.gathers[unit] - before.gathers[unit];
    run.counted.reductions[unit] += after.reductions[unit] - before.reductions[unit];
  }
}

RunRecord train_with(Run& run, const Experiment& experiment) {
  RunRecord record;
  const std::int64_t batch = experiment.config.train.global_batch;
  RandomBatches data(run.training.plan().config.vocab_size, experiment.sequences), validation(29, 7);
  LoadBatch load = [&](std::uint64_t first, std::int64_t count) { return data.load(first, count); };
  if (experiment.batches) load = experiment.batches(load);
  std::int64_t updates = 0;
  for (std::int64_t step = 1; step <= experiment.steps; ++step) {
    const StoreCounters before = run.training.store().counters();
    const auto first = static_cast<std::uint64_t>((step - 1) * batch);
    const StepResult result = run.engine->run(load, step, first, false, updates + 1);
    if (!result.skipped) ++updates;
    count_step(run, before);
    record.losses.push_back(result.loss);
    record.norms.push_back(result.skipped ? 0 : result.grad_norm);
    if (step != 2 && step != experiment.steps) continue;
    const auto other = [&](std::uint64_t sequence, std::int64_t count) { return validation.load(sequence, count); };
    record.validation = run.engine->evaluate(other, 7).loss;
  }
  record.weights = run.training.weights();
  return record;
}

std::string counter_problems(Run& run, std::int64_t steps) {
  const std::vector<UnitTraffic> planned = traffic_of(run.engine->shape());
  const StorePlan& plan = run.training.store_plan();
  std::string text;
  const auto check = [&](std::size_t unit, const char* what, std::uint64_t counted, std::uint64_t a_step) {
    const std::uint64_t wanted = a_step * static_cast<std::uint64_t>(steps);
    if (counted == wanted || !text.empty()) return;
    text = fmt::format("{} has {} {}, planned {}", run.training.plan().units[unit].name, counted, what, wanted);
  };
  for (std::size_t unit = 0; unit < planned.size(); ++unit) {
    check(unit, "gathers", run.counted.gathers[unit], planned[unit].gathers);
    check(unit, "reductions", run.counted.reductions[unit], planned[unit].reductions);
  }
  const StoreCounters& counters = run.training.store().counters();
  const int most = std::max(plan.prefetch, plan.prefetch_backward) + 1 + plan.pinned_units;
  if (!plan.keep_full && counters.most_full_units > most) text += " too many full units";
  return text;
}

RunRecord expected_record(const Experiment& experiment) {
  if (!experiment.against_plain_run) {
    RunRecord record = run_oracle(small_model(experiment.model), experiment.config, experiment.steps,
                                  experiment.skipped, experiment.sequences);
    for (const std::int64_t step : experiment.skipped) record.norms[static_cast<std::size_t>(step - 1)] = 0;
    return record;
  }
  const mpi::Communicator world = mpi::Communicator::world(std::chrono::duration<double>(experiment.deadline_s));
  TrainingWorld plain(world, small_model(experiment.model, experiment.units), experiment.config, experiment.nodes);
  return run_training(plain, experiment.steps);
}

// Interrupts the run when some rank rings.
std::jthread listen(Run& run, std::uint32_t before) {
  return std::jthread([&run, before](const std::stop_token& over) {
    while (!over.stop_requested()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      if (bell().rung() == before) continue;
      run.training.store().interrupt();
      run.world.interrupt();
      return;
    }
  });
}

// Every rank's texts, on every rank.
std::vector<Observation> shared(const Observation& own) {
  std::vector<Observation> all(static_cast<std::size_t>(judges().size()));
  for (std::string Observation::*part : {&Observation::error, &Observation::difference, &Observation::counters}) {
    const std::vector<std::string> texts = judges().all_gather(own.*part, "what the ranks saw");
    for (std::size_t rank = 0; rank < texts.size(); ++rank) all[rank].*part = texts[rank];
  }
  return all;
}

bool clean(const Observation& seen) { return seen.error.empty() && seen.difference.empty() && seen.counters.empty(); }

// The first rank's word for each way in which something was seen, own errors before those of interrupted ranks.
std::string summary(const std::vector<Observation>& seen) {
  std::string errors, rest;
  for (const bool interrupted : {false, true}) {
    for (std::size_t rank = 0; rank < seen.size(); ++rank) {
      const bool gave_up = seen[rank].error.find("gave up waiting") != std::string::npos;
      if (seen[rank].error.empty() || gave_up != interrupted || !errors.empty()) continue;
      errors = fmt::format("error on rank {}: {}", rank, seen[rank].error);
    }
  }
  for (const Observation& rank : seen) {
    if (rest.empty() && !rank.difference.empty()) rest = "bits: " + rank.difference;
  }
  for (const Observation& rank : seen) {
    if (rank.counters.empty()) continue;
    rest += (rest.empty() ? "counters: " : "; counters: ") + rank.counters;
    break;
  }
  return errors + (errors.empty() || rest.empty() ? "" : "; ") + rest;
}

std::string shortened(const std::string& text) {
  constexpr std::size_t longest = 170;
  return text.size() <= longest ? text : text.substr(0, longest) + "...";
}

std::string all_texts(const std::vector<Observation>& seen) {
  std::string text;
  for (const Observation& rank : seen) text += rank.error + "\n" + rank.difference + "\n" + rank.counters + "\n";
  return text;
}

}  // namespace

const mpi::Communicator& judges() {
  static const mpi::Communicator comm = mpi::Communicator::world(std::chrono::seconds(120));
  return comm;
}

std::vector<Observation> observe(const Experiment& experiment) {
  const RunRecord expected = expected_record(experiment);
  auto run = std::make_unique<Run>(experiment);
  const std::uint32_t rung = bell().rung();
  judges().barrier("the start of an experiment");
  Observation seen;
  {
    const std::jthread listener = listen(*run, rung);
    try {
      seen.difference = difference(train_with(*run, experiment), expected);
      seen.counters = counter_problems(*run, experiment.steps);
    } catch (const std::exception& error) {
      seen.error = error.what();
      bell().ring();
    }
  }
  const std::vector<Observation> all = shared(seen);
  const bool failed = std::ranges::any_of(all, [](const Observation& rank) { return !rank.error.empty(); });
  if (failed) static_cast<void>(run.release());
  return all;
}

void expect_caught(const Mutation& mutation) {
  static std::map<std::string, bool> controls;
  Experiment experiment;
  mutation.setting.apply(experiment);
  if (!controls.contains(mutation.setting.name)) {
    const std::vector<Observation> control = observe(experiment);
    controls[mutation.setting.name] = std::ranges::all_of(control, clean);
    EXPECT_TRUE(controls[mutation.setting.name]) << mutation.setting.name << ": " << summary(control);
  }
  mutation.bug(experiment);
  const std::vector<Observation> seen = observe(experiment);
  if (judges().rank() != 0) return;  // all ranks know the same
  const std::string how = summary(seen), texts = all_texts(seen);
  EXPECT_NE(how, "") << mutation.of << " " << mutation.what << ": was not caught";
  for (const std::string& text : mutation.says)
    EXPECT_THAT(texts, testing::HasSubstr(text)) << mutation.of << " " << mutation.what;
  table().push_back({mutation.of, mutation.what, how.empty() ? "NOT CAUGHT" : shortened(how)});
}

void note_not_here(const std::string& of, const std::string& what) {
  table().push_back({of, what, "(cannot happen with so few ranks)"});
}

}  // namespace lamina::test
