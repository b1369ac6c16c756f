#include "likely_option.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include <lamina/base/text.hpp>

namespace lamina::detail {

namespace {

// What other trainers and generators call an option -> what it is called here. Of several lines with one name the first
// whose option the program has counts.
using Habit = std::pair<std::string_view, std::string_view>;
constexpr std::array<Habit, 88> habits{{
    {"learning_rate", "optim.lr"},
    {"max_lr", "optim.lr"},
    {"min_learning_rate", "optim.min_lr"},
    {"warmup_steps", "optim.warmup"},
    {"warmup_iters", "optim.warmup"},
    {"lr_warmup_steps", "optim.warmup"},
    {"lr_warmup_iters", "optim.warmup"},
    {"warmup_ratio", "optim.warmup"},
    {"lr_scheduler", "optim.schedule"},
    {"lr_scheduler_type", "optim.schedule"},
    {"lr_decay_style", "optim.schedule"},
    {"scheduler", "optim.schedule"},
    {"optimizer", "optim.kind"},
    {"optim", "optim.kind"},
    {"adam_beta1", "optim.beta1"},
    {"adam_beta2", "optim.beta2"},
    {"adam_eps", "optim.eps"},
    {"adam_epsilon", "optim.eps"},
    {"epsilon", "optim.eps"},
    {"wd", "optim.weight_decay"},
    {"max_grad_norm", "optim.grad_clip"},
    {"clip_grad", "optim.grad_clip"},
    {"clip_grad_norm", "optim.grad_clip"},
    {"gradient_clipping", "optim.grad_clip"},
    {"ema", "optim.ema_decay"},
    {"max_steps", "train.steps"},
    {"max_iters", "train.steps"},
    {"train_iters", "train.steps"},
    {"iterations", "train.steps"},
    {"epochs", "train.steps"},
    {"num_epochs", "train.steps"},
    {"num_train_epochs", "train.steps"},
    {"batch_size", "train.global_batch"},
    {"batch_size", "batch"},
    {"bs", "train.global_batch"},
    {"train_batch_size", "train.global_batch"},
    {"global_batch_size", "train.global_batch"},
    {"gradient_accumulation_steps", "train.global_batch"},
    {"micro_batch_size", "train.micro_batch"},
    {"per_device_batch_size", "train.micro_batch"},
    {"per_device_train_batch_size", "train.micro_batch"},
    {"eval_steps", "train.eval_every"},
    {"eval_interval", "train.eval_every"},
    {"eval_iters", "train.eval_sequences"},
    {"logging_steps", "train.log_every"},
    {"log_interval", "train.log_every"},
    {"label_smoothing_factor", "train.label_smoothing"},
    {"save_steps", "checkpoint.every"},
    {"save_interval", "checkpoint.every"},
    {"save_every", "checkpoint.every"},
    {"save_total_limit", "checkpoint.keep"},
    {"output_dir", "run.dir"},
    {"out_dir", "run.dir"},
    {"save_dir", "run.dir"},
    {"resume_from_checkpoint", "run.resume"},
    {"random_seed", "run.seed"},
    {"model_name", "model.path"},
    {"model_name_or_path", "model.path"},
    {"model_path", "model.path"},
    {"model_name", "model"},
    {"model_name_or_path", "model"},
    {"model_path", "model"},
    {"dataset", "data.train"},
    {"train_file", "data.train"},
    {"train_data", "data.train"},
    {"data_path", "data.train"},
    {"data_path", "data"},
    {"validation_file", "data.validation"},
    {"val_data", "data.validation"},
    {"eval_data", "data.validation"},
    {"block_size", "data.seq_len"},
    {"context_length", "data.seq_len"},
    {"max_seq_len", "data.seq_len"},
    {"max_seq_length", "data.seq_len"},
    {"seq_length", "data.seq_len"},
    {"sequence_length", "data.seq_len"},
    {"max_seq_len", "seq_len"},
    {"sequence_length", "seq_len"},
    {"fsdp", "parallel.strategy"},
    {"sharding_strategy", "parallel.strategy"},
    {"zero_stage", "parallel.strategy"},
    {"num_threads", "compute.threads"},
    {"num_threads", "threads"},
    {"device", "compute.backend"},
    {"device", "backend"},
    {"max_new_tokens", "max_tokens"},
    {"max_length", "max_tokens"},
    {"system_prompt", "system"},
}};

std::string_view last_part(std::string_view name) { return name.substr(name.rfind('.') + 1); }

// Words are joined by '-' in one program and by '_' in another.
std::string normalised(std::string_view name) {
  std::string out(name);
  std::ranges::transform(out, out.begin(),
                         [](char c) { return c == '-' ? '_' : static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c); });
  return out;
}

template <class Test>
std::string first_that(std::span<const std::string> known, Test test) {
  const auto place = std::ranges::find_if(known, test);
  return place == known.end() ? std::string() : *place;
}

std::string by_habit(std::string_view key, std::span<const std::string> known) {
  for (const auto& [theirs, ours] : habits) {
    if (theirs != key) continue;
    if (const std::string found = first_that(known, [&](const std::string& o) { return o == ours; }); !found.empty())
      return found;
  }
  return {};
}

// The one option that begins so; two are no answer.
std::string by_beginning(std::string_view key, std::span<const std::string> known) {
  constexpr std::size_t fewest_letters = 3;
  if (key.size() < fewest_letters) return {};
  const auto begins = [&](const std::string& option) { return normalised(last_part(option)).starts_with(key); };
  return std::ranges::count_if(known, begins) == 1 ? first_that(known, begins) : std::string();
}

}  // namespace

std::string likely_option(std::string_view name, std::span<const std::string> known) {
  const std::string whole = normalised(name), key = normalised(last_part(name));
  std::string found = first_that(known, [&](const std::string& o) { return normalised(o) == whole; });
  if (found.empty()) found = by_habit(key, known);
  if (found.empty()) found = first_that(known, [&](const std::string& o) { return normalised(last_part(o)) == key; });
  if (found.empty()) found = by_beginning(key, known);
  if (!found.empty()) return found;
  const std::string section = whole.substr(0, whole.find('.') + 1);
  std::vector<std::string> same_section, keys;
  for (const std::string& option : known) {
    if (option.starts_with(section)) same_section.push_back(option);
    keys.emplace_back(last_part(option));
  }
  found = nearest_name(whole, same_section);
  if (found.empty()) found = nearest_name(whole, known);
  if (!found.empty()) return found;
  const std::string nearest_key = nearest_name(key, keys);
  return nearest_key.empty() ? nearest_key
                             : first_that(known, [&](const std::string& o) { return last_part(o) == nearest_key; });
}

}  // namespace lamina::detail
