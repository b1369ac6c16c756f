// Whole training steps: against the arithmetic peak, and sharded against not sharded.
//
//   lamina-bench-step [--model DIR] [--sequences N] [--seq_len N] [--steps N] [--only NAME] [--quick]
//
// On one rank: flops of the step / (time x FMA probe), the probes right before and after each step. On several ranks
// (mpirun): the time of a step with each way of sharding divided by no_shard, in turn in one run, so that all see the
// same machine; and how much of the communication was hidden behind computation.
#include "fma_probe.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include <lamina/backends/backend.hpp>
#include <lamina/base/failure.hpp>
#include <lamina/base/random.hpp>
#include <lamina/comm/fabric_set.hpp>
#include <lamina/config/argument_parser.hpp>
#include <lamina/mpi/environment.hpp>
#include <lamina/shard/weight_store.hpp>
#include <lamina/topology/discover.hpp>
#include <lamina/train/initialise.hpp>
#include <lamina/train/step.hpp>
#include <lamina/train/step_plan.hpp>
#include <lamina/train/timeline.hpp>

#include <fmt/format.h>

namespace {

using namespace lamina;

struct Settings {
  std::string model = "inputs/small_llama";
  std::int64_t sequences = 4, seq_len = 256, steps = 7, prefetch = 1;
  bool quick = false;
  std::string only;
};

// One way of training, with everything it needs.
class Engine {
 public:
  Engine(const mpi::Communicator& world, const ModelPlan& plan, const Settings& settings,
         const ParallelSection& parallel)
      : world_(world), plan_(plan), backend_(make_backend("cpu", 1)) {
    config_.parallel = parallel;
    config_.train.micro_batch = settings.sequences;
    config_.train.global_batch = settings.sequences * world.size();
    config_.train.steps = 1000;
    config_.data.seq_len = settings.seq_len;
    config_.parallel.prefetch = settings.prefetch;
    const Topology topology = discover_topology(world, 0);
    store_plan_ = make_store_plan(config_.parallel, store_units(plan), topology, SumOrder::rank);
    fabrics_ = std::make_unique<FabricSet>("mpi", world, Mesh(topology, store_plan_.shard_size), SumOrder::rank);
    optimizer_ = make_optimizer(config_.optim, plan.units);
    store_ = make_weight_store(store_plan_, *backend_.device, *fabrics_);
    optimizer_->prepare(*store_, *backend_.device);
    runner_ = std::make_unique<ModelRunner>(plan, *backend_.device, *backend_.ops, settings.sequences, settings.seq_len,
                                            true);
    initialise_randomly(plan, 1, *store_);
    publish_all(*store_);
    engine_ = std::make_unique<StepEngine>(TrainContext{config_, plan_, world_, *backend_.ops, *runner_, *store_,
                                                        store_plan_, fabrics_->mesh(), *optimizer_});
  }

  double timed_step() {
    world_.barrier("the start of a step");
    const double begin = bench::now();
    last_ =
        engine_->run([this](std::uint64_t first, std::int64_t count) { return load(first, count); }, ++step_, 0, false);
    const auto nanoseconds = static_cast<std::int64_t>(1e9 * (bench::now() - begin));
    return 1e-9 * static_cast<double>(world_.max(nanoseconds, "the slowest rank"));
  }
  [[nodiscard]] const StepResult& last() const { return last_; }
  // Seconds that noting the last step for timeline.json takes.
  double timed_timeline() {
    Timeline timeline(world_, plan_, engine_->shape(), {step_, step_});
    const double begin = bench::now();
    timeline.add(last_, engine_->trace());
    return bench::now() - begin;
  }

 private:
  MicroBatch load(std::uint64_t first, std::int64_t count) {
    const auto tokens = static_cast<std::size_t>(count * config_.data.seq_len);
    tokens_.resize(tokens);
    for (std::size_t i = 0; i < tokens; ++i) {
      tokens_[i] =
          static_cast<std::int32_t>(philox(5, first, i)[0] % static_cast<std::uint32_t>(plan_.config.vocab_size));
    }
    return {count, config_.data.seq_len, tokens_, tokens_};
  }

  const mpi::Communicator& world_;
  const ModelPlan& plan_;
  RunConfig config_;
  Backend backend_;
  std::unique_ptr<Optimizer> optimizer_;
  StorePlan store_plan_;
  std::unique_ptr<FabricSet> fabrics_;
  std::unique_ptr<WeightStore> store_;
  std::unique_ptr<ModelRunner> runner_;
  std::unique_ptr<StepEngine> engine_;
  std::vector<std::int32_t> tokens_;
  std::int64_t step_ = 0;
  StepResult last_;
};

void against_the_peak(const mpi::Communicator& world, const ModelPlan& plan, const Settings& settings) {
  Engine engine(world, plan, settings, {});
  const double flops =
      flops_per_token(plan.config, settings.seq_len) * static_cast<double>(settings.sequences * settings.seq_len);
  static_cast<void>(engine.timed_step());
  std::vector<double> seconds, ratios;
  for (std::int64_t i = 0; i < settings.steps; ++i) {
    const double before = bench::fma_peak(1);
    seconds.push_back(engine.timed_step());
    ratios.push_back(flops / seconds.back() / (0.5 * (before + bench::fma_peak(1))));
  }
  fmt::print("step: {:.3f} s, {:.2f} GFLOP (6N + 6Lhs), {:.3f} of the FMA peak (median of {}, 1 rank, 1 thread)\n",
             bench::median(seconds), flops / 1e9, bench::median(ratios), settings.steps);
}

struct Variant {
  std::string name;
  ParallelSection parallel;
  std::unique_ptr<Engine> engine;
  std::vector<double> seconds, ratios, overlaps;
};

// no_shard comes first. All exist at the same time: `only` (a name, empty = all) leaves the others out, for large
// models.
std::vector<Variant> variants_of(const mpi::Communicator& world, std::int64_t prefetch, const std::string& only) {
  std::vector<Variant> variants;
  const auto add = [&](const char* name, Strategy strategy) -> ParallelSection& {
    Variant& variant = variants.emplace_back();
    variant.name = name;
    variant.parallel.strategy = strategy;
    variant.parallel.prefetch = prefetch;
    return variant.parallel;
  };
  add("no_shard", Strategy::no_shard);
  add("shard_optimizer", Strategy::shard_optimizer);
  add("shard_grad_op", Strategy::shard_grad_op);
  add("full", Strategy::full);
  add("full, without overlap", Strategy::full).overlap = false;
  if (world.size() % 2 == 0 && world.size() > 2) {
    add("hybrid, groups of 2", Strategy::hybrid).shard_size = 2;
  } else {
    add("hybrid, one group", Strategy::hybrid).shard_size = world.size();
  }
  const bool known = std::ranges::any_of(variants, [&](const Variant& v) { return v.name == only; });
  if (!only.empty() && !known) {
    throw UsageError(one_line(fmt::format("--only {}", only), "there is no such way of sharding on these ranks",
                              "take a name from the table, such as full"));
  }
  std::erase_if(variants, [&](const Variant& v) { return !only.empty() && v.name != "no_shard" && v.name != only; });
  return variants;
}

void sharded_against_no_shard(const mpi::Communicator& world, const ModelPlan& plan, const Settings& settings) {
  std::vector<Variant> variants = variants_of(world, settings.prefetch, settings.only);
  for (Variant& variant : variants) {
    variant.engine = std::make_unique<Engine>(world, plan, settings, variant.parallel);
    static_cast<void>(variant.engine->timed_step());
  }
  for (std::int64_t i = 0; i < settings.steps; ++i) {
    for (Variant& variant : variants) {
      variant.seconds.push_back(variant.engine->timed_step());
      variant.ratios.push_back(variant.seconds.back() / variants.front().seconds.back());
      variant.overlaps.push_back(100 * variant.engine->last().overlap.value_or(0));
    }
  }
  std::vector<double> timelines;
  for (Variant& variant : variants) timelines.push_back(variant.engine->timed_timeline() / variant.seconds.back());
  if (world.rank() != 0) return;
  fmt::print("{:<24} {:>9} {:>12} {:>9}   (medians of {} rounds, {} ranks)\n", "", "step s", "/ no_shard", "hidden %",
             settings.steps, world.size());
  for (const Variant& variant : variants) {
    fmt::print("{:<24} {:>9.3f} {:>12.3f} {:>9.1f}\n", variant.name, bench::median(variant.seconds),
               bench::median(variant.ratios), bench::median(variant.overlaps));
  }
  fmt::print("noting a step for timeline.json takes {:.4f} % of it\n", 100 * bench::median(timelines));
}

int run(int argc, char** argv) {
  Settings settings;
  ArgumentParser parser("lamina-bench-step", "Times whole training steps and prints ratios.");
  parser.option("model", settings.model, "DIR", "folder with a config.json");
  parser.option("sequences", settings.sequences, "N", "sequences of a micro-batch", {1, 4096});
  parser.option("seq_len", settings.seq_len, "N", "tokens of a sequence", {1, 1'000'000});
  parser.option("steps", settings.steps, "N", "timed steps", {1, 10'000});
  parser.option("prefetch", settings.prefetch, "N", "units gathered ahead", {0, 3});
  parser.option("only", settings.only, "NAME", "compare no_shard with this way of sharding only, such as full");
  parser.flag("quick", settings.quick, "one short step, to see that it works");
  if (const auto text = parser.parse(argument_list(argc, argv))) {
    fmt::print("{}", *text);
    return 0;
  }
  if (settings.quick) {
    settings.model = "inputs/tiny_llama";
    settings.sequences = 1;
    settings.seq_len = 16;
    settings.steps = 1;
  }
  mpi::Environment environment(argc, argv);
  const mpi::Communicator world = mpi::Communicator::world(std::chrono::seconds(600));
  const ModelPlan plan = make_model_plan(read_model_config(settings.model));
  if (world.rank() == 0) {
    fmt::print("{}: {} x {} tokens a rank, prefetch {}\n", settings.model, settings.sequences, settings.seq_len,
               settings.prefetch);
  }
  if (world.size() == 1 && !settings.only.empty()) {
    throw UsageError(one_line(fmt::format("--only {}", settings.only), "one rank shards nothing",
                              "start several ranks, or leave it out"));
  }
  if (world.size() == 1) {
    against_the_peak(world, plan, settings);
  } else {
    sharded_against_no_shard(world, plan, settings);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return lamina::run_program([&] { return run(argc, argv); });
}
