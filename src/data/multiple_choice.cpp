#include "json_line.hpp"
#include "text_input.hpp"

#include <algorithm>

#include <lamina/base/error.hpp>
#include <lamina/data/multiple_choice.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

[[noreturn]] void refuse(const std::string& place, std::string_view problem, std::string_view why) {
  throw DataError(one_line(fmt::format("{}: {}", place, problem), why, "repair the line"));
}

}  // namespace

MultipleChoice parse_multiple_choice(std::string_view line, const std::string& place) {
  const detail::Json object = detail::parse_json_line(line, place);
  MultipleChoice out;
  out.context = detail::text_at(object, "context", place);
  const auto choices = object.find("choices");
  if (choices == object.end() || !choices->is_array() || choices->size() < 2) {
    refuse(place, "no list of at least two texts at 'choices'", "there is nothing to choose from");
  }
  for (const detail::Json& choice : *choices) {
    if (!choice.is_string() || choice.get_ref<const std::string&>().empty()) {
      refuse(place, "an entry of 'choices' that is no text or empty", "every choice needs a score");
    }
    out.choices.push_back(choice.get<std::string>());
  }
  const auto answer = object.find("answer");
  if (answer == object.end() || !answer->is_number_unsigned() || answer->get<std::uint64_t>() >= out.choices.size()) {
    refuse(place, "no valid 'answer'",
           fmt::format("it is the number of a choice, from 0 to {}", out.choices.size() - 1));
  }
  out.answer = answer->get<std::size_t>();
  return out;
}

std::vector<MultipleChoice> read_multiple_choice(const std::filesystem::path& path) {
  detail::TextInput input(path, TextFormat::json_lines);
  std::string text;
  while (!input.at_end()) input.read(std::max(text.size(), std::size_t{1} << 16), text);
  std::vector<MultipleChoice> out;
  detail::for_each_line(text, [&](std::string_view line, std::size_t number) {
    out.push_back(parse_multiple_choice(line, input.place_of_line(number)));
  });
  if (out.empty())
    throw DataError(one_line(fmt::format("{}: no questions", path.string()), "the file is empty", "name another file"));
  return out;
}

}  // namespace lamina
