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

// The rate that would follow the last step is min_lr: no step is empty.
TEST(LearningRate, ReachesItsEndAfterTheLastStep) {
  EXPECT_DOUBLE_EQ(learning_rate(optim(ScheduleKind::constant), 110, 110), 1.0);
  for (const ScheduleKind kind : {ScheduleKind::cosine, ScheduleKind::linear, ScheduleKind::wsd}) {
    EXPECT_GT(learning_rate(optim(kind), 110, 110), 0.1);
    EXPECT_NEAR(learning_rate(optim(kind), 111, 110), 0.1, 1e-12);
  }
}

TEST(LearningRate, HalfWay) {
  EXPECT_NEAR(learning_rate(optim(ScheduleKind::cosine), 61, 110), 0.55, 1e-12);
  EXPECT_NEAR(learning_rate(optim(ScheduleKind::linear), 61, 110), 0.55, 1e-12);
  EXPECT_DOUBLE_EQ(learning_rate(optim(ScheduleKind::wsd), 60, 110), 1.0);
  EXPECT_NEAR(learning_rate(optim(ScheduleKind::wsd), 100, 110), 0.55, 1e-12);  // 22 steps of decay: half of it
}

// transformers 5: get_cosine_schedule_with_warmup(optimizer, W, 10) and get_linear_schedule_with_warmup, times 3e-4.
TEST(LearningRate, AfterTheWarmupItIsThatOfTransformers) {
  OptimSection section;
  section.lr = 3e-4;
  section.warmup = 0;
  const double cosine[] = {
      3e-4,    0.00029265847744427304, 0.0002713525491562421, 0.0002381677878438709,  0.0001963525491562421,
      0.00015, 0.00010364745084375789, 6.18322121561291e-05,  2.8647450843757897e-05, 7.34152255572697e-06};
  for (int i = 0; i < 10; ++i) EXPECT_NEAR(learning_rate(section, i + 1, 10), cosine[i], 1e-15) << i;
  section.warmup = 4;
  section.schedule = ScheduleKind::linear;
  for (int i = 4; i < 10; ++i) EXPECT_NEAR(learning_rate(section, i + 1, 10), 3e-4 * (10 - i) / 6.0, 1e-15) << i;
  // Its warm-up is one step further: step 1 of transformers' would learn nothing.
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(learning_rate(section, i + 1, 10), 3e-4 * (i + 1) / 4.0, 1e-15) << i;
}

TEST(LearningRate, EveryStepOfEveryRunLearnsWithTheDefaults) {
  for (const ScheduleKind kind :
       {ScheduleKind::constant, ScheduleKind::cosine, ScheduleKind::linear, ScheduleKind::wsd}) {
    OptimSection section;
    section.schedule = kind;
    for (const std::int64_t steps : {1, 2, 3, 5, 10, 20, 100}) {
      for (std::int64_t step = 1; step <= steps; ++step) {
        EXPECT_GT(learning_rate(section, step, steps), 0) << step << " of " << steps;
        EXPECT_LE(learning_rate(section, step, steps), section.lr);
      }
    }
    EXPECT_DOUBLE_EQ(learning_rate(section, 1, 1), section.lr);
  }
}

// As transformers' warmup_steps below 1: rounded up.
TEST(LearningRate, AWarmupBelowOneIsAShareOfTheSteps) {
  OptimSection section;
  section.lr = 1;
  section.warmup = 0.05;
  EXPECT_DOUBLE_EQ(learning_rate(section, 1, 20), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate(section, 1, 21), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(section, 3, 2000), 0.03);
  EXPECT_DOUBLE_EQ(learning_rate(section, 100, 2000), 1.0);
}

}  // namespace
}  // namespace lamina
