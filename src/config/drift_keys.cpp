#include <algorithm>
#include <array>

#include <lamina/base/error.hpp>
#include <lamina/base/text.hpp>
#include <lamina/config/drift_keys.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

constexpr std::array<DriftKey, 11> keys{{{"run.seed", DriftEffect::new_order},
                                         {"model.path", DriftEffect::other_meaning},
                                         {"data.train", DriftEffect::new_order},
                                         {"data.seq_len", DriftEffect::new_order},
                                         {"data.tokenizer", DriftEffect::other_meaning},
                                         {"data.append_eos", DriftEffect::new_order},
                                         {"data.document_mask", DriftEffect::other_meaning},
                                         {"data.last_batch", DriftEffect::new_order},
                                         {"train.global_batch", DriftEffect::other_steps},
                                         {"train.label_smoothing", DriftEffect::other_meaning},
                                         {"train.z_loss", DriftEffect::other_meaning}}};

// Where a run writes, how fast it is, how its work is divided: nothing that its numbers depend on.
constexpr std::array<std::string_view, 13> harmless{
    "run.dir",           "run.overwrite",   "run.local_deadline_s", "run.resume",      "run.deadline_s",
    "run.pretend_nodes", "run.allow_drift", "model.init",           "train.log_every", "train.stop_at",
    "train.micro_batch", "compute.threads", "data.bin_dtype"};  // the ids that it leads to are compared
constexpr std::array<std::string_view, 3> harmless_sections{"parallel.", "checkpoint.", "output."};

bool is_drift_key(std::string_view name) {
  return std::ranges::any_of(keys, [&](const DriftKey& key) { return key.name == name; });
}

}  // namespace

std::span<const DriftKey> drift_keys() { return keys; }

DriftEffect effect_of(const DriftKey& key, const RunConfig& config) {
  const bool cuts_epochs = key.name == "train.global_batch" && config.data.last_batch != LastBatch::wrap;
  return cuts_epochs ? DriftEffect::new_order : key.effect;
}

std::vector<std::string> parse_drift_keys(std::string_view text) {
  std::vector<std::string> known, named;
  for (const DriftKey& key : keys) known.emplace_back(key.name);
  while (!trim(text).empty()) {
    const std::size_t comma = text.find(',');
    const std::string name(trim(text.substr(0, comma)));
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    if (!is_drift_key(name)) {
      const std::string nearest = nearest_name(name, known);
      throw UsageError(one_line(fmt::format("run.allow_drift: '{}' is none of its keys", name),
                                nearest.empty() ? "there is none like it" : fmt::format("did you mean {}?", nearest),
                                fmt::format("write some of {}", fmt::join(known, ", "))));
    }
    named.push_back(name);
  }
  return named;
}

bool told_on_resume(std::string_view option) {
  const auto begins = [&](std::string_view section) { return option.starts_with(section); };
  return !is_drift_key(option) && std::ranges::find(harmless, option) == harmless.end() &&
         std::ranges::none_of(harmless_sections, begins);
}

}  // namespace lamina
