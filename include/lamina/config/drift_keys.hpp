// Settings that make a resumed run another run: they decide which samples come when, or what a loss means.
//
// A checkpoint keeps them; a run that goes on from it with others is refused (train/run_drift.hpp) unless
// run.allow_drift names them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <lamina/config/run_config.hpp>

namespace lamina {

// What going on with another value does.
enum class DriftEffect {
  new_order,     // sample numbers mean other windows: the epoch starts anew, in an order of its own
  other_steps,   // steps take more or fewer samples of the same order
  other_meaning  // the same windows are read or scored in another way
};

struct DriftKey {
  std::string_view name;
  DriftEffect effect;
};

// With data.last_batch other than wrap, train.global_batch decides where epochs end: new_order.
[[nodiscard]] std::span<const DriftKey> drift_keys();
[[nodiscard]] DriftEffect effect_of(const DriftKey& key, const RunConfig& config);

// run.allow_drift: "KEY, KEY". Throws UsageError for what is no drift key, with the nearest one.
[[nodiscard]] std::vector<std::string> parse_drift_keys(std::string_view text);

// Whether another value of `option` is worth a line on resume: it changes numbers, in a way that people choose.
[[nodiscard]] bool told_on_resume(std::string_view option);

}  // namespace lamina
