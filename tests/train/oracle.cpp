#include "train/oracle.hpp"

#include <algorithm>
#include <cmath>

#include <lamina/model/init_weights.hpp>
#include <lamina/optim/lr_schedule.hpp>

namespace lamina::test {

namespace {

using Buffers = std::vector<std::vector<float>>;  // one flat buffer a unit

Buffers zeros(const ModelPlan& plan) {
  Buffers buffers;
  for (const UnitSpec& unit : plan.units) buffers.emplace_back(static_cast<std::size_t>(unit.elements()), 0.0F);
  return buffers;
}

void run_micro_batch(const ModelPlan& plan, ModelRunner& runner, const MicroBatch& batch, const Buffers& weights,
                     Buffers& gradients) {
  runner.begin(batch);
  for (const Stage& stage : plan.stages) {
    if (stage.kind == StageKind::head) {
      runner.forward_head(stage, weights[stage.unit].data() + stage.offset,
                          gradients[stage.unit].data() + stage.offset);
    } else {
      runner.forward(stage, weights[stage.unit].data() + stage.offset);
    }
  }
  for (std::size_t i = plan.stages.size() - 1; i-- > 0;) {
    const Stage& stage = plan.stages[i];
    runner.backward(stage, weights[stage.unit].data() + stage.offset, gradients[stage.unit].data() + stage.offset);
  }
}

}  // namespace

RunRecord run_oracle(const ModelPlan& plan, const RunConfig& config, std::int64_t steps) {
  Backend backend = make_backend("cpu", 1);
  ModelRunner runner(plan, *backend.device, *backend.ops, config.train.micro_batch, sequence_length, true);
  RandomBatches batches(plan.config.vocab_size);
  Buffers weights = zeros(plan), exp_avg = zeros(plan), exp_avg_sq = zeros(plan), gradients = zeros(plan);
  for (std::size_t u = 0; u < plan.units.size(); ++u) {
    std::size_t at = 0;
    for (const TensorSpec& tensor : plan.units[u].tensors) {
      const auto size = static_cast<std::size_t>(tensor.elements());
      init_tensor(plan.config, config.run.seed, tensor, 0, std::span(weights[u]).subspan(at, size));
      at += size;
    }
  }
  RunRecord record;
  std::uint64_t sample = 0;
  for (std::int64_t step = 1; step <= steps; ++step) {
    Buffers sums = zeros(plan);
    ExactSum loss, squares;
    std::int64_t tokens = 0;
    for (std::int64_t done = 0; done < config.train.global_batch; done += config.train.micro_batch) {
      run_micro_batch(plan, runner, batches.load(sample, config.train.micro_batch), weights, gradients);
      sample += static_cast<std::uint64_t>(config.train.micro_batch);
      for (std::size_t u = 0; u < sums.size(); ++u) {
        for (std::size_t i = 0; i < sums[u].size(); ++i) sums[u][i] += gradients[u][i];
      }
      loss.add(runner.loss_sum());
      tokens += runner.labelled_tokens();
    }
    for (const auto& sum : sums) backend.ops->add_sum_of_squares(squares, sum);
    const double norm = std::sqrt(squares.value()) / static_cast<double>(tokens);
    const double clip = std::min(1.0, config.optim.grad_clip / (norm + 1e-6));
    record.losses.push_back(loss.value() / static_cast<double>(tokens));
    record.norms.push_back(norm);
    AdamWStep hyper{static_cast<float>(learning_rate(config.optim, step, config.train.steps)),
                    static_cast<float>(config.optim.beta1),
                    static_cast<float>(config.optim.beta2),
                    static_cast<float>(config.optim.eps),
                    0,
                    1 - std::pow(config.optim.beta1, static_cast<double>(step)),
                    1 - std::pow(config.optim.beta2, static_cast<double>(step)),
                    static_cast<float>(clip / static_cast<double>(tokens))};
    for (std::size_t u = 0; u < sums.size(); ++u) {
      std::size_t at = 0;
      for (const TensorSpec& tensor : plan.units[u].tensors) {
        const auto size = static_cast<std::size_t>(tensor.elements());
        hyper.weight_decay = tensor.decay ? static_cast<float>(config.optim.weight_decay) : 0.0F;
        backend.ops->adamw(std::span(weights[u]).subspan(at, size), std::span(exp_avg[u]).subspan(at, size),
                           std::span(exp_avg_sq[u]).subspan(at, size), std::span(sums[u]).subspan(at, size), hyper);
        at += size;
      }
    }
  }
  RandomBatches validation(plan.config.vocab_size, 7);
  ExactSum loss;
  std::int64_t tokens = 0;
  for (std::uint64_t first = 0; first < 7; first += static_cast<std::uint64_t>(config.train.micro_batch)) {
    runner.begin(validation.load(first, config.train.micro_batch));
    for (const Stage& stage : plan.stages) {
      if (stage.kind == StageKind::head) {
        runner.forward_head(stage, weights[stage.unit].data() + stage.offset, nullptr);
      } else {
        runner.forward(stage, weights[stage.unit].data() + stage.offset);
      }
    }
    loss.add(runner.loss_sum());
    tokens += runner.labelled_tokens();
  }
  record.validation = loss.value() / static_cast<double>(tokens);
  for (std::size_t u = 0; u < weights.size(); ++u)
    append_tensors(FlatLayout(plan.units[u], 1), weights[u], record.weights);
  return record;
}

}  // namespace lamina::test
