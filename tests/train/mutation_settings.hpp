// Settings that mutations share.
#pragma once

#include "train/mutated_store.hpp"
#include "train/mutation_bench.hpp"

#include <string>

namespace lamina::test {

// Whether this build's sanitizer reports the races that some mutations are.
#ifdef __SANITIZE_THREAD__
inline constexpr bool races_are_reported = true;
#else
inline constexpr bool races_are_reported = false;
#endif

[[nodiscard]] inline int ranks() { return judges().size(); }
[[nodiscard]] inline bool on_last_rank() { return judges().rank() == judges().size() - 1; }

[[nodiscard]] inline Setting with_strategy(Strategy strategy, std::int64_t shard_size = 0) {
  return {std::string(name_of(strategy)) + " " + std::to_string(shard_size), [=](Experiment& experiment) {
            experiment.config.parallel.strategy = strategy;
            experiment.config.parallel.shard_size = shard_size;
          }};
}

[[nodiscard]] inline Setting and_also(const Setting& setting, const std::string& name, const Change& more) {
  return {setting.name + ", " + name, [=](Experiment& experiment) {
            setting.apply(experiment);
            more(experiment);
          }};
}

// The bug is a store.
template <typename Store, typename... Arguments>
[[nodiscard]] Change store_bug(Arguments... arguments) {
  return [=](Experiment& experiment) {
    experiment.store = [=](TrainingWorld& training) { return std::make_unique<Store>(training.store(), arguments...); };
  };
}

[[nodiscard]] inline Change bucket_bug(std::function<void(const GradientPlace&, std::span<float>)> edit) {
  return store_bug<GradientEditor>(GradientEditor::Edits{.bucket = std::move(edit)});
}

[[nodiscard]] inline Change schedule_bug(std::function<void(std::vector<Operation>&)> edit) {
  return [edit = std::move(edit)](Experiment& experiment) { experiment.schedule = edit; };
}

// Micro-steps of a step of small_run.
[[nodiscard]] inline std::int64_t micro_steps() { return small_run().train.global_batch / ranks(); }

}  // namespace lamina::test
