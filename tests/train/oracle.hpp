// The oracle: one rank, no sharding, no communication, no slots: micro-batches one after another, as plainly as
// possible.
#pragma once

#include "train/training_world.hpp"

#include <set>

namespace lamina::test {

// Steps in `without_update` compute a loss and a gradient but change nothing; the optimizer does not count them. Their
// norms are recorded as they were. `sequences`: of the data, if > 0; those beyond have no labels.
[[nodiscard]] RunRecord run_oracle(const ModelPlan& plan, const RunConfig& config, std::int64_t steps,
                                   const std::set<std::int64_t>& without_update = {}, std::int64_t sequences = 0);

}  // namespace lamina::test
