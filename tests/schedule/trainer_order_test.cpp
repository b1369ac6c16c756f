// The schedule against the trainer: the same units used in the same order.
#include <algorithm>

#include <lamina/model/model_plan.hpp>
#include <lamina/schedule/step_schedule.hpp>
#include <lamina/train/step_plan.hpp>

#include <gtest/gtest.h>

namespace lamina::test {
namespace {

ModelPlan plan_of(bool tied, const std::string& units) {
  const std::string json =
      R"({"model_type": "llama", "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 5,
      "num_attention_heads": 3, "num_key_value_heads": 1, "vocab_size": 257, "max_position_embeddings": 64,
      "rms_norm_eps": 1e-5, "hidden_act": "silu", "tie_word_embeddings": )" +
      std::string(tied ? "true}" : "false}");
  return make_model_plan(parse_model_config(json, "test"), parse_unit_rule(units));
}

std::vector<Operation> schedule_of(const ModelPlan& plan, bool keep_full) {
  ScheduleShape shape;
  for (const Stage& stage : plan.stages) shape.stages.push_back({stage.unit, stage.backward_needs_weights});
  shape.buckets.assign(plan.units.size(), 1);
  shape.root = plan.root;
  shape.keep_full = keep_full;
  return micro_step_schedule(shape);
}

std::vector<std::size_t> units_of(const std::vector<Operation>& schedule, OperationKind kind) {
  std::vector<std::size_t> units;
  for (const Operation& operation : schedule) {
    if (operation.kind == kind) units.push_back(operation.unit);
  }
  return units;
}

TEST(TrainerOrder, GathersAndReductionsAreTheTrainers) {
  for (const bool tied : {false, true}) {
    for (const char* rule : {"layer", "block", "size:5000", "layers:2", "layers:9"}) {
      const ModelPlan plan = plan_of(tied, rule);
      const std::vector<Visit> visits = visits_of(plan, true);
      std::vector<std::size_t> gathers = uses_of(visits), reductions;
      if (plan.root) gathers.insert(gathers.begin(), *plan.root);
      for (const Visit& visit : visits) {
        if (visit.ends_gradient) reductions.push_back(visit.stage.unit);
      }
      const auto schedule = schedule_of(plan, false);
      EXPECT_EQ(units_of(schedule, OperationKind::gather), gathers) << rule << " tied " << tied;
      EXPECT_EQ(units_of(schedule, OperationKind::reduce), reductions) << rule << " tied " << tied;
    }
  }
}

TEST(TrainerOrder, GathersOfKeptUnitsAreTheTrainers) {
  for (const char* rule : {"layer", "block", "layers:2"}) {
    const ModelPlan plan = plan_of(true, rule);
    const auto gathers = units_of(schedule_of(plan, true), OperationKind::gather);
    const std::vector<UnitTraffic> traffic = micro_step_traffic(plan, true);
    for (std::size_t unit = 0; unit < traffic.size(); ++unit) {
      EXPECT_EQ(static_cast<std::uint64_t>(std::count(gathers.begin(), gathers.end(), unit)), traffic[unit].gathers)
          << rule << " unit " << unit;
    }
  }
}

}  // namespace
}  // namespace lamina::test
