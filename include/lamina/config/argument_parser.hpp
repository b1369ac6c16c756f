// The options and positional arguments of one small program or subcommand, each bound to a variable.
//
//   std::string model; std::int64_t threads = 1; std::vector<std::string> files;
//   ArgumentParser parser("lamina-example", "Does an example.");
//   parser.option("model", model, "DIR", "Hugging Face folder", ArgumentParser::Need::required);
//   parser.option("threads", threads, "N", "threads to use", {1, 1024});
//   parser.positionals("FILE", files, "files to read", 1);
//   if (const auto text = parser.parse(arguments)) { fmt::print("{}", *text); return 0; }
//
// The variable's value at declaration is the default that `--help` prints. Options are written `--name VALUE` or
// `--name=VALUE`;
// `--` ends the options. `--help` (`-h`) and `--version` are always there. Variables must outlive the parser. All
// errors of the user are UsageErrors of one line; an unknown option names the nearest known one. A value given twice is
// an error, except for lists.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lamina/base/error.hpp>
#include <lamina/config/parse_value.hpp>

namespace lamina {

namespace detail {
struct HelpRow;
}

class ArgumentParser {
 public:
  enum class Need { optional, required };

  // `program` as typed, e.g. "lamina generate"; `summary` is one sentence or more.
  ArgumentParser(std::string program, std::string summary);

  // `name` without dashes, `value_name` as help shows it.
  void option(const std::string& name, std::string& target, std::string value_name, std::string explanation,
              Need need = Need::optional);
  void option(const std::string& name, std::int64_t& target, std::string value_name, std::string explanation,
              IntegerRange range = {}, Need need = Need::optional);
  void option(const std::string& name, std::uint64_t& target, std::string value_name, std::string explanation);
  void option(const std::string& name, double& target, std::string value_name, std::string explanation,
              Need need = Need::optional);
  // `--name yes|no`.
  void option(const std::string& name, bool& target, std::string explanation);
  // `--name` alone sets `target` to true.
  void flag(std::string name, bool& target, std::string explanation);
  // One of `allowed`.
  void choice(const std::string& name, std::string& target, std::vector<std::string> allowed, std::string explanation);
  // May be given several times; each adds one element.
  void list(std::string name, std::vector<std::string>& target, std::string value_name, std::string explanation,
            Need need = Need::optional);

  // A command that does something useful, for the help.
  void example(std::string command) { examples_.push_back(std::move(command)); }

  // Positional arguments in the order of declaration; `positionals` takes all that are left and comes last.
  void positional(std::string value_name, std::string& target, std::string explanation, Need need = Need::required);
  void positionals(std::string value_name, std::vector<std::string>& target, std::string explanation,
                   std::size_t at_least);

  // Fills the variables. Returns the text to print instead of running when `--help` or `--version` was given.
  // `arguments` excludes the program's name (and the subcommand).
  [[nodiscard]] std::optional<std::string> parse(std::span<const std::string> arguments);
  // Whether an option was given on the command line in the last `parse`.
  [[nodiscard]] bool given(std::string_view name) const;

  [[nodiscard]] std::string help() const;
  // The rows of the help for arguments and options alone.
  [[nodiscard]] std::string options_text() const;

 private:
  struct Option {
    std::string name;
    std::string value_name;  // empty: takes no value
    std::string explanation;
    std::string default_text;
    Need need = Need::optional;
    bool repeats = false;
    std::function<void(std::string_view)> set;
    std::size_t count = 0;
  };
  struct Positional {
    std::string value_name;
    std::string explanation;
    std::size_t at_least = 0;
    bool all_left = false;
    std::function<void(std::string_view)> set;
  };

  [[nodiscard]] std::vector<detail::HelpRow> rows() const;
  void add(Option option);
  [[nodiscard]] std::string usage_line() const;
  [[nodiscard]] UsageError wrong(const std::string& problem, const std::string& why) const;
  [[nodiscard]] Option& find(std::string_view name);
  void take_option(const std::string& name, std::span<const std::string> values);
  void take_positionals(std::span<const std::string> values);

  std::string program_;
  std::string summary_;
  std::vector<Option> options_;
  std::vector<Positional> positionals_;
  std::vector<std::string> examples_;
};

// "lamina 0.1.0 (commit abc)" and one line for each build fact, ending in a newline.
[[nodiscard]] std::string version_text(std::string_view program);
// `argv` without its first `skip` elements.
[[nodiscard]] std::vector<std::string> argument_list(int count, const char* const* values, int skip = 1);

}  // namespace lamina
