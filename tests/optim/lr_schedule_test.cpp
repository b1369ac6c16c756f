#include <lamina/optim/lr_schedule.hpp>

#include <gtest/gtest.h>

namespace lamina {
namespace {

OptimSection optim(ScheduleKind kind) {
  OptimSection section;
  section.lr = 1.0;
  section.min_lr = 0.1;
  section.warmup = 10;
  section.schedule = kind;
  return section;
}

TEST(LearningRate, WarmsUpLinearly) {
  for (const ScheduleKind kind :
       {ScheduleKind::constant, ScheduleKind::cosine, ScheduleKind::linear, ScheduleKind::wsd}) {
    EXPECT_DOUBLE_EQ(learning_rate(optim(kind), 1, 110), 0.1);
    EXPECT_DOUBLE_EQ(learning_rate(optim(kind), 5, 110), 0.5);
    EXPECT_DOUBLE_EQ(learning_rate(optim(kind), 10, 110), 1.0);
  }
}

TEST(LearningRate, EndsWhereItShould) {
  EXPECT_DOUBLE_EQ(learning_rate(optim(ScheduleKind::constant), 110, 110), 1.0);
  EXPECT_NEAR(learning_rate(optim(ScheduleKind::cosine), 110, 110), 0.1, 1e-12);
  EXPECT_NEAR(learning_rate(optim(ScheduleKind::linear), 110, 110), 0.1, 1e-12);
  EXPECT_NEAR(learning_rate(optim(ScheduleKind::wsd), 110, 110), 0.1, 1e-12);
}

TEST(LearningRate, HalfWay) {
  EXPECT_NEAR(learning_rate(optim(ScheduleKind::cosine), 60, 110), 0.55, 1e-12);
  EXPECT_NEAR(learning_rate(optim(ScheduleKind::linear), 60, 110), 0.55, 1e-12);
  EXPECT_DOUBLE_EQ(learning_rate(optim(ScheduleKind::wsd), 60, 110), 1.0);
  EXPECT_NEAR(learning_rate(optim(ScheduleKind::wsd), 99, 110), 0.55, 1e-12);  // 22 steps of decay: half of it
}

TEST(LearningRate, WithoutWarmup) {
  OptimSection section = optim(ScheduleKind::linear);
  section.warmup = 0;
  EXPECT_NEAR(learning_rate(section, 1, 2), 0.55, 1e-12);
  EXPECT_NEAR(learning_rate(section, 1, 1), 0.1, 1e-12);
}

}  // namespace
}  // namespace lamina
