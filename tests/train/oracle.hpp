// The oracle: one rank, no sharding, no communication, no slots: micro-batches one after another, as plainly as
// possible.
#pragma once

#include "train/training_world.hpp"

namespace lamina::test {

[[nodiscard]] RunRecord run_oracle(const ModelPlan& plan, const RunConfig& config, std::int64_t steps);

}  // namespace lamina::test
