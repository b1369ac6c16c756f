#include "progress_line.hpp"

#include <cstdio>
#include <utility>

#include <lamina/base/text.hpp>

#include <fmt/format.h>
#include <unistd.h>

namespace lamina {

ProgressLine::ProgressLine(std::string what) : what_(std::move(what)), terminal_(::isatty(STDERR_FILENO) == 1) {}

ProgressLine::~ProgressLine() {
  if (shown_) std::fputs("\r\x1b[K", stderr);
}

void ProgressLine::show(std::int64_t done, std::int64_t total) {
  const double now = steady_seconds();
  if (done < 1 || now - last_ < (terminal_ ? 0.2 : 10)) return;
  last_ = now;
  const double left = (now - begin_) * static_cast<double>(total - done) / static_cast<double>(done);
  std::fputs(fmt::format("{}{}/{} {}, {} left{}", terminal_ ? "\r" : "", done, total, what_, human_seconds(left),
                         terminal_ ? "\x1b[K" : "\n")
                 .c_str(),
             stderr);
  std::fflush(stderr);
  shown_ = terminal_;
}

}  // namespace lamina
