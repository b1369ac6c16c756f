#include "help_text.hpp"
#include "ini_lines.hpp"
#include "likely_option.hpp"
#include "split_arguments.hpp"

#include <algorithm>
#include <map>

#include <lamina/base/error.hpp>
#include <lamina/base/file.hpp>
#include <lamina/config/argument_parser.hpp>
#include <lamina/config/command_line.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

const ConfigOption* find_option(std::string_view name) {
  for (const ConfigOption& option : config_options()) {
    if (option.name() == name) return &option;
  }
  return nullptr;
}

[[noreturn]] void refuse_key(const std::string& name, const std::string& place) {
  std::vector<std::string> names;
  for (const ConfigOption& option : config_options()) names.push_back(option.name());
  const std::string nearest = detail::likely_option(name, names);
  throw UsageError(one_line(fmt::format("{}: unknown key {}", place, name), "no option has this name",
                            nearest.empty() ? "see --help" : fmt::format("did you mean {}?", nearest)));
}

// Calls `line` with each option, after `header` at each new section.
template <class Header, class Line>
void by_section(Header header, Line line) {
  std::string_view section;
  for (const ConfigOption& option : config_options()) {
    if (option.section != section) header(option.section);
    section = option.section;
    line(option);
  }
}

RunArguments print(std::string text) { return {{}, std::move(text)}; }

}  // namespace

void apply_ini(RunConfig& config, std::string_view text, const std::string& file) {
  std::map<std::string, std::size_t> seen;
  for (const detail::IniEntry& entry : detail::read_ini(text, file)) {
    const std::string place = fmt::format("{}:{}", file, entry.line);
    const ConfigOption* option = find_option(entry.name);
    if (option == nullptr) refuse_key(entry.name, place);
    const auto [first, is_new] = seen.emplace(entry.name, entry.line);
    if (!is_new) {
      throw UsageError(one_line(fmt::format("{}: {} is set twice", place, entry.name),
                                fmt::format("line {} sets it already", first->second), "remove one of the two lines"));
    }
    const std::string what = fmt::format("{}: {}", place, entry.name);
    option->set(config, entry.value, what);
  }
}

RunConfig load_run_config(const std::filesystem::path& file) {
  if (std::filesystem::is_directory(file)) {
    const std::filesystem::path inside = file / "config.ini";
    throw UsageError(one_line(fmt::format("{} is a folder", file.string()), "a run needs a config file",
                              std::filesystem::exists(inside)
                                  ? fmt::format("the one of that run is {}", inside.string())
                                  : "name an INI file; inputs/ has examples"));
  }
  RunConfig config;
  std::string text;
  try {
    text = read_file(file);
  } catch (const Error& error) {
    throw UsageError(error.what());
  }
  apply_ini(config, text, file.string());
  return config;
}

RunArguments parse_run_arguments(std::string_view command, std::span<const std::string> arguments, const RunHelp& help,
                                 const ConfigLoader& load) {
  std::vector<detail::KnownOption> known{{"help", false}, {"version", false}, {"dump-default", false}};
  for (const ConfigOption& option : config_options()) known.push_back({option.name(), true});
  const detail::SplitArguments split = detail::split_arguments(command, arguments, known);
  bool dump = false;
  for (const auto& [name, values] : split.options) {
    if (name == "help") return print(run_help(command, help));
    if (name == "version") return print(version_text("lamina"));
    dump = dump || name == "dump-default";
  }
  const std::string fix = fmt::format("usage: {} CONFIG [--section.key value ...]; see {} --help", command, command);
  if (split.positionals.empty() && !dump)
    throw UsageError(one_line("CONFIG is missing", "a run needs a config file", fix));
  if (split.positionals.size() > 1) {
    throw UsageError(one_line(fmt::format("'{}' is one argument too many", split.positionals[1]),
                              fmt::format("{} is the config file already", split.positionals[0]), fix));
  }
  RunArguments out;
  if (!split.positionals.empty()) out.config = load(split.positionals.front());
  for (const auto& [name, values] : split.options) {
    if (const ConfigOption* option = find_option(name)) option->set(out.config, values.at(0), "--" + name);
  }
  if (dump) out.print_instead = explained_ini(out.config);
  return out;
}

std::string to_ini(const RunConfig& config) {
  std::string out;
  by_section([&](const std::string& section) { out += fmt::format("{}[{}]\n", out.empty() ? "" : "\n", section); },
             [&](const ConfigOption& option) { out += fmt::format("{} = {}\n", option.key, option.get(config)); });
  return out;
}

std::string explained_ini(const RunConfig& config) {
  std::string out = "# Every option and what it means. On the command line, [section] key is --section.key.\n";
  by_section([&](const std::string& section) { out += fmt::format("\n[{}]\n", section); },
             [&](const ConfigOption& option) {
               out += fmt::format("# {} ({})\n", option.explanation, option.value_name);
               out += fmt::format("{} = {}\n", option.key, option.get(config));
             });
  return out;
}

std::string run_help(std::string_view command, const RunHelp& help) {
  const RunConfig defaults;
  std::vector<detail::HelpRow> rows;
  std::string out = fmt::format("usage: {} CONFIG [options] [--section.key value ...]\n\n", command);
  if (!help.summary.empty()) out += detail::wrap(help.summary, 0) + "\n\n";
  out += detail::wrap("CONFIG is an INI file. Each key of it is also an option, and an option wins over the file.", 0) +
         "\n\n" + detail::examples_text(help.examples) + help.own_options;
  rows.push_back({"--help, -h", "print this text"});
  rows.push_back({"--version", "print version and build facts"});
  rows.push_back({"--dump-default",
                  "print a config file with every option and its explanation: the defaults, or what CONFIG and options "
                  "make of them"});
  const auto flush = [&] {
    out += detail::help_rows(rows);
    rows.clear();
  };
  by_section(
      [&](const std::string& section) {
        flush();
        out += fmt::format("\n[{}]\n", section);
      },
      [&](const ConfigOption& option) {
        const std::string value = option.get(defaults);
        rows.push_back({fmt::format("--{} {}", option.name(), option.value_name),
                        fmt::format("{} (default {})", option.explanation, value.empty() ? "empty" : value)});
      });
  flush();
  return out;
}

}  // namespace lamina
