// Pseudo-random delays on all streams of a step.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>

#include <lamina/base/random.hpp>
#include <lamina/schedule/streams.hpp>

namespace lamina::test {

// Sleeps before and after one in `one_in` operations, for less than `most`. Give each rank another seed.
[[nodiscard]] inline StreamHooks random_delays(std::uint64_t seed, std::uint32_t one_in,
                                               std::chrono::microseconds most) {
  const auto drawn = std::make_shared<std::atomic<std::uint64_t>>(0);
  const auto pause = [=](const Operation&) {
    const PhiloxBlock random = philox(seed, drawn->fetch_add(1));
    if (random[0] % one_in != 0) return;
    std::this_thread::sleep_for(std::chrono::microseconds(random[1] % static_cast<std::uint32_t>(most.count())));
  };
  return {pause, pause};
}

}  // namespace lamina::test
