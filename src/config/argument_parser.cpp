#include "help_text.hpp"
#include "split_arguments.hpp"

#include <algorithm>
#include <utility>

#include <lamina/base/build_info.hpp>
#include <lamina/base/check.hpp>
#include <lamina/base/text.hpp>
#include <lamina/config/argument_parser.hpp>

#include <fmt/format.h>

namespace lamina {

ArgumentParser::ArgumentParser(std::string program, std::string summary)
    : program_(std::move(program)), summary_(std::move(summary)) {}

void ArgumentParser::add(Option option) {
  const bool known =
      std::any_of(options_.begin(), options_.end(), [&](const Option& o) { return o.name == option.name; });
  require(!known && option.name != "help" && option.name != "version", "every option is declared once");
  options_.push_back(std::move(option));
}

void ArgumentParser::option(const std::string& name, std::string& target, std::string value_name,
                            std::string explanation, Need need) {
  add({name, std::move(value_name), std::move(explanation), target, need, false,
       [&target](std::string_view text) { target = text; }});
}

void ArgumentParser::option(const std::string& name, std::int64_t& target, std::string value_name,
                            std::string explanation, IntegerRange range, Need need) {
  add({name, std::move(value_name), std::move(explanation), fmt::format("{}", target), need, false,
       [&target, range, what = "--" + name](std::string_view text) { target = parse_integer(text, what, range); }});
}

void ArgumentParser::option(const std::string& name, std::uint64_t& target, std::string value_name,
                            std::string explanation) {
  add({name, std::move(value_name), std::move(explanation), fmt::format("{}", target), Need::optional, false,
       [&target, what = "--" + name](std::string_view text) { target = parse_unsigned(text, what); }});
}

void ArgumentParser::option(const std::string& name, double& target, std::string value_name, std::string explanation,
                            Need need) {
  add({name, std::move(value_name), std::move(explanation), number_text(target), need, false,
       [&target, what = "--" + name](std::string_view text) { target = parse_number(text, what); }});
}

void ArgumentParser::option(const std::string& name, bool& target, std::string explanation) {
  add({name, "yes|no", std::move(explanation), target ? "yes" : "no", Need::optional, false,
       [&target, what = "--" + name](std::string_view text) { target = parse_switch(text, what); }});
}

void ArgumentParser::flag(std::string name, bool& target, std::string explanation) {
  add({std::move(name), "", std::move(explanation), "", Need::optional, false,
       [&target](std::string_view) { target = true; }});
}

void ArgumentParser::choice(const std::string& name, std::string& target, std::vector<std::string> allowed,
                            std::string explanation) {
  std::string value_name = fmt::format("{}", fmt::join(allowed, "|"));
  add({name, std::move(value_name), std::move(explanation), target, Need::optional, false,
       [&target, allowed = std::move(allowed), what = "--" + name](std::string_view text) {
         target = allowed[parse_choice(text, what, allowed)];
       }});
}

void ArgumentParser::list(std::string name, std::vector<std::string>& target, std::string value_name,
                          std::string explanation, Need need) {
  add({std::move(name), std::move(value_name), std::move(explanation), "", need, true,
       [&target](std::string_view text) { target.emplace_back(text); }});
}

void ArgumentParser::positional(std::string value_name, std::string& target, std::string explanation, Need need) {
  require(positionals_.empty() || !positionals_.back().all_left, "a list of positionals comes last");
  positionals_.push_back({std::move(value_name), std::move(explanation), need == Need::required ? 1U : 0U, false,
                          [&target](std::string_view text) { target = text; }});
}

void ArgumentParser::positionals(std::string value_name, std::vector<std::string>& target, std::string explanation,
                                 std::size_t at_least) {
  require(positionals_.empty() || !positionals_.back().all_left, "a list of positionals comes last");
  positionals_.push_back({std::move(value_name), std::move(explanation), at_least, true,
                          [&target](std::string_view text) { target.emplace_back(text); }});
}

UsageError ArgumentParser::wrong(const std::string& problem, const std::string& why) const {
  return UsageError(one_line(problem, why, fmt::format("see {} --help", program_)));
}

ArgumentParser::Option& ArgumentParser::find(std::string_view name) {
  const auto place = std::find_if(options_.begin(), options_.end(), [&](const Option& o) { return o.name == name; });
  require(place != options_.end(), "the option is declared");
  return *place;
}

void ArgumentParser::take_option(const std::string& name, std::span<const std::string> values) {
  Option& option = find(name);
  if (++option.count > 1 && !option.repeats && !option.value_name.empty()) {
    throw wrong(fmt::format("--{} is given twice", name), "it takes one value");
  }
  option.set(values.empty() ? std::string_view{} : std::string_view(values.front()));
}

void ArgumentParser::take_positionals(std::span<const std::string> values) {
  for (const Positional& positional : positionals_) {
    const std::size_t most = positional.all_left ? values.size() : 1;
    const std::size_t count = std::min(most, values.size());
    if (count < positional.at_least) {
      throw wrong(fmt::format("{} is missing", positional.value_name), positional.explanation);
    }
    for (const std::string& value : values.first(count)) positional.set(value);
    values = values.subspan(count);
  }
  if (!values.empty()) throw wrong(fmt::format("'{}' is one argument too many", values.front()), usage_line());
}

std::optional<std::string> ArgumentParser::parse(std::span<const std::string> arguments) {
  std::vector<detail::KnownOption> known{{"help", false}, {"version", false}};
  for (Option& option : options_) {
    option.count = 0;
    known.push_back({option.name, !option.value_name.empty()});
  }
  const detail::SplitArguments split = detail::split_arguments(program_, arguments, known);
  for (const auto& [name, values] : split.options) {
    if (name == "help") return help();
    if (name == "version") return version_text(program_);
  }
  for (const auto& [name, values] : split.options) take_option(name, values);
  take_positionals(split.positionals);
  for (const Option& option : options_) {
    if (option.need == Need::required && option.count == 0) {
      throw wrong(fmt::format("--{} is missing", option.name), option.explanation);
    }
  }
  return std::nullopt;
}

bool ArgumentParser::given(std::string_view name) const {
  return std::any_of(options_.begin(), options_.end(), [&](const Option& o) { return o.name == name && o.count > 0; });
}

std::string ArgumentParser::usage_line() const {
  std::string line = "usage: " + program_;
  for (const Option& option : options_) {
    if (option.need == Need::required) line += fmt::format(" --{} {}", option.name, option.value_name);
  }
  line += " [options]";
  for (const Positional& positional : positionals_) {
    const std::string name = positional.value_name + (positional.all_left ? "..." : "");
    line += positional.at_least == 0 ? fmt::format(" [{}]", name) : " " + name;
  }
  return line;
}

std::vector<detail::HelpRow> ArgumentParser::rows() const {
  std::vector<detail::HelpRow> rows;
  for (const Positional& positional : positionals_) rows.push_back({positional.value_name, positional.explanation});
  for (const Option& option : options_) {
    std::string text = option.explanation;
    if (option.need == Need::required) text += " (required)";
    if (!option.default_text.empty()) text += fmt::format(" (default {})", option.default_text);
    if (option.repeats) text += " (may be repeated)";
    rows.push_back(
        {fmt::format("--{}{}{}", option.name, option.value_name.empty() ? "" : " ", option.value_name), text});
  }
  return rows;
}

std::string ArgumentParser::options_text() const { return detail::help_rows(rows()); }

std::string ArgumentParser::help() const {
  std::vector<detail::HelpRow> rows = this->rows();
  rows.push_back({"--help, -h", "print this text"});
  rows.push_back({"--version", "print version and build facts"});
  return fmt::format("{}\n\n{}\n\n{}{}", detail::wrap(summary_, 0), usage_line(), detail::examples_text(examples_),
                     detail::help_rows(rows));
}

std::string version_text(std::string_view program) {
  const BuildInfo& info = build_info();
  return fmt::format(
      "{} {} (commit {})\ncompiler  {}, {}, kernels for {}\nMPI       {}\nHDF5      {}\nBLAS      {}\nCUDA      {}\n",
      program, info.version, info.commit, info.compiler, info.build_type,
      info.cpu_arch.empty() ? "the compiler's default" : info.cpu_arch, info.mpi, info.hdf5, info.blas,
      info.cuda ? "built in" : "not built in (configure with -DLAMINA_CUDA=ON)");
}

std::vector<std::string> argument_list(int count, const char* const* values, int skip) {
  const int first = std::min(skip, count);
  return {values + first, values + count};
}

}  // namespace lamina
