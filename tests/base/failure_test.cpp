// Every exception has one code and one line.
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <new>
#include <stdexcept>
#include <system_error>
#include <vector>

#include <lamina/base/checked_product.hpp>
#include <lamina/base/failure.hpp>
#include <lamina/base/file.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lamina {
namespace {

using testing::HasSubstr;
using testing::Not;

template <typename Exception>
Failure failure_with(const Exception& error) {
  return failure_of(std::make_exception_ptr(error));
}

TEST(Failure, ErrorsSayTheirCodeAndLine) {
  const Failure failure = failure_with(CheckpointError("no checkpoint"));
  EXPECT_EQ(failure.code, ExitCode::checkpoint);
  EXPECT_EQ(failure.message, "no checkpoint");
}

TEST(Failure, WhatTheMachineDoesNotGiveIsUsage) {
  for (const Failure& failure : {failure_with(std::bad_alloc()), failure_with(std::bad_array_new_length()),
                                 failure_with(std::length_error("vector")),
                                 failure_with(std::system_error(std::make_error_code(std::errc::not_enough_memory)))}) {
    EXPECT_EQ(failure.code, ExitCode::usage);
    EXPECT_THAT(failure.message, HasSubstr("out of memory: "));
    EXPECT_THAT(failure.message, HasSubstr("left"));
  }
  const Failure thread =
      failure_with(std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again)));
  EXPECT_EQ(thread.code, ExitCode::usage);
  EXPECT_THAT(thread.message, HasSubstr("thread"));
}

TEST(Failure, FilesAreDataAndTheRestIsADefect) {
  EXPECT_EQ(
      failure_with(std::filesystem::filesystem_error("x", std::make_error_code(std::errc::no_space_on_device))).code,
      ExitCode::data);
  EXPECT_EQ(failure_with(std::logic_error("odd")).code, ExitCode::internal);
  EXPECT_EQ(failure_with(7).code, ExitCode::internal);
}

TEST(Failure, ProgramsEndWithTheCode) {
  EXPECT_EQ(run_program([] { return 75; }), 75);
  EXPECT_EQ(run_program([]() -> int { throw std::bad_alloc(); }), 64);
  EXPECT_EQ(run_program([] { return std::raise(SIGXFSZ); }), 0) << "a file size limit is an error of the write";
}

TEST(CheckedProduct, TellsOverflow) {
  EXPECT_EQ(checked_product({3, 5, 7}), 105);
  EXPECT_EQ(checked_product({std::int64_t{1} << 62, 1}), std::int64_t{1} << 62);
  EXPECT_EQ(checked_product({std::int64_t{1} << 62, 2}), std::nullopt);
  EXPECT_EQ(checked_product({std::int64_t{1} << 62, 4, 0}), std::nullopt);
}

TEST(ModelFolder, AHubNameIsToldFromAPath) {
  const auto message = [](const char* path) -> std::string {
    try {
      require_model_folder(path);
    } catch (const DataError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(message("meta-llama/Llama-3.2-1B"), HasSubstr("hf download meta-llama/Llama-3.2-1B --local-dir"));
  for (const char* path : {"nowhere", "/nowhere/model", "./org/name", "a/b/c", "org/"})
    EXPECT_THAT(message(path), testing::AllOf(HasSubstr("no such folder"), Not(HasSubstr("hf download")))) << path;
  EXPECT_EQ(message("."), "");
}

}  // namespace
}  // namespace lamina
