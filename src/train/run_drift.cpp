#include <algorithm>
#include <optional>
#include <utility>

#include <lamina/base/error.hpp>
#include <lamina/config/command_line.hpp>
#include <lamina/config/drift_keys.hpp>
#include <lamina/model/model_config.hpp>
#include <lamina/train/run_drift.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace lamina {

namespace {

RunConfig saved_config(const Manifest& saved, const std::string& where) {
  RunConfig config;
  try {
    apply_ini(config, saved.config_text, "its config");
  } catch (const UsageError& error) {
    throw CheckpointError(
        one_line(fmt::format("cannot go on from {}", where), error.what(), "use the version of lamina that saved it"));
  }
  return config;
}

// What of a config.json neither weights nor losses depend on.
ModelConfig computed_part(const std::string& json) {
  ModelConfig config = parse_model_config(json, "config.json");
  const ModelConfig unset;
  config.init_std = unset.init_std;
  config.max_positions = unset.max_positions;
  config.ignored_dropout = unset.ignored_dropout;
  config.bos_id = unset.bos_id;
  config.eos_id = unset.eos_id;
  config.eos_ids = unset.eos_ids;
  return config;
}

bool same_model(const std::string& before, const std::string& now) {
  if (before == now || now.empty()) return true;
  try {
    return computed_part(before) == computed_part(now);
  } catch (const DataError&) {
    return false;  // an older version took what this one refuses
  }
}

// The keys of two config.json that differ, with one of the values.
std::string differing_keys(const std::string& json, const std::string& other) {
  const auto a = nlohmann::json::parse(json, nullptr, false), b = nlohmann::json::parse(other, nullptr, false);
  if (!a.is_object() || !b.is_object()) return "another config.json";
  std::vector<std::string> parts;
  const auto add = [&](const std::string& key) {
    parts.push_back(fmt::format("{} {}", key, a.contains(key) ? a[key].dump() : "absent"));
  };
  for (const auto& [key, value] : a.items()) {
    if (!b.contains(key) || b[key] != value) add(key);
  }
  for (const auto& [key, value] : b.items()) {
    if (!a.contains(key)) add(key);
  }
  return fmt::format("config.json with {}", fmt::join(parts, ", "));
}

class Comparison {
 public:
  Comparison(const Manifest& saved, const std::string& where, const RunConfig& config, const RunIdentity& identity)
      : saved_(saved), before_(saved_config(saved, where)), now_(config), identity_(identity) {}

  [[nodiscard]] std::optional<Drift> of(const ConfigOption& option) const {
    const std::string name = option.name(), before = option.get(before_), now = option.get(now_);
    if (name == "data.train") return of_content(name, saved_.data_identity, identity_.data, before, now);
    if (name == "data.validation" && before != "" && now != "")
      return of_content(name, saved_.validation_identity, identity_.validation, before, now);
    if (name == "data.tokenizer") {
      // Unknown, and not because nothing is known: no tokenizer is found any more.
      const std::string hash = identity_.tokenizer.empty() && !identity_.data.empty() ? "none" : identity_.tokenizer;
      return of_content(name, saved_.tokenizer_identity, hash, before, now);
    }
    if (name == "model.path") {
      if (same_model(saved_.model_config_json, identity_.model_json)) return std::nullopt;
      return Drift{name, differing_keys(saved_.model_config_json, identity_.model_json),
                   differing_keys(identity_.model_json, saved_.model_config_json)};
    }
    if (before == now) return std::nullopt;
    return Drift{name, before, now};
  }

  // Either value may be the one that cuts epochs into batches.
  [[nodiscard]] bool means_new_order(const DriftKey& key) const {
    return effect_of(key, before_) == DriftEffect::new_order || effect_of(key, now_) == DriftEffect::new_order;
  }

 private:
  // Values that stand for contents; unknown ones are not compared.
  static std::optional<Drift> of_content(const std::string& name, const std::string& before, const std::string& now,
                                         const std::string& old_path, const std::string& new_path) {
    if (before.empty() || now.empty() || before == now) return std::nullopt;
    return Drift{name, fmt::format("{} ({})", old_path, before), fmt::format("{} ({})", new_path, now)};
  }

  const Manifest& saved_;
  const RunConfig before_;
  const RunConfig& now_;
  const RunIdentity& identity_;
};

[[noreturn]] void refuse(const std::vector<Drift>& drifts, const std::string& where) {
  std::vector<std::string> values, keys;
  for (const Drift& drift : drifts) {
    values.push_back(fmt::format("{} was {} and is {}", drift.key, drift.before, drift.now));
    keys.push_back(drift.key);
  }
  throw UsageError(
      one_line(fmt::format("cannot go on from {} as the same run", where), fmt::format("{}", fmt::join(values, "; ")),
               fmt::format("set {} as it was, choose another run.dir, or allow it with --run.allow_drift {}",
                           drifts.size() == 1 ? "that" : "each", fmt::join(keys, ","))));
}

std::string values_of(const std::vector<Drift>& drifts) {
  std::vector<std::string> parts;
  for (const Drift& drift : drifts) {
    const auto text = [](const std::string& value) { return value.empty() ? std::string("empty") : value; };
    parts.push_back(fmt::format("{} {} (was {})", drift.key, text(drift.now), text(drift.before)));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

RunDrift compare_runs(const Manifest& saved, const std::string& where, const RunConfig& config,
                      const RunIdentity& identity) {
  const Comparison comparison(saved, where, config, identity);
  const std::vector<std::string> allowed = parse_drift_keys(config.run.allow_drift);
  RunDrift result;
  std::vector<Drift> refused;
  for (const ConfigOption& option : config_options()) {
    const auto key = std::ranges::find(drift_keys(), option.name(), &DriftKey::name);
    if (key == drift_keys().end() && !told_on_resume(option.name())) continue;
    const std::optional<Drift> drift = comparison.of(option);
    if (!drift) continue;
    if (key == drift_keys().end()) {
      result.told.push_back(*drift);
    } else if (std::ranges::find(allowed, drift->key) == allowed.end()) {
      refused.push_back(*drift);
    } else {
      result.allowed.push_back(*drift);
      result.new_order = result.new_order || comparison.means_new_order(*key);
    }
  }
  if (!refused.empty()) refuse(refused, where);
  return result;
}

std::string describe_told(const RunDrift& drift) {
  return drift.told.empty() ? std::string() : fmt::format("changed since the checkpoint: {}", values_of(drift.told));
}

std::string describe_allowed(const RunDrift& drift, const Manifest& saved) {
  if (drift.allowed.empty()) return {};
  const std::string allowed = fmt::format("run.allow_drift allows {}", values_of(drift.allowed));
  if (drift.new_order) {
    return fmt::format(
        "{}: step {} begins the data anew, in a new order; what was left of the epoch, from sample {} on, "
        "is not seen",
        allowed, saved.step + 1, saved.next_sample);
  }
  return fmt::format("{}: the data go on at sample {}; losses from step {} on are not to be compared with those before",
                     allowed, saved.next_sample, saved.step + 1);
}

}  // namespace lamina
