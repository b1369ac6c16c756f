#include "strict_json.hpp"

#include <lamina/base/error.hpp>
#include <lamina/base/json.hpp>

#include <fmt/format.h>

namespace lamina {

nlohmann::json parse_strict_json(std::string_view text, int deepest, const std::string& where) {
  try {
    return parse_json(text, static_cast<std::size_t>(deepest));
  } catch (const JsonFault& fault) {
    const std::string what =
        fault.byte() > 0 ? fmt::format("its JSON is broken at byte {}: {}", fault.byte(), fault.what()) : fault.what();
    throw DataError(one_line(fmt::format("cannot use {}", where), what));
  }
}

}  // namespace lamina
