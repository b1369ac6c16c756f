// `lamina train`: builds everything in order, owns it, and ends all ranks together.
#include "commands.hpp"
#include "memory_check.hpp"
#include "run_end.hpp"
#include "run_folder.hpp"
#include "run_inputs.hpp"
#include "run_start.hpp"
#include "stop_signals.hpp"
#include "terminal.hpp"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include <lamina/backends/backend.hpp>
#include <lamina/base/failure.hpp>
#include <lamina/base/log.hpp>
#include <lamina/base/slow_notice.hpp>
#include <lamina/base/text.hpp>
#include <lamina/comm/fabric_set.hpp>
#include <lamina/config/command_line.hpp>
#include <lamina/mpi/environment.hpp>
#include <lamina/mpi/pulse.hpp>
#include <lamina/shard/weight_store.hpp>
#include <lamina/topology/discover.hpp>
#include <lamina/train/step_plan.hpp>
#include <lamina/train/trainer.hpp>
#include <lamina/train/training_loss.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

std::optional<std::string> environment_variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

class TrainRun {
 public:
  TrainRun(const mpi::Communicator& world, RunConfig config) : world_(world), config_(std::move(config)) {}

  ExitCode run() {
    set_up_log(world_.rank(), LogLevel::info);
    read_inputs();
    const Topology topology = find_topology();
    build_engine(topology);
    std::optional<RunState> start = start_run({world_, config_, *plan_, *store_, *checkpointer_, *data_}, folder_);
    if (!start) return ExitCode::ok;
    RunState& state = *start;
    note_stop_signals(speaks());
    StopWish stop_wish(speaks(), seconds_before_kill(environment_variable));
    const TrainContext context{config_, *plan_,       world_,           *backend_.ops, *runner_,
                               *store_, *store_plan_, fabrics_->mesh(), *optimizer_};
    TrainEnd end = TrainEnd::finished;
    try {
      end = train(context, data_->loaders(), *checkpointer_, state, std::ref(stop_wish), terminal_columns);
    } catch (...) {
      if (speaks()) log_info(what_is_saved(state));
      throw;
    }
    if (speaks()) log_info(fmt::format("{}; {}", end_text(end, state), what_is_saved(state)));
    return end == TrainEnd::asked_to_stop ? ExitCode::requeue : ExitCode::ok;
  }

 private:
  [[nodiscard]] bool speaks() const { return world_.rank() == 0; }

  // Everything that can be wrong with files and settings shows here, before memory is taken.
  void read_inputs() {
    const SlowNotice notice("reading config, model and data");
    world_.agree(
        [&] {
          RunInputs inputs = read_run_inputs(config_, world_.size());
          plan_.emplace(std::move(inputs.plan));
          optimizer_ = std::move(inputs.optimizer);
          identity_.model_json = std::move(inputs.model_json);
          data_ = std::move(inputs.data);
          side_files_ = std::move(inputs.side_files);
          identity_.tokenizer = data_->tokenizer_hash();
          if (!speaks()) return;
          identity_.data = data_->identity();
          identity_.validation = data_->validation_identity();
        },
        "the reading of config, model and data");
    for (std::string* identity : {&identity_.data, &identity_.validation})
      *identity = world_.broadcast(*identity, 0, "what the data are");
    world_.agree(
        [&] {
          if (speaks()) folder_.emplace(config_.run.dir, environment_variable);
        },
        "the run folder");
  }

  Topology find_topology() {
    std::optional<Topology> topology;
    world_.agree([&] { topology.emplace(discover_topology(world_, config_.run.pretend_nodes)); }, "the topology");
    const std::vector<RankPlacement> placements = gather_placements(world_, *topology, config_.compute.threads);
    if (speaks()) {
      log_info(fmt::format("{} rank(s) on {} node(s)\n{}", world_.size(), topology->node_count(),
                           placement_table(placements)));
      for (const std::string& warning : placement_warnings(placements)) log_warn(warning);
      if (!topology->equal_nodes())
        log_info("nodes have different numbers of ranks: rails wrap round on the smaller nodes");
    }
    return *topology;
  }

  void build_engine(const Topology& topology) {
    world_.agree([&] { backend_ = make_backend(config_.compute.backend, config_.compute.threads); },
                 "the compute backend");
    const SumOrder order = sum_order(config_.reduction, topology);
    world_.agree([&] { store_plan_ = make_store_plan(config_.parallel, store_units(*plan_), topology, order); },
                 "the strategy");
    plan_state(*store_plan_, config_.optim);
    const Mesh mesh(topology, store_plan_->shard_size);
    fabrics_ = std::make_unique<FabricSet>(config_.compute.backend == "cuda" ? "nccl" : "mpi", world_, mesh, order);
    report_plan(mesh, order);
    const RankMemory memory = planned_memory(config_, *plan_, *store_plan_, mesh, order);
    require_memory(world_, topology, memory);
    require_space(world_, memory);
    store_ = make_weight_store(*store_plan_, *backend_.device, *fabrics_);
    world_.agree([&] { optimizer_->prepare(*store_, *backend_.device); }, "the optimizer's memory");
    world_.agree(
        [&] {
          runner_ = std::make_unique<ModelRunner>(*plan_, *backend_.device, *backend_.ops, config_.train.micro_batch,
                                                  config_.data.seq_len, true, training_loss(config_.train));
        },
        "the memory for activations");
    checkpointer_ = std::make_unique<Checkpointer>(world_, *store_, config_, identity_, side_files_);
  }

  void report_plan(const Mesh& mesh, SumOrder order) const {
    if (!speaks()) return;
    const StorePlan& store_plan = *store_plan_;
    for (const std::string& warning : plan_->config.warnings) log_warn(warning);
    if (plan_->config.ignored_dropout > 0) {
      log_warn(
          fmt::format("config.json asks for dropout {}: lamina trains without dropout", plan_->config.ignored_dropout));
    }
    std::int64_t parameters = 0;
    for (const UnitSpec& unit : plan_->units) parameters += unit.elements();
    const BatchPlan batches{config_.train.global_batch, config_.train.micro_batch, world_.size()};
    log_info(fmt::format("model: {} with {:.2f} M parameters in {} units; {}", plan_->config.family,
                         static_cast<double>(parameters) / 1e6, plan_->units.size(), data_->description()));
    log_info(fmt::format("batch: {} sequences of {} = {} rank(s) x {} sequence(s) x {} micro-step(s)",
                         config_.train.global_batch, config_.data.seq_len, world_.size(), config_.train.micro_batch,
                         batches.micro_steps()));
    const std::uint64_t update = update_needs(config_.optim, store_plan, mesh).most_bytes;
    log_info(fmt::format(
        "memory: {} of shards{} and {} of activations a rank, {} of slots a node (strategy {}, prefetch {}, sums in {} "
        "order)",
        human_bytes(state_bytes(store_plan, world_.size())),
        update > 0 ? fmt::format(", {} to orthogonalise matrices", human_bytes(update)) : "",
        human_bytes(ModelRunner::activation_bytes(*plan_, config_.train.micro_batch, config_.data.seq_len, true)),
        human_bytes(slot_bytes_of_node(store_plan, mesh, order)), name_of(config_.parallel.strategy),
        config_.parallel.prefetch, order == SumOrder::rank ? "rank" : "hierarchical"));
    if (store_plan.local_sums) {
      log_info(
          fmt::format("of the shards {} are whole gradients (reduce_each_micro_step = no); sums depend on the "
                      "number of ranks",
                      human_bytes(local_sum_bytes(store_plan, world_.size()))));
    }
  }

  const mpi::Communicator& world_;
  RunConfig config_;
  std::optional<RunFolder> folder_;  // of rank 0; locked until everything else is gone
  std::optional<ModelPlan> plan_;
  RunIdentity identity_;
  std::vector<SideFile> side_files_;
  std::unique_ptr<RunData> data_;
  Backend backend_;
  std::unique_ptr<Optimizer> optimizer_;
  std::optional<StorePlan> store_plan_;
  std::unique_ptr<FabricSet> fabrics_;
  std::unique_ptr<WeightStore> store_;
  std::unique_ptr<ModelRunner> runner_;
  std::unique_ptr<Checkpointer> checkpointer_;
};

// An error of one rank alone: the others wait for it somewhere, so the job ends everywhere. Rank 0 speaks at once; the
// others leave it a moment, so that an error all ranks have is told once.
[[noreturn]] void end_everywhere(int rank, const std::string& message, ExitCode code) {
  if (rank != 0) std::this_thread::sleep_for(std::chrono::milliseconds(500));
  end_live_line();
  std::fprintf(stderr, "error: rank %d on %s: %s\n", rank, mpi::Communicator::host_name().c_str(), message.c_str());
  std::fflush(stderr);
  mpi::Environment::abort(code);
}

RunHelp train_help() {
  return {"Trains a model, or goes on with a run. One process is one rank: start it with mpirun or srun.",
          "",
          {"lamina train inputs/quickstart.ini --run.dir runs/first",
           "mpirun -n 2 lamina train inputs/quickstart.ini --run.dir runs/first --train.steps 500",
           "lamina train inputs/quickstart.ini --train.steps 500 --dump-default > my.ini"}};
}

// An error of all ranks together is told once, by rank 0.
ExitCode run_together(const mpi::Communicator& world, std::optional<mpi::Pulse>& pulse,
                      const std::exception_ptr& parse_error, const RunConfig& config) {
  try {
    world.agree(
        [&] {
          mpi::refuse_singletons(world.size(), environment_variable);
          if (parse_error) std::rethrow_exception(parse_error);
        },
        "the command line");
    pulse.emplace(world, std::chrono::duration<double>(config.run.local_deadline_s));
    return TrainRun(world, config).run();
  } catch (const mpi::AgreedError& error) {
    if (world.rank() == 0) log_error(error.what());
    return error.code();
  }
}

int run_on_all_ranks(const mpi::Communicator& world, const std::exception_ptr& parse_error, const RunConfig& config) {
  try {
    std::optional<mpi::Pulse> pulse;
    const ExitCode code = run_together(world, pulse, parse_error, config);
    if (pulse) pulse->leave();
    return static_cast<int>(code);
  } catch (...) {
    const Failure failure = failure_of(std::current_exception());
    end_everywhere(world.rank(), failure.message, failure.code);
  }
}

}  // namespace

int train_command(const std::vector<std::string>& words, int argc, char** argv) {
  RunArguments arguments;
  std::exception_ptr parse_error;
  try {
    arguments = parse_run_arguments("lamina train", words, train_help());
    if (arguments.print_instead) {
      std::fputs(arguments.print_instead->c_str(), stdout);
      return 0;
    }
  } catch (const Error&) {
    parse_error = std::current_exception();  // told once, by rank 0
  }
  // Of many tasks that do not see each other only the first speaks.
  try {
    mpi::refuse_unreachable_tasks(environment_variable);
  } catch (const UsageError&) {
    if (!mpi::first_of_all_tasks(environment_variable)) return static_cast<int>(ExitCode::usage);
    throw;
  }
  try {
    mpi::require_space_for_mpi(environment_variable);
  } catch (const UsageError&) {
    if (!mpi::first_of_node(environment_variable)) return static_cast<int>(ExitCode::usage);
    throw;
  }
  mpi::Environment environment(argc, argv);
  std::signal(SIGPIPE, SIG_IGN);  // a broken connection to a lost peer is an error to be told, not a silent end
  const mpi::Communicator world =
      mpi::Communicator::world(std::chrono::duration<double>(arguments.config.run.deadline_s));
  return run_on_all_ranks(world, parse_error, arguments.config);
}

}  // namespace lamina
