#include <map>

#include <lamina/mpi/environment.hpp>

#include <gtest/gtest.h>

namespace lamina::mpi {
namespace {

Lookup variables(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const char* name) -> std::optional<std::string> {
    const auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  };
}

TEST(Launcher, NoLauncherSaysNothing) { EXPECT_EQ(launched_tasks(variables({})), std::nullopt); }

TEST(Launcher, TheInnermostLauncherCounts) {
  EXPECT_EQ(launched_tasks(variables({{"SLURM_NTASKS", "4"}})), 4);
  EXPECT_EQ(launched_tasks(variables({{"SLURM_NTASKS", "8"}, {"SLURM_STEP_NUM_TASKS", "4"}})), 4);
  EXPECT_EQ(launched_tasks(variables({{"SLURM_NTASKS", "8"}, {"OMPI_COMM_WORLD_SIZE", "1"}})), 1);
  EXPECT_EQ(launched_tasks(variables({{"PMI_SIZE", "3"}})), 3);
  EXPECT_EQ(launched_tasks(variables({{"SLURM_NTASKS", "many"}})), std::nullopt);
}

TEST(Launcher, OneTaskSpeaksBeforeMpiStarts) {
  EXPECT_TRUE(first_of_all_tasks(variables({})));
  EXPECT_TRUE(first_of_all_tasks(variables({{"SLURM_PROCID", "0"}})));
  EXPECT_FALSE(first_of_all_tasks(variables({{"SLURM_PROCID", "3"}})));
  EXPECT_FALSE(first_of_all_tasks(variables({{"OMPI_COMM_WORLD_RANK", "1"}, {"SLURM_PROCID", "0"}})));
  EXPECT_TRUE(first_of_node(variables({{"OMPI_COMM_WORLD_RANK", "4"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "0"}})));
  EXPECT_FALSE(first_of_node(variables({{"SLURM_LOCALID", "2"}})));
}

TEST(Launcher, TasksThatMpiCannotFindAreRefusedBeforeItStarts) {
  EXPECT_THROW(refuse_unreachable_tasks(variables({{"SLURM_NTASKS", "4"}})), UsageError);
  EXPECT_THROW(refuse_unreachable_tasks(variables({{"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_PROCID", "1"}})), UsageError);
  EXPECT_NO_THROW(refuse_unreachable_tasks(variables({})));
  EXPECT_NO_THROW(refuse_unreachable_tasks(variables({{"SLURM_NTASKS", "1"}})));
  EXPECT_NO_THROW(refuse_unreachable_tasks(variables({{"SLURM_STEP_NUM_TASKS", "2"}, {"PMIX_RANK", "0"}})));
  EXPECT_NO_THROW(refuse_unreachable_tasks(
      variables({{"SLURM_NTASKS", "4"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_RANK", "1"}})));
}

TEST(Launcher, SingletonsOfALargerJobAreRefused) {
  EXPECT_THROW(refuse_singletons(1, variables({{"SLURM_NTASKS", "4"}})), UsageError);
  EXPECT_THROW(refuse_singletons(1, variables({{"PMI_SIZE", "2"}})), UsageError);
  EXPECT_NO_THROW(refuse_singletons(1, variables({})));
  EXPECT_NO_THROW(refuse_singletons(1, variables({{"SLURM_NTASKS", "1"}})));
  EXPECT_NO_THROW(refuse_singletons(4, variables({{"SLURM_NTASKS", "4"}})));
  EXPECT_NO_THROW(refuse_singletons(1, variables({{"SLURM_NTASKS", "4"}, {"OMPI_COMM_WORLD_SIZE", "1"}})));
}

}  // namespace
}  // namespace lamina::mpi
