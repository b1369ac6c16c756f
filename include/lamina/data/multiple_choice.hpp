// Questions with several answers to choose from, as JSON lines:
//   {"context": "The sky is", "choices": [" blue", " green"], "answer": 0}
// `answer` counts from 0. Other keys are ignored; "query" and "endings" are not guessed at.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace lamina {

struct MultipleChoice {
  std::string context;
  std::vector<std::string> choices;  // at least 2, none empty
  std::size_t answer = 0;            // index of the right one
};

// One line of the file; DataErrors begin with `place` ("FILE:LINE").
[[nodiscard]] MultipleChoice parse_multiple_choice(std::string_view line, const std::string& place);
// Blank lines are skipped. A file without questions is a DataError.
[[nodiscard]] std::vector<MultipleChoice> read_multiple_choice(const std::filesystem::path& path);

}  // namespace lamina
