#include <lamina/base/error.hpp>
#include <lamina/base/log.hpp>

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
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

spdlog::logger& logger() {
  static const auto instance = [] {
    auto sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    sink->set_pattern("%v");
    auto made = std::make_shared<spdlog::logger>("lamina", sink);
    made->flush_on(spdlog::level::info);
    return made;
  }();
  return *instance;
}

}  // namespace

void set_up_log(int rank, LogLevel console_level) {
  logger().set_level(spdlog::level::debug);
  logger().sinks().front()->set_level(
      std::max(to_spdlog(console_level), rank == 0 ? spdlog::level::debug : spdlog::level::warn));
}

void add_log_file(const std::filesystem::path& path) {
  try {
    auto sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path.string(), false);
    sink->set_pattern("%Y-%m-%d %H:%M:%S %L %v");
    logger().sinks().push_back(sink);
  } catch (const spdlog::spdlog_ex& error) {
    throw UsageError(one_line("cannot open the log " + path.string(), error.what(), "choose a writable run.dir"));
  }
}

void log_debug(const std::string& line) { logger().debug("{}", line); }
void log_info(const std::string& line) { logger().info("{}", line); }
void log_warn(const std::string& line) { logger().warn("warning: {}", line); }
void log_error(const std::string& line) { logger().error("error: {}", line); }

}  // namespace lamina
