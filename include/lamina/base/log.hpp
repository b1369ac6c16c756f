// The program's log (spdlog): lines on standard error and, once opened, in the run folder's log file with their times.
//
// Rank 0 speaks; other ranks are silent below `warn` unless asked. The log is set up once in `app`.
#pragma once

#include <filesystem>
#include <string>

namespace lamina {

enum class LogLevel { debug, info, warn, error, off };

// Sets who speaks in this process. Call before the first line.
void set_up_log(int rank, LogLevel console_level);
// Adds `path` as a second destination (rank 0 only); the lines so far go there, too. Throws UsageError when it cannot
// be opened.
void add_log_file(const std::filesystem::path& path);
void log_debug(const std::string& line);
void log_info(const std::string& line);
void log_warn(const std::string& line);
void log_error(const std::string& line);

// The live line of a terminal: the next live line, or the next line of the log, takes its place. Never in the file.
void show_live_line(const std::string& text);
// Leaves it on the screen: call before anything else writes to standard error.
void end_live_line();

}  // namespace lamina
