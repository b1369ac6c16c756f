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

class Oracle {
 public:
  Oracle(const ModelPlan& plan, const RunConfig& config, std::int64_t sequences)
      : plan_(plan),
        config_(config),
        backend_(make_backend("cpu", 1)),
        runner_(plan, *backend_.device, *backend_.ops, config.train.micro_batch, sequence_length, true,
                {.label_smoothing = config.train.label_smoothing, .z_loss = config.train.z_loss}),
        batches_(plan.config.vocab_size, sequences) {
    for_tensors([&](std::size_t unit, std::size_t at, std::size_t size, const TensorSpec& tensor) {
      init_tensor(plan.config, config.run.seed, tensor, 0, std::span(weights_[unit]).subspan(at, size));
    });
  }

  RunRecord run(std::int64_t steps, const std::set<std::int64_t>& without_update) {
    for (std::int64_t step = 1; step <= steps; ++step) one_step(step, !without_update.contains(step));
    validate();
    for (std::size_t u = 0; u < weights_.size(); ++u)
      append_tensors(FlatLayout(plan_.units[u], 1), weights_[u], record_.weights);
    return record_;
  }

 private:
  template <typename Body>
  void for_tensors(const Body& body) const {
    for (std::size_t unit = 0; unit < plan_.units.size(); ++unit) {
      std::size_t at = 0;
      for (const TensorSpec& tensor : plan_.units[unit].tensors) {
        const auto size = static_cast<std::size_t>(tensor.elements());
        body(unit, at, size, tensor);
        at += size;
      }
    }
  }

  [[nodiscard]] const float* weights_of(const Stage& stage) const { return weights_[stage.unit].data() + stage.offset; }
  [[nodiscard]] float* gradients_of(const Stage& stage) { return gradients_[stage.unit].data() + stage.offset; }

  void forward(const MicroBatch& batch, bool gradients) {
    runner_.begin(batch);
    for (const Stage& stage : plan_.stages) {
      if (stage.kind == StageKind::head) {
        runner_.forward_head(stage, weights_of(stage), gradients ? gradients_of(stage) : nullptr);
      } else {
        runner_.forward(stage, weights_of(stage));
      }
    }
  }

  void one_step(std::int64_t step, bool updates) {
    Buffers sums = zeros(plan_);
    ExactSum loss, squares;
    std::int64_t tokens = 0;
    for (std::int64_t done = 0; done < config_.train.global_batch; done += config_.train.micro_batch) {
      forward(batches_.load(sample_, config_.train.micro_batch), true);
      for (std::size_t i = plan_.stages.size() - 1; i-- > 0;) {
        runner_.backward(plan_.stages[i], weights_of(plan_.stages[i]), gradients_of(plan_.stages[i]));
      }
      sample_ += static_cast<std::uint64_t>(config_.train.micro_batch);
      for (std::size_t u = 0; u < sums.size(); ++u) {
        for (std::size_t i = 0; i < sums[u].size(); ++i) sums[u][i] += gradients_[u][i];
      }
      loss.add(runner_.loss_sum());
      tokens += runner_.labelled_tokens();
    }
    for (const auto& sum : sums) backend_.ops->add_sum_of_squares(squares, sum);
    const double norm = std::sqrt(squares.value()) / static_cast<double>(tokens);
    record_.losses.push_back(loss.value() / static_cast<double>(tokens));
    record_.norms.push_back(norm);
    if (updates)
      update(step, std::min(1.0, config_.optim.grad_clip / (norm + 1e-6)) / static_cast<double>(tokens), sums);
  }

  void update(std::int64_t step, double grad_scale, const Buffers& sums) {
    const OptimSection& optim = config_.optim;
    ++updates_;
    AdamWStep hyper;
    hyper.lr = learning_rate(optim, step, config_.train.steps);
    hyper.beta1 = optim.beta1;
    hyper.beta2 = optim.beta2;
    hyper.eps = optim.eps;
    hyper.bias1 = 1 - std::pow(optim.beta1, static_cast<double>(updates_));
    hyper.bias2 = 1 - std::pow(optim.beta2, static_cast<double>(updates_));
    hyper.grad_scale = grad_scale;
    for_tensors([&](std::size_t unit, std::size_t at, std::size_t size, const TensorSpec& tensor) {
      hyper.weight_decay = tensor.decay ? optim.weight_decay : 0;
      if (optim.kind == OptimizerKind::muon && tensor.block_matrix) {
        std::vector<float> direction(sums[unit].begin() + static_cast<std::ptrdiff_t>(at),
                                     sums[unit].begin() + static_cast<std::ptrdiff_t>(at + size));
        muon(std::span(weights_[unit]).subspan(at, size), std::span(exp_avg_[unit]).subspan(at, size), direction,
             tensor.shape, hyper);
        return;
      }
      backend_.ops->adamw(std::span(weights_[unit]).subspan(at, size), std::span(exp_avg_[unit]).subspan(at, size),
                          std::span(exp_avg_sq_[unit]).subspan(at, size), std::span(sums[unit]).subspan(at, size),
                          hyper);
    });
  }

  // On the whole matrix at once.
  void muon(std::span<float> weight, std::span<float> momentum, std::span<float> direction,
            const std::vector<std::int64_t>& shape, const AdamWStep& hyper) {
    const OptimSection& optim = config_.optim;
    const auto rows = static_cast<double>(shape[0]), cols = static_cast<double>(shape[1]);
    const double scale = optim.muon_adjust_lr == MuonAdjustLr::original ? std::sqrt(std::max(1.0, rows / cols))
                                                                        : 0.2 * std::sqrt(std::max(rows, cols));
    std::vector<float> workspace(static_cast<std::size_t>(Ops::orthogonalise_workspace(shape[0], shape[1])));
    backend_.ops->muon_direction(direction, momentum, {optim.muon_momentum, optim.muon_nesterov, hyper.grad_scale});
    backend_.ops->orthogonalise({direction.data(), shape[0], shape[1]}, workspace);
    backend_.ops->muon_update(weight, direction, {hyper.lr, hyper.weight_decay, scale});
  }

  void validate() {
    constexpr std::int64_t sequences = 7;
    RandomBatches validation(plan_.config.vocab_size, sequences);
    ExactSum loss;
    std::int64_t tokens = 0;
    for (std::int64_t first = 0; first < sequences; first += config_.train.micro_batch) {
      forward(validation.load(static_cast<std::uint64_t>(first), config_.train.micro_batch), false);
      loss.add(runner_.loss_sum());
      tokens += runner_.labelled_tokens();
    }
    record_.validation = loss.value() / static_cast<double>(tokens);
  }

  const ModelPlan& plan_;
  const RunConfig& config_;
  Backend backend_;
  ModelRunner runner_;
  RandomBatches batches_;
  Buffers weights_ = zeros(plan_), exp_avg_ = zeros(plan_), exp_avg_sq_ = zeros(plan_), gradients_ = zeros(plan_);
  std::uint64_t sample_ = 0;
  std::int64_t updates_ = 0;
  RunRecord record_;
};

}  // namespace

RunRecord run_oracle(const ModelPlan& plan, const RunConfig& config, std::int64_t steps,
                     const std::set<std::int64_t>& without_update, std::int64_t sequences) {
  return Oracle(plan, config, sequences).run(steps, without_update);
}

}  // namespace lamina::test
