#include <algorithm>

#include <lamina/train/gather_pipeline.hpp>
#include <lamina/train/micro_step.hpp>

namespace lamina {

namespace {

std::vector<std::size_t> forward_uses(const ModelPlan& plan) {
  std::vector<std::size_t> uses;
  for (const Stage& stage : plan.stages) uses.push_back(stage.unit);
  return uses;
}

// Stages whose backward runs after the head's, last stage first.
std::vector<Stage> backward_stages(const ModelPlan& plan) {
  std::vector<Stage> stages(plan.stages.begin(), plan.stages.end() - 1);
  std::reverse(stages.begin(), stages.end());
  return stages;
}

// Whether another of `later` still adds to the gradient of `unit` (a tied embedding completes the head's).
bool written_later(std::size_t unit, std::span<const Stage> later) {
  return std::any_of(later.begin(), later.end(), [&](const Stage& stage) { return stage.unit == unit; });
}

void run_forward(const ModelPlan& plan, ModelRunner& runner, GatherPipeline& pipeline, float* head_gradient) {
  for (const Stage& stage : plan.stages) {
    const std::span<const float> weights = pipeline.acquire();
    if (stage.kind == StageKind::head) {
      runner.forward_head(stage, weights.data(), head_gradient);
    } else {
      runner.forward(stage, weights.data());
    }
    pipeline.release();
  }
}

}  // namespace

void run_micro_step(const ModelPlan& plan, ModelRunner& runner, WeightStore& store, const MicroBatch& batch) {
  const std::vector<Stage> backward = backward_stages(plan);
  std::vector<std::size_t> uses = forward_uses(plan);
  for (const Stage& stage : backward) {
    if (stage.backward_needs_weights) uses.push_back(stage.unit);
  }
  GatherPipeline pipeline(store, std::move(uses));
  runner.begin(batch);
  const std::size_t head = plan.stages.back().unit;
  run_forward(plan, runner, pipeline, store.gradient(head).data());
  if (!written_later(head, backward)) store.reduce(head);
  for (std::size_t i = 0; i < backward.size(); ++i) {
    const Stage& stage = backward[i];
    const float* weights = stage.backward_needs_weights ? pipeline.acquire().data() : nullptr;
    runner.backward(stage, weights, store.gradient(stage.unit).data());
    if (stage.backward_needs_weights) pipeline.release();
    if (!written_later(stage.unit, std::span(backward).subspan(i + 1))) store.reduce(stage.unit);
  }
}

void run_evaluation(const ModelPlan& plan, ModelRunner& runner, WeightStore& store, const MicroBatch& batch) {
  GatherPipeline pipeline(store, forward_uses(plan));
  runner.begin(batch);
  run_forward(plan, runner, pipeline, nullptr);
}

}  // namespace lamina
