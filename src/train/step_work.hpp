// What the operations of a step's schedule do: loads batches, moves weights and gradients, computes.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include <lamina/base/exact_sum.hpp>
#include <lamina/model/model_plan.hpp>
#include <lamina/model/model_runner.hpp>
#include <lamina/mpi/patience.hpp>
#include <lamina/schedule/streams.hpp>
#include <lamina/shard/weight_store.hpp>

namespace lamina {

class StepWork final : public StreamWork {
 public:
  // A rank's micro-batch of a micro-step; its views are copied before the next call.
  using Load = std::function<MicroBatch(std::size_t micro_step)>;

  // `shape`: of the schedule whose operations come; `patience`: hears of each that is done. All must outlive this.
  StepWork(const ModelPlan& plan, ModelRunner& runner, WeightStore& store, const ScheduleShape& shape,
           mpi::Patience& patience);

  // Before a run of the schedule. `what`: for messages, such as "step 7".
  void begin(Load load, std::string what);

  void execute(const Operation& operation, Streams& streams) override;
  void interrupt() override { store_.interrupt(); }

  // Of all micro-steps since begin().
  [[nodiscard]] const ExactSum& loss() const { return loss_; }
  [[nodiscard]] std::int64_t tokens() const { return tokens_; }

 private:
  // A micro-batch that owns its arrays.
  struct OwnBatch {
    MicroBatch batch;
    std::vector<std::int32_t> tokens, labels, positions, first_visible;
    void assign(const MicroBatch& source);
  };

  void dispatch(const Operation& operation, Streams& streams);
  void load(const Operation& operation);
  void forward(const Operation& operation);
  void backward(const Operation& operation, Streams& streams);
  void count_loss();
  [[nodiscard]] const float* weights_of(const Stage& stage);
  [[nodiscard]] FlatRange bucket_of(const Operation& operation) const;

  const ModelPlan& plan_;
  ModelRunner& runner_;
  WeightStore& store_;
  const ScheduleShape& shape_;
  mpi::Patience& patience_;
  Load load_;
  std::string what_;
  std::array<OwnBatch, 2> batches_;  // micro-step m uses m mod 2
  ExactSum loss_;
  std::int64_t tokens_ = 0;
};

}  // namespace lamina
