// How far a command has come: one live line on a terminal, a line every ten seconds in a log.
#pragma once

#include <cstdint>
#include <string>

#include <lamina/base/steady_clock.hpp>

namespace lamina {

class ProgressLine {
 public:
  // `what` is counted, in the plural.
  explicit ProgressLine(std::string what);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(std::int64_t done, std::int64_t total);

 private:
  std::string what_;
  bool terminal_;
  bool shown_ = false;
  double begin_ = steady_seconds(), last_ = begin_;
};

}  // namespace lamina
