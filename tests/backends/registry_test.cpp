#include "cpu_features.hpp"

#include <lamina/backends/backend.hpp>
#include <lamina/base/build_info.hpp>
#include <lamina/base/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lamina {
namespace {

using ::testing::HasSubstr;

std::string refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const UsageError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "nothing was refused";
}

TEST(Registry, MakesTheCpuBackend) {
  const Backend backend = make_backend("cpu", 1);
  EXPECT_EQ(backend.device->name(), "cpu");
  EXPECT_EQ(backend.ops->name(), "cpu");
}

TEST(Registry, UnknownNameListsTheKnownOnes) {
  const std::string message = refusal([] { (void)make_backend("cpuu", 1); });
  EXPECT_THAT(message, HasSubstr("\"cpuu\""));
  EXPECT_THAT(message, HasSubstr("cpu, cuda"));
  EXPECT_THAT(message, HasSubstr("compute.backend = cpu"));
}

TEST(Registry, MissingCudaNamesTheOption) {
  if (build_info().cuda) GTEST_SKIP() << "this build contains CUDA";
  const std::string message = refusal([] { (void)make_backend("cuda", 1); });
  EXPECT_THAT(message, HasSubstr("built without CUDA"));
  EXPECT_THAT(message, HasSubstr("-DLAMINA_CUDA=ON"));
}

TEST(Registry, RefusesThreadsThatCannotBe) {
  EXPECT_THAT(refusal([] { (void)make_backend("cpu", 0); }), HasSubstr("0 threads"));
  EXPECT_THAT(refusal([] { (void)make_backend("cpu", -1); }), HasSubstr("-1 threads"));
  EXPECT_THAT(refusal([] { (void)make_backend("cpu", 1'000'000); }), HasSubstr("1000000 threads"));
}

TEST(CpuFeatures, AProcessorThatLacksOneIsRefused) {
  const cpu::Feature needed[] = {{"no such instructions", true}, {"nor these, which the kernels do not use", false}};
  const std::vector<std::string> missing = cpu::missing_features(needed);
#if defined(__x86_64__)
  ASSERT_EQ(missing, std::vector<std::string>{"no such instructions"});
  const std::string message = refusal([&] { cpu::refuse_missing_features(missing, "x86-64-v9"); });
  EXPECT_THAT(message, HasSubstr("x86-64-v9"));
  EXPECT_THAT(message, HasSubstr("no such instructions"));
  EXPECT_THAT(message, HasSubstr("-DLAMINA_CPU_ARCH"));
#endif
}

TEST(CpuFeatures, KnowsWhatTheKernelsWereCompiledFor) {
  if (build_info().cpu_arch != "x86-64-v3") GTEST_SKIP() << "the kernels are compiled for " << build_info().cpu_arch;
  const auto compiled = [](std::string_view name) {
    for (const cpu::Feature& f : cpu::compiled_features) {
      if (f.name == name) return f.compiled_for;
    }
    return false;
  };
  EXPECT_TRUE(compiled("avx2"));
  EXPECT_TRUE(compiled("fma"));
  EXPECT_FALSE(compiled("avx512f"));
}

}  // namespace
}  // namespace lamina
