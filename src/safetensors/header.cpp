#include "strict_json.hpp"

#include <algorithm>
#include <cstring>
#include <set>

#include <lamina/base/check.hpp>
#include <lamina/base/error.hpp>
#include <lamina/safetensors/header.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

using nlohmann::json;

constexpr int deepest = 3;  // file, tensor, shape

struct KnownDtype {
  std::string_view name;
  std::uint64_t bytes;
  std::optional<DType> dtype;
};

// What other programs write; only three of them are weights for us.
constexpr KnownDtype known_dtypes[] = {
    {"F32", 4, DType::f32},      {"F16", 2, DType::f16},   {"BF16", 2, DType::bf16},     {"BOOL", 1, std::nullopt},
    {"U8", 1, std::nullopt},     {"I8", 1, std::nullopt},  {"U16", 2, std::nullopt},     {"I16", 2, std::nullopt},
    {"U32", 4, std::nullopt},    {"I32", 4, std::nullopt}, {"U64", 8, std::nullopt},     {"I64", 8, std::nullopt},
    {"F64", 8, std::nullopt},    {"C64", 8, std::nullopt}, {"F8_E4M3", 1, std::nullopt}, {"F8_E5M2", 1, std::nullopt},
    {"F8_E8M0", 1, std::nullopt}};

class HeaderParser {
 public:
  HeaderParser(std::uint64_t data_bytes, const std::string& where) : data_bytes_(data_bytes), where_(where) {}

  SafetensorsHeader parse(std::string_view text) {
    if (!text.starts_with('{')) refuse("its header does not begin with {");
    const json object = parse_strict_json(text, deepest, where_);
    SafetensorsHeader header;
    for (const auto& [name, value] : object.items()) {
      if (name == "__metadata__") {
        read_metadata(value, header);
      } else {
        header.tensors.push_back(read_entry(name, value));
      }
    }
    std::sort(header.tensors.begin(), header.tensors.end(), [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
      return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
    });
    check_coverage(header.tensors);
    return header;
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw DataError(one_line(fmt::format("cannot use {}", where_), why));
  }
  [[noreturn]] void refuse_tensor(const std::string& name, const std::string& why) const {
    throw DataError(one_line(fmt::format("cannot use tensor \"{}\" of {}", name, where_), why));
  }

  void read_metadata(const json& value, SafetensorsHeader& header) const {
    if (value.is_null()) return;  // none, as for the safetensors library
    if (!value.is_object()) refuse("__metadata__ is not an object");
    for (const auto& [key, text] : value.items()) {
      if (!text.is_string()) refuse(fmt::format("__metadata__ \"{}\" is not a text", key));
      header.metadata.emplace(key, text.get<std::string>());
    }
  }

  SafetensorsEntry read_entry(const std::string& name, const json& value) const {
    if (!value.is_object()) refuse_tensor(name, "its description is not an object");
    for (const char* key : {"dtype", "shape", "data_offsets"}) {
      if (!value.contains(key)) refuse_tensor(name, fmt::format("\"{}\" is missing", key));
    }
    if (value.size() != 3) refuse_tensor(name, "its description holds more than dtype, shape and data_offsets");
    SafetensorsEntry entry;
    entry.name = name;
    const KnownDtype& dtype = read_dtype(name, value.at("dtype"));
    entry.dtype_name = dtype.name;
    entry.dtype = dtype.dtype;
    std::uint64_t bytes = read_shape(value.at("shape"), entry);
    if (__builtin_mul_overflow(bytes, dtype.bytes, &bytes)) refuse_tensor(name, "its shape is impossible");
    read_offsets(value.at("data_offsets"), entry);
    if (bytes != entry.end - entry.begin) {
      refuse_tensor(name, fmt::format("its shape needs {} bytes and it has {}", bytes, entry.end - entry.begin));
    }
    return entry;
  }

  const KnownDtype& read_dtype(const std::string& name, const json& value) const {
    if (!value.is_string()) refuse_tensor(name, "its dtype is not a text");
    const auto& text = value.get_ref<const std::string&>();
    for (const KnownDtype& known : known_dtypes) {
      if (known.name == text) return known;
    }
    refuse_tensor(name, fmt::format("its dtype \"{}\" is unknown", text));
  }

  // Returns the number of elements.
  std::uint64_t read_shape(const json& value, SafetensorsEntry& entry) const {
    if (!value.is_array()) refuse_tensor(entry.name, "its shape is not a list");
    std::int64_t product = 1;
    for (const json& size : value) {
      if (!size.is_number_unsigned() || size.get<std::uint64_t>() > INT64_MAX) {
        refuse_tensor(entry.name, "its shape holds something that is not a size");
      }
      entry.shape.push_back(size.get<std::int64_t>());
      if (__builtin_mul_overflow(product, entry.shape.back(), &product)) {
        refuse_tensor(entry.name, "its shape is impossible");
      }
    }
    entry.elements = product;
    return static_cast<std::uint64_t>(product);
  }

  void read_offsets(const json& value, SafetensorsEntry& entry) const {
    if (!value.is_array() || value.size() != 2 || !value[0].is_number_unsigned() || !value[1].is_number_unsigned()) {
      refuse_tensor(entry.name, "data_offsets are not two offsets");
    }
    entry.begin = value[0].get<std::uint64_t>();
    entry.end = value[1].get<std::uint64_t>();
    if (entry.begin > entry.end) refuse_tensor(entry.name, "its data ends before it begins");
    if (entry.end > data_bytes_) {
      refuse_tensor(entry.name, fmt::format("its data ends at byte {} and the file holds {} (is it cut off?)",
                                            entry.end, data_bytes_));
    }
  }

  void check_coverage(const std::vector<SafetensorsEntry>& tensors) const {
    std::uint64_t next = 0;
    for (const SafetensorsEntry& entry : tensors) {
      if (entry.begin < next) refuse_tensor(entry.name, "its data overlaps another tensor's");
      if (entry.begin > next)
        refuse_tensor(entry.name, fmt::format("{} bytes before it belong to no tensor", entry.begin - next));
      next = entry.end;
    }
    if (next != data_bytes_) refuse(fmt::format("its last {} bytes belong to no tensor", data_bytes_ - next));
  }

  std::uint64_t data_bytes_;
  const std::string& where_;
};

}  // namespace

std::uint64_t safetensors_header_length(std::span<const std::byte> first_bytes, std::uint64_t file_bytes,
                                        const std::string& where) {
  const auto refuse = [&](const std::string& why) {
    throw DataError(one_line(fmt::format("cannot use {}", where), why, "is it a safetensors file?"));
  };
  if (file_bytes < safetensors_length_bytes || first_bytes.size() < safetensors_length_bytes) {
    refuse(fmt::format("it has only {} bytes", file_bytes));
  }
  std::uint64_t length = 0;
  for (std::size_t i = safetensors_length_bytes; i-- > 0;)
    length = length << 8 | std::to_integer<std::uint64_t>(first_bytes[i]);
  if (length > file_bytes - safetensors_length_bytes) {
    refuse(fmt::format("its header of {} bytes does not fit its {} bytes", length, file_bytes));
  }
  if (length > longest_safetensors_header) refuse(fmt::format("its header of {} bytes is too long", length));
  return length;
}

SafetensorsHeader parse_safetensors_header(std::string_view json_text, std::uint64_t data_bytes,
                                           const std::string& where) {
  SafetensorsHeader header = HeaderParser(data_bytes, where).parse(json_text);
  header.data_start = safetensors_length_bytes + json_text.size();
  return header;
}

SafetensorsHeader parse_safetensors(std::span<const std::byte> file, const std::string& where) {
  const std::uint64_t length = safetensors_header_length(file, file.size(), where);
  const auto* text = reinterpret_cast<const char*>(file.data()) + safetensors_length_bytes;
  return parse_safetensors_header({text, length}, file.size() - safetensors_length_bytes - length, where);
}

std::string make_safetensors_header(std::span<const SafetensorsEntry> tensors) {
  nlohmann::ordered_json object;
  object["__metadata__"] = {{"format", "pt"}};
  std::uint64_t next = 0;
  for (const SafetensorsEntry& tensor : tensors) {
    require(tensor.dtype.has_value() && !object.contains(tensor.name),
            "safetensors header: distinct names, float dtypes");
    std::uint64_t bytes = size_of(*tensor.dtype);
    for (const std::int64_t size : tensor.shape) bytes *= static_cast<std::uint64_t>(size);
    object[tensor.name] = {
        {"dtype", name_of(*tensor.dtype)}, {"shape", tensor.shape}, {"data_offsets", {next, next + bytes}}};
    next += bytes;
  }
  std::string text = object.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::string header(safetensors_length_bytes, '\0');
  for (std::size_t i = 0; i < safetensors_length_bytes; ++i) {
    header[i] = static_cast<char>(static_cast<std::uint64_t>(text.size()) >> (8 * i) & 0xFF);
  }
  return header + text;
}

}  // namespace lamina
