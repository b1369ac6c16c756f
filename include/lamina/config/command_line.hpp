// What a run is told: an INI file and options of the same names, through one table of options.
//
// A file holds sections and keys, `[optim]` and `lr = 3e-4`; the same key is the long option `--optim.lr 3e-4` or
// `--optim.lr=3e-4`. The command line wins over the file, the file over the defaults; of an option given twice on the
// command line the last counts (so that a script's arguments can be added to). In a file every key appears at most
// once. Comments start a line with `#`, or follow a value after a space. Values are written without quotes.
//
// All errors are UsageErrors of one line that name the option, or the file and line: unknown sections, keys and options
// (with the nearest known name), malformed values, duplicates, a file that cannot be read.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <lamina/config/run_config.hpp>

namespace lamina {

// One key of one section; everything else here follows from the table of these.
struct ConfigOption {
  std::string section;
  std::string key;
  std::string value_name;   // what may be written, e.g. "N >= 1" or "yes|no"
  std::string explanation;  // one line
  // Throws UsageError whose message begins with `what`.
  std::function<void(RunConfig& config, std::string_view text, std::string_view what)> set;
  std::function<std::string(const RunConfig&)> get;  // text that `set` reads back to the same value

  [[nodiscard]] std::string name() const { return section + "." + key; }
};

// In the order in which files are written.
[[nodiscard]] const std::vector<ConfigOption>& config_options();

// `text` is the content of a config file that messages call `file`. Keys that are not there keep what `config` has.
void apply_ini(RunConfig& config, std::string_view text, const std::string& file);
// Defaults overlaid with the file.
[[nodiscard]] RunConfig load_run_config(const std::filesystem::path& file);

struct RunArguments {
  RunConfig config;
  // Set when `--help`, `--version` or `--dump-default` was given: print this and do nothing else.
  std::optional<std::string> print_instead;
};
// What the help of a command says besides the options of a run.
struct RunHelp {
  std::string summary;
  std::string own_options;  // finished lines, shown before those of a run
  std::vector<std::string> examples;
};
using ConfigLoader = std::function<RunConfig(const std::filesystem::path&)>;
// `lamina COMMAND CONFIG [--section.key value ...]`; `command` is for messages ("lamina train"), `arguments` follow it.
// `load` reads what CONFIG names. With `--dump-default` CONFIG may be left out; what CONFIG and options set is printed
// in place of the defaults.
[[nodiscard]] RunArguments parse_run_arguments(std::string_view command, std::span<const std::string> arguments,
                                               const RunHelp& help = {}, const ConfigLoader& load = load_run_config);

// Every key with its value; read back by apply_ini to the same config.
[[nodiscard]] std::string to_ini(const RunConfig& config);
// The same, each key under a comment that explains it.
[[nodiscard]] std::string explained_ini(const RunConfig& config);
[[nodiscard]] std::string run_help(std::string_view command, const RunHelp& help = {});

}  // namespace lamina
