// Operations on shards: length and range checks in front of the backend.
#include "shape_check.hpp"

#include <algorithm>

#include <lamina/ops/ops.hpp>

#include <fmt/format.h>

namespace lamina {

using detail::ShapeCheck;

namespace {

void check_adam(const ShapeCheck& check, std::span<const float> param, std::span<const float> exp_avg,
                std::span<const float> exp_avg_sq, std::span<const float> grad, const AdamWStep& step) {
  check.that(param.size() == exp_avg.size() && param.size() == exp_avg_sq.size() && param.size() == grad.size(),
             fmt::format("param [{}], exp_avg [{}], exp_avg_sq [{}] and grad [{}] must have the same length",
                         param.size(), exp_avg.size(), exp_avg_sq.size(), grad.size()));
  check.that(step.bias1 > 0 && step.bias2 > 0,
             fmt::format("bias corrections {} and {} must be positive: steps count from 1", step.bias1, step.bias2));
}

}  // namespace

void Ops::adamw(std::span<float> param, std::span<float> exp_avg, std::span<float> exp_avg_sq,
                std::span<const float> grad, const AdamWStep& step) {
  check_adam(ShapeCheck("adamw"), param, exp_avg, exp_avg_sq, grad, step);
  do_adamw(param, exp_avg, exp_avg_sq, grad, step);
}

void Ops::adam(std::span<float> param, std::span<float> exp_avg, std::span<float> exp_avg_sq,
               std::span<const float> grad, const AdamWStep& step) {
  check_adam(ShapeCheck("adam"), param, exp_avg, exp_avg_sq, grad, step);
  do_adam(param, exp_avg, exp_avg_sq, grad, step);
}

void Ops::sgd(std::span<float> param, std::span<float> momentum_buffer, std::span<const float> grad,
              const SgdStep& step) {
  const ShapeCheck check("sgd");
  const std::size_t wanted = step.momentum == 0 ? 0 : param.size();
  check.that(param.size() == grad.size() && momentum_buffer.size() == wanted,
             fmt::format("param [{}] and grad [{}] must have the same length, and momentum_buffer [{}] that of {}",
                         param.size(), grad.size(), momentum_buffer.size(),
                         step.momentum == 0 ? "nothing without momentum" : "param with momentum"));
  check.that(!step.nesterov || step.momentum != 0, "nesterov needs a momentum");
  do_sgd(param, momentum_buffer, grad, step);
}

void Ops::lion(std::span<float> param, std::span<float> exp_avg, std::span<const float> grad, const LionStep& step) {
  const ShapeCheck check("lion");
  check.that(param.size() == exp_avg.size() && param.size() == grad.size(),
             fmt::format("param [{}], exp_avg [{}] and grad [{}] must have the same length", param.size(),
                         exp_avg.size(), grad.size()));
  do_lion(param, exp_avg, grad, step);
}

void Ops::muon_direction(std::span<float> grad, std::span<float> momentum_buffer, const MuonDirection& step) {
  const ShapeCheck check("muon_direction");
  check.that(
      grad.size() == momentum_buffer.size(),
      fmt::format("grad [{}] and momentum_buffer [{}] must have the same length", grad.size(), momentum_buffer.size()));
  do_muon_direction(grad, momentum_buffer, step);
}

void Ops::muon_update(std::span<float> param, std::span<const float> direction, const MuonUpdate& step) {
  const ShapeCheck check("muon_update");
  check.that(param.size() == direction.size(),
             fmt::format("param [{}] and direction [{}] must have the same length", param.size(), direction.size()));
  do_muon_update(param, direction, step);
}

std::int64_t Ops::orthogonalise_workspace(std::int64_t rows, std::int64_t cols) {
  const std::int64_t side = std::min(rows, cols);
  return rows * cols + 2 * side * side;
}

void Ops::orthogonalise(TensorView x, std::span<float> workspace) {
  const ShapeCheck check("orthogonalise");
  check.that(x.rows > 0 && x.cols > 0 && x.contiguous(),
             fmt::format("x [{}, {}] must be a contiguous matrix with elements", x.rows, x.cols));
  const std::int64_t needed = orthogonalise_workspace(x.rows, x.cols);
  check.that(static_cast<std::int64_t>(workspace.size()) >= needed,
             fmt::format("workspace [{}] must have {} floats", workspace.size(), needed));
  do_orthogonalise(x, workspace);
}

void Ops::ema(std::span<float> average, std::span<const float> param, double decay) {
  const ShapeCheck check("ema");
  check.that(average.size() == param.size(),
             fmt::format("average [{}] and param [{}] must have the same length", average.size(), param.size()));
  check.that(decay >= 0 && decay < 1, fmt::format("decay {} must be at least 0 and below 1", decay));
  do_ema(average, param, decay);
}

void Ops::add_sum_of_squares(ExactSum& sum, std::span<const float> x) { do_add_sum_of_squares(sum, x); }

}  // namespace lamina
