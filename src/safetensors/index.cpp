#include "strict_json.hpp"

#include <lamina/base/error.hpp>
#include <lamina/safetensors/header.hpp>

#include <fmt/format.h>

namespace lamina {

std::map<std::string, std::string> parse_safetensors_index(std::string_view json_text, const std::string& where) {
  const auto refuse = [&](const std::string& why) {
    throw DataError(one_line(fmt::format("cannot use {}", where), why));
  };
  constexpr int deepest = 8;  // metadata may hold anything
  const nlohmann::json object = parse_strict_json(json_text, deepest, where);
  if (!object.is_object() || !object.contains("weight_map") || !object.at("weight_map").is_object()) {
    refuse("it has no weight_map");
  }
  std::map<std::string, std::string> files;
  for (const auto& [name, file] : object.at("weight_map").items()) {
    if (!file.is_string()) refuse(fmt::format("the file of \"{}\" is not a text", name));
    const auto& file_name = file.get_ref<const std::string&>();
    if (file_name.empty() || file_name == "." || file_name == ".." || file_name.find('/') != std::string::npos ||
        file_name.find('\0') != std::string::npos) {
      refuse(fmt::format("the file \"{}\" of \"{}\" is not a plain name", file_name, name));
    }
    files.emplace(name, file_name);
  }
  return files;
}

}  // namespace lamina
