#include <lamina/base/error.hpp>

namespace lamina {

std::string one_line(std::string_view problem, std::string_view why, std::string_view fix) {
  std::string line(problem);
  if (!why.empty()) line.append(": ").append(why);
  if (!fix.empty()) line.append("; ").append(fix);
  for (char& c : line) {
    // Names from untrusted files may hold line ends, NUL or terminal escapes.
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  }
  return line;
}

}  // namespace lamina
