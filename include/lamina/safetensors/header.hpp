// The header of a safetensors file, read as untrusted input.
//
// Format (safetensors 0.4): 8 bytes little-endian header length N, N bytes of JSON, then the tensors' bytes. Lamina is
// as strict as the reference implementation and a little stricter: N within the file and at most 100 MB, one JSON
// object, no key twice, UTF-8, known dtypes, shape x size = bytes, and the tensors cover the data section without gap
// or overlap to the last byte of the file. Errors are DataErrors of one line that name the file and the tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <lamina/tensor/dtype.hpp>

namespace lamina {

struct SafetensorsEntry {
  std::string name;
  std::string dtype_name;      // as in the file: "F32", "BF16", "I64", ...
  std::optional<DType> dtype;  // when it is one Lamina reads as floats
  std::vector<std::int64_t> shape;
  std::int64_t elements = 0;
  std::uint64_t begin = 0, end = 0;  // bytes, counted from the start of the data section
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> tensors;  // in the order of their bytes
  std::map<std::string, std::string> metadata;
  std::uint64_t data_start = 0;  // bytes from the start of the file
};

inline constexpr std::uint64_t safetensors_length_bytes = 8;
inline constexpr std::uint64_t longest_safetensors_header = 100'000'000;

// The header's length from the file's first 8 bytes, checked against the file's size.
[[nodiscard]] std::uint64_t safetensors_header_length(std::span<const std::byte> first_bytes, std::uint64_t file_bytes,
                                                      const std::string& where);
// The header from its JSON text; `data_bytes` is what follows it in the file.
[[nodiscard]] SafetensorsHeader parse_safetensors_header(std::string_view json_text, std::uint64_t data_bytes,
                                                         const std::string& where);
// Both, from a whole file in memory.
[[nodiscard]] SafetensorsHeader parse_safetensors(std::span<const std::byte> file, const std::string& where);

// The JSON header (padded with spaces so that the data begins at a multiple of 8) for tensors that lie one after
// another, with its length in front. Names must differ; begin, end, elements and dtype_name are not read.
[[nodiscard]] std::string make_safetensors_header(std::span<const SafetensorsEntry> tensors);

// tensor name -> file name, from a model.safetensors.index.json. Throws DataError for anything malformed, a key given
// twice, or a file name that leaves the folder.
[[nodiscard]] std::map<std::string, std::string> parse_safetensors_index(std::string_view json_text,
                                                                         const std::string& where);

}  // namespace lamina
