#include <algorithm>
#include <cstdio>
#include <memory>
#include <mutex>
#include <vector>

#include <lamina/base/error.hpp>
#include <lamina/base/log.hpp>

#include <spdlog/details/log_msg_buffer.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/spdlog.h>

namespace lamina {

namespace {

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warn:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
    case LogLevel::off:
      return spdlog::level::off;
  }
  return spdlog::level::info;
}

// Standard error, where a line takes the place of the live line.
class Console : public spdlog::sinks::base_sink<std::mutex> {
 public:
  void live(const std::string& text) {
    const std::lock_guard lock(mutex_);
    std::fprintf(stderr, "%s%s", clear, text.c_str());
    std::fflush(stderr);
    open_ = true;
  }
  void end_live() {
    const std::lock_guard lock(mutex_);
    if (open_) std::fputc('\n', stderr);
    open_ = false;
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    if (open_) std::fputs(clear, stderr);
    open_ = false;
    spdlog::memory_buf_t text;
    formatter_->format(message, text);
    std::fwrite(text.data(), 1, text.size(), stderr);
  }
  void flush_() override { std::fflush(stderr); }

 private:
  static constexpr const char* clear = "\r\033[K";  // back to the first column, erase the line
  bool open_ = false;
};

// What is said before the run folder is there; for the log file.
class EarlyLines : public spdlog::sinks::base_sink<std::mutex> {
 public:
  void write_to(spdlog::sinks::sink& file) {
    const std::lock_guard lock(mutex_);
    for (const auto& line : lines_) file.log(line);
    file.flush();
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    if (lines_.size() < most) lines_.emplace_back(message);
  }
  void flush_() override {}

 private:
  static constexpr std::size_t most = 1000;
  std::vector<spdlog::details::log_msg_buffer> lines_;
};

struct Log {
  std::shared_ptr<Console> console = std::make_shared<Console>();
  std::shared_ptr<EarlyLines> early = std::make_shared<EarlyLines>();
  spdlog::logger logger{"lamina", {console, early}};

  Log() {
    console->set_pattern("%v");
    logger.flush_on(spdlog::level::info);
  }
};

Log& the_log() {
  static Log log;
  return log;
}

spdlog::logger& logger() { return the_log().logger; }

}  // namespace

void set_up_log(int rank, LogLevel console_level) {
  logger().set_level(spdlog::level::debug);
  the_log().console->set_level(
      std::max(to_spdlog(console_level), rank == 0 ? spdlog::level::debug : spdlog::level::warn));
}

void add_log_file(const std::filesystem::path& path) {
  try {
    auto sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path.string(), false);
    sink->set_pattern("%Y-%m-%d %H:%M:%S %L %v");
    the_log().early->write_to(*sink);
    std::erase(logger().sinks(), the_log().early);
    logger().sinks().push_back(sink);
  } catch (const spdlog::spdlog_ex& error) {
    throw UsageError(one_line("cannot open the log " + path.string(), error.what(), "choose a writable run.dir"));
  }
}

void log_debug(const std::string& line) { logger().debug("{}", line); }
void log_info(const std::string& line) { logger().info("{}", line); }
void log_warn(const std::string& line) { logger().warn("warning: {}", line); }
void log_error(const std::string& line) { logger().error("error: {}", line); }

void show_live_line(const std::string& text) { the_log().console->live(text); }
void end_live_line() { the_log().console->end_live(); }

}  // namespace lamina
