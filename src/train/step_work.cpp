#include "step_work.hpp"

#include <utility>

#include <lamina/base/error.hpp>

#include <fmt/format.h>

namespace lamina {

StepWork::StepWork(const ModelPlan& plan, ModelRunner& runner, WeightStore& store, const ScheduleShape& shape,
                   mpi::Patience& patience)
    : plan_(plan), runner_(runner), store_(store), shape_(shape), patience_(patience) {}

void StepWork::OwnBatch::assign(const MicroBatch& source) {
  tokens.assign(source.tokens.begin(), source.tokens.end());
  labels.assign(source.labels.begin(), source.labels.end());
  positions.assign(source.positions.begin(), source.positions.end());
  first_visible.assign(source.first_visible.begin(), source.first_visible.end());
  batch = {source.sequences, source.seq_len, tokens, labels, positions, first_visible};
}

void StepWork::begin(Load load, std::string what) {
  load_ = std::move(load);
  what_ = std::move(what);
  loss_ = ExactSum();
  tokens_ = 0;
}

void StepWork::execute(const Operation& operation, Streams& streams) {
  try {
    dispatch(operation, streams);
    patience_.progress();
  } catch (const PeerError& error) {
    throw PeerError(fmt::format("{}, micro-step {}, {} of {}: {}", what_, operation.micro_step + 1,
                                name_of(operation.kind), store_.layout(operation.unit).unit().name, error.what()));
  }
}

void StepWork::dispatch(const Operation& operation, Streams& streams) {
  switch (operation.kind) {
    case OperationKind::load:
      return load(operation);
    case OperationKind::gather:
      return store_.gather(operation.unit, operation.slot);
    case OperationKind::forward:
      return forward(operation);
    case OperationKind::backward:
      return backward(operation, streams);
    case OperationKind::release:
      return store_.release(operation.unit);
    case OperationKind::accumulate:
      return store_.accumulate(operation.unit, operation.slot, bucket_of(operation), operation.completes);
    case OperationKind::reduce:
      return store_.reduce(operation.unit, operation.slot, bucket_of(operation), operation.completes);
    case OperationKind::finish:
      return store_.finish_gradient(operation.unit);
  }
}

void StepWork::load(const Operation& operation) {
  const mpi::Patience::LocalWork local(patience_);  // the file may be slow
  batches_[operation.micro_step % batches_.size()].assign(load_(operation.micro_step));
}

FlatRange StepWork::bucket_of(const Operation& operation) const {
  return bucket_range(shape_.units[operation.unit], operation.part);
}

const float* StepWork::weights_of(const Stage& stage) { return store_.weights(stage.unit).data() + stage.offset; }

void StepWork::forward(const Operation& operation) {
  const Stage& stage = plan_.stages[operation.stage];
  if (operation.stage == 0) runner_.begin(batches_[operation.micro_step % batches_.size()].batch);
  if (stage.kind != StageKind::head) return runner_.forward(stage, weights_of(stage));
  if (shape_.gradients) return;  // forward and backward in one, see backward()
  runner_.forward_head(stage, weights_of(stage), nullptr);
  count_loss();
}

void StepWork::count_loss() {
  loss_.add(runner_.loss_sum());
  tokens_ += runner_.labelled_tokens();
}

void StepWork::backward(const Operation& operation, Streams& streams) {
  const Stage& stage = plan_.stages[operation.stage];
  float* const gradient = store_.gradient(stage.unit, operation.slot).data() + stage.offset;
  streams.work_begins();
  if (stage.kind == StageKind::head) {
    runner_.forward_head(stage, weights_of(stage), gradient);
    count_loss();
    return;
  }
  std::size_t part = 0;
  const auto final_from = [&](std::int64_t element) {
    const auto is_final = [&] {
      return bucket_range(shape_.units[operation.unit], operation.first_bucket + part).begin >= stage.offset + element;
    };
    while (part + 1 < operation.parts && is_final()) {
      streams.next_part();
      ++part;
    }
  };
  runner_.backward(stage, stage.backward_needs_weights ? weights_of(stage) : nullptr, gradient, final_from);
}

}  // namespace lamina
