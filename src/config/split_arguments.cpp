#include "split_arguments.hpp"

#include "likely_option.hpp"

#include <algorithm>

#include <lamina/base/error.hpp>

#include <boost/program_options.hpp>
#include <fmt/format.h>

namespace lamina::detail {

namespace {

namespace po = boost::program_options;

// No abbreviations and no short options but -h: a script that works today means the same tomorrow.
constexpr int long_options_only = po::command_line_style::allow_long | po::command_line_style::long_allow_adjacent |
                                  po::command_line_style::long_allow_next;

[[noreturn]] void refuse_unknown(std::string_view program, const std::string& word,
                                 std::span<const KnownOption> known) {
  std::vector<std::string> names;
  for (const KnownOption& option : known) names.push_back(option.name);
  const std::string bare = word.substr(std::min(word.find_first_not_of('-'), word.size()));
  const std::string nearest = likely_option(bare.substr(0, bare.find('=')), names);
  throw UsageError(
      one_line(fmt::format("unknown option {}", word), fmt::format("{} has no such option", program),
               nearest.empty() ? fmt::format("see {} --help", program) : fmt::format("did you mean --{}?", nearest)));
}

po::options_description describe(std::span<const KnownOption> known) {
  po::options_description description;
  for (const KnownOption& option : known) {
    if (option.takes_value) {
      description.add_options()(option.name.c_str(), po::value<std::string>());
    } else {
      description.add_options()(option.name.c_str(), po::bool_switch());
    }
  }
  return description;
}

// Boost refuses "--name=" although an empty value is a value: write it as two words.
std::vector<std::string> separate_empty_values(std::span<const std::string> arguments,
                                               std::span<const KnownOption> known) {
  std::vector<std::string> words;
  for (const std::string& word : arguments) {
    const auto is_word = [&](const KnownOption& option) {
      return option.takes_value && word == "--" + option.name + "=";
    };
    if (std::any_of(known.begin(), known.end(), is_word)) {
      words.push_back(word.substr(0, word.size() - 1));
      words.emplace_back();
    } else {
      words.push_back(word);
    }
  }
  return words;
}

}  // namespace

SplitArguments split_arguments(std::string_view program, std::span<const std::string> arguments,
                               std::span<const KnownOption> known) {
  const auto end = std::find(arguments.begin(), arguments.end(), "--");
  const std::vector<std::string> words = separate_empty_values({arguments.begin(), end}, known);
  const po::options_description description = describe(known);
  SplitArguments out;
  try {
    const po::parsed_options parsed =
        po::command_line_parser(words).options(description).style(long_options_only).run();
    for (const po::option& option : parsed.options) {
      if (option.position_key >= 0) {
        const std::string& word = option.value.front();
        if (word == "-h") {
          out.options.emplace_back("help", std::vector<std::string>{});
          continue;
        }
        if (word.size() > 1 && word.starts_with('-')) refuse_unknown(program, word, known);
        out.positionals.push_back(word);
      } else {
        out.options.emplace_back(option.string_key, option.value);
      }
    }
  } catch (const po::unknown_option& error) {
    refuse_unknown(program, error.get_option_name(), known);
  } catch (const po::error& error) {
    throw UsageError(one_line("cannot read the command line", error.what(), fmt::format("see {} --help", program)));
  }
  if (end != arguments.end()) out.positionals.insert(out.positionals.end(), end + 1, arguments.end());
  return out;
}

}  // namespace lamina::detail
