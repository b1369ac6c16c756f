#include <cstdio>
#include <string>

#include <lamina/base/address_space.hpp>
#include <lamina/base/error.hpp>

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace lamina {
namespace {

// Limits cannot be taken back, so each test sets its own in a process of its own.
void limit(decltype(RLIMIT_AS) resource, std::uint64_t bytes) {
  const rlimit set{bytes, bytes};
  if (::setrlimit(resource, &set) != 0) std::exit(9);
}

TEST(AddressSpace, IsUnlimitedByDefault) {
  if (address_space()) GTEST_SKIP() << "this shell has a limit";
  EXPECT_NO_THROW(require_address_space(std::uint64_t{1} << 60, "anything"));
}

TEST(AddressSpace, TheTightestLimitIsNamedWithNeedAndRest) {
  const auto ends = [] {
    limit(RLIMIT_AS, std::uint64_t{1} << 50);
    const auto wide = address_space();
    if (!wide || wide->limit_name != "ulimit -v" || wide->used == 0 || wide->left() != wide->limit - wide->used)
      std::exit(1);
    limit(RLIMIT_DATA, std::uint64_t{1} << 40);
    if (address_space()->limit_name != "ulimit -d") std::exit(2);
    try {
      require_address_space(std::uint64_t{3} << 40, "the test");
    } catch (const UsageError& error) {
      std::fputs(error.what(), stderr);
      std::exit(0);
    }
    std::exit(3);
  };
  EXPECT_EXIT(ends(), testing::ExitedWithCode(0),
              "1.00 TiB of address space are too little for the test: it needs 3.00 TiB more, and ulimit -d leaves");
}

}  // namespace
}  // namespace lamina
