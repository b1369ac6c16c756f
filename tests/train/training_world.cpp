#include "train/training_world.hpp"

#include <utility>

#include <lamina/base/random.hpp>
#include <lamina/train/initialise.hpp>
#include <lamina/train/step_plan.hpp>
#include <lamina/train/training_loss.hpp>

namespace lamina::test {

ModelPlan small_model(const std::string& kind, const std::string& units) {
  const std::string common =
      R"("hidden_size": 12, "intermediate_size": 20, "num_hidden_layers": 3, "num_attention_heads": 2,
    "num_key_value_heads": 1, "vocab_size": 29, "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "hidden_act": "silu")";
  const std::string text = kind == "tied" ? R"({"model_type": "llama", "tie_word_embeddings": true, )" + common + "}"
                                          : R"({"model_type": "qwen2", "tie_word_embeddings": false, )" + common + "}";
  return make_model_plan(parse_model_config(text, kind), parse_unit_rule(units));
}

RunConfig small_run() {
  RunConfig config;
  config.run.seed = 11;
  config.train.steps = 20;
  config.train.global_batch = 12;
  config.train.micro_batch = 1;
  config.data.seq_len = sequence_length;
  config.optim.lr = 3e-2;
  config.optim.warmup = 3;
  config.optim.grad_clip = 0.5;
  return config;
}

MicroBatch RandomBatches::load(std::uint64_t first, std::int64_t sequences) {
  const auto length = static_cast<std::size_t>(sequence_length);
  tokens_.assign(static_cast<std::size_t>(sequences) * length, 0);
  labels_ = tokens_;
  for (std::size_t row = 0; row < static_cast<std::size_t>(sequences); ++row) {
    const std::uint64_t sequence = first + row;
    for (std::size_t i = 0; i < length; ++i) {
      const PhiloxBlock random = philox(77, sequence, i);
      tokens_[row * length + i] = static_cast<std::int32_t>(random[0] % static_cast<std::uint32_t>(vocab_));
      const bool beyond = count_ > 0 && sequence >= static_cast<std::uint64_t>(count_);
      const bool ignored = beyond || sequence % 12 == 5 || (sequence % 3 == 0 && random[2] % 2 == 0);
      labels_[row * length + i] =
          ignored ? ignored_label : static_cast<std::int32_t>((tokens_[row * length + i] * 5 + 3) % vocab_);
    }
  }
  return {sequences, sequence_length, tokens_, labels_};
}

namespace {

Topology make_topology(const mpi::Communicator& world, std::vector<int> nodes) {
  if (nodes.empty()) nodes.assign(static_cast<std::size_t>(world.size()), 0);
  return {world.rank(), nodes, std::vector<std::string>(nodes.size(), mpi::Communicator::host_name())};
}

StorePlan with_state(StorePlan plan, const RunConfig& config) {
  plan_state(plan, config.optim);
  return plan;
}

}  // namespace

TrainingWorld::TrainingWorld(const mpi::Communicator& world, ModelPlan plan, RunConfig config, std::vector<int> nodes)
    : world_(world),
      plan_(std::move(plan)),
      config_(std::move(config)),
      backend_(make_backend("cpu", 1)),
      optimizer_(make_optimizer(config_.optim, plan_.units)),
      order_(config_.reduction.order == ReductionOrder::hierarchical ? SumOrder::hierarchical : SumOrder::rank),
      topology_(make_topology(world_, std::move(nodes))),
      store_plan_(with_state(make_store_plan(config_.parallel, store_units(plan_), topology_, order_), config_)),
      fabrics_("mpi", world_, Mesh(topology_, store_plan_.shard_size), order_),
      store_(make_weight_store(store_plan_, *backend_.device, fabrics_)),
      runner_(std::make_unique<ModelRunner>(plan_, *backend_.device, *backend_.ops, config_.train.micro_batch,
                                            sequence_length, true, training_loss(config_.train))),
      batches_(plan_.config.vocab_size) {
  optimizer_->prepare(*store_, *backend_.device);
  initialise_randomly(plan_, config_.run.seed, *store_);
  publish_all(*store_);
}

StepEngine& TrainingWorld::engine() {
  if (!engine_) engine_ = std::make_unique<StepEngine>(context());
  return *engine_;
}

LoadBatch TrainingWorld::batches() {
  return [this](std::uint64_t first, std::int64_t count) { return batches_.load(first, count); };
}

void append_tensors(const FlatLayout& layout, std::span<const float> unit, NamedWeights& weights) {
  for (std::size_t i = 0; i < layout.unit().tensors.size(); ++i) {
    const std::span<const float> tensor = unit.subspan(static_cast<std::size_t>(layout.tensor_offset(i)),
                                                       static_cast<std::size_t>(layout.unit().tensors[i].elements()));
    weights[layout.unit().tensors[i].name].assign(tensor.begin(), tensor.end());
  }
}

NamedWeights TrainingWorld::weights() {
  NamedWeights all;
  for (std::size_t unit = 0; unit < store_->unit_count(); ++unit) {
    store_->gather(unit, 0);
    append_tensors(store_->layout(unit), store_->weights(unit), all);
    store_->release(unit);
  }
  return all;
}

namespace {

double validation_loss(TrainingWorld& training) {
  constexpr std::int64_t sequences = 7;
  RandomBatches validation(training.plan().config.vocab_size, sequences);
  const auto load = [&](std::uint64_t first, std::int64_t count) { return validation.load(first, count); };
  return training.engine().evaluate(load, sequences).loss;
}

}  // namespace

RunRecord run_training(TrainingWorld& training, std::int64_t steps, bool validate_between) {
  RunRecord record;
  const std::int64_t global_batch = training.config().train.global_batch;
  for (std::int64_t step = 1; step <= steps; ++step) {
    const auto first = static_cast<std::uint64_t>((step - 1) * global_batch);
    const StepResult result = training.engine().run(training.batches(), step, first, false);
    record.losses.push_back(result.loss);
    record.norms.push_back(result.grad_norm);
    if (step == steps || validate_between) record.validation = validation_loss(training);
  }
  record.weights = training.weights();
  return record;
}

}  // namespace lamina::test
