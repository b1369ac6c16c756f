#include "run_start.hpp"

#include <utility>

#include <lamina/base/log.hpp>
#include <lamina/base/slow_notice.hpp>
#include <lamina/checkpoint/proof.hpp>
#include <lamina/train/initialise.hpp>
#include <lamina/train/start_choice.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

// Rank 0 chooses; only the candidates are known to all.
StartChoice choose_together(const StartContext& context) {
  StartChoice choice;
  std::string names;
  context.world.agree(
      [&] {
        if (context.world.rank() != 0) return;
        choice = choose_start(context.config.run);
        for (const auto& candidate : choice.candidates) names += candidate.string() + '\0';
      },
      "the choice of a checkpoint");
  names = context.world.broadcast(names, 0, "the choice of a checkpoint");
  choice.candidates.clear();
  for (std::size_t begin = 0, end = 0; (end = names.find('\0', begin)) != std::string::npos; begin = end + 1)
    choice.candidates.emplace_back(names.substr(begin, end - begin));
  return choice;
}

void make_weights(const StartContext& context) {
  const SlowNotice notice("making the first weights");
  const bool random = context.config.model.init == ModelInit::random;
  context.world.agree(
      [&] {
        if (random) {
          initialise_randomly(context.plan, context.config.run.seed, context.store);
        } else {
          initialise_from_pretrained(context.config.model.path, context.plan, context.store);
        }
      },
      "the first weights");
  publish_all(context.store);
  if (context.world.rank() == 0) log_info(random ? "fresh start: random weights" : "fresh start: pretrained weights");
}

Checkpointer::Loaded load(const StartContext& context, const StartChoice& choice) {
  const SlowNotice notice("loading " + choice.candidates.front().string());
  Checkpointer::Loaded loaded = context.checkpointer.load_first_intact(choice.candidates);
  context.data.begin_anew(loaded.state.data_restarts);
  if (context.world.rank() != 0) return loaded;
  for (const CatalogEntry& entry : choice.to_set_aside) log_warn(skipped_line(entry));
  for (const CatalogEntry& entry : loaded.damaged) log_warn(skipped_line(entry));
  log_info(fmt::format("resumed from {} at step {}", loaded.state.last_checkpoint.string(), loaded.state.step));
  return loaded;
}

}  // namespace

std::optional<RunState> start_run(const StartContext& context, std::optional<RunFolder>& folder) {
  const StartChoice choice = choose_together(context);
  Checkpointer::Loaded loaded;
  if (choice.candidates.empty()) {
    make_weights(context);
  } else {
    loaded = load(context, choice);
  }
  const bool speaks = context.world.rank() == 0;
  if (loaded.state.step >= context.config.train.steps) {
    if (speaks) {
      log_info(fmt::format("already complete: {} of {} steps are done; raise train.steps or choose another run.dir",
                           loaded.state.step, context.config.train.steps));
    }
    return std::nullopt;
  }
  context.world.agree(
      [&] {
        if (!speaks) return;
        clear_the_way(choice, loaded.damaged, context.config.run.dir);
        folder->begin_writing(context.config);
      },
      "the run folder");
  return loaded.state;
}

}  // namespace lamina
