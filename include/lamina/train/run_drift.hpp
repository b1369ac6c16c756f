// Whether a run that goes on from a checkpoint is still the same run.
//
// What decides which samples come when and what a loss means is kept in the checkpoint (config/drift_keys.hpp) and must
// be the same; data and tokenizer are compared by what they are, not by their names. Everything else that changes
// numbers in ways that people choose (learning rate, steps, ...) may change, and is told.
#pragma once

#include <string>
#include <vector>

#include <lamina/checkpoint/manifest.hpp>
#include <lamina/config/run_config.hpp>

namespace lamina {

// What a run's config does not say. Empty: not known, not compared.
struct RunIdentity {
  std::string model_json;  // config.json
  std::string data;        // data/data_identity.hpp
  std::string tokenizer;   // hash of its file
  std::string validation;  // as data
};

struct Drift {
  std::string key;  // "data.seq_len"
  std::string before, now;
};

struct RunDrift {
  std::vector<Drift> allowed;  // by run.allow_drift
  std::vector<Drift> told;     // settings that may change
  bool new_order = false;      // an allowed one makes the data begin anew
};

// `where` names the checkpoint in messages. Throws UsageError with both values of everything that differs and is not
// allowed, and CheckpointError when the checkpoint's config cannot be read.
[[nodiscard]] RunDrift compare_runs(const Manifest& saved, const std::string& where, const RunConfig& config,
                                    const RunIdentity& identity);

// A line for the log: which settings have changed; empty if none.
[[nodiscard]] std::string describe_told(const RunDrift& drift);
// A line: what else differs and what that does; empty if nothing.
[[nodiscard]] std::string describe_allowed(const RunDrift& drift, const Manifest& saved);

}  // namespace lamina
