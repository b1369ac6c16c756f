#include <lamina/train/gather_pipeline.hpp>
#include <lamina/train/micro_step.hpp>
#include <lamina/train/step_plan.hpp>

namespace lamina {

namespace {

// The weights of one pass over the visits: the root full all the time, other units from the beginning of a use to its
// end.
class PassWeights {
 public:
  PassWeights(const ModelPlan& plan, WeightStore& store, const std::vector<Visit>& visits)
      : root_(plan.root), store_(store), pipeline_(store, uses_of(visits)) {
    if (!root_) return;
    store_.gather(*root_);
    root_weights_ = store_.get(*root_);
  }

  // Where the visit's tensors begin; null when it needs none.
  [[nodiscard]] const float* begin(const Visit& visit) {
    if (!visit.needs_weights) return nullptr;
    if (visit.begins_use) current_ = pipeline_.acquire();
    return (visit.stage.unit == root_ ? root_weights_ : current_).data() + visit.stage.offset;
  }
  void end(const Visit& visit) {
    if (visit.ends_use) pipeline_.release();
  }
  void finish() {
    if (root_) store_.release(*root_);
  }

 private:
  std::optional<std::size_t> root_;
  WeightStore& store_;
  GatherPipeline pipeline_;
  std::span<const float> root_weights_, current_;
};

}  // namespace

void run_micro_step(const ModelPlan& plan, ModelRunner& runner, WeightStore& store, const MicroBatch& batch) {
  const std::vector<Visit> visits = visits_of(plan, true);
  PassWeights weights(plan, store, visits);
  runner.begin(batch);
  for (const Visit& visit : visits) {
    const float* tensors = weights.begin(visit);
    const auto gradient = [&] { return store.gradient(visit.stage.unit).data() + visit.stage.offset; };
    if (visit.pass == Pass::backward) {
      runner.backward(visit.stage, tensors, gradient());
    } else if (visit.stage.kind == StageKind::head) {
      runner.forward_head(visit.stage, tensors, gradient());
    } else {
      runner.forward(visit.stage, tensors);
    }
    weights.end(visit);
    if (visit.ends_gradient) store.reduce(visit.stage.unit);
  }
  weights.finish();
}

void run_evaluation(const ModelPlan& plan, ModelRunner& runner, WeightStore& store, const MicroBatch& batch) {
  const std::vector<Visit> visits = visits_of(plan, false);
  PassWeights weights(plan, store, visits);
  runner.begin(batch);
  for (const Visit& visit : visits) {
    const float* tensors = weights.begin(visit);
    if (visit.stage.kind == StageKind::head) {
      runner.forward_head(visit.stage, tensors, nullptr);
    } else {
      runner.forward(visit.stage, tensors);
    }
    weights.end(visit);
  }
  weights.finish();
}

}  // namespace lamina
