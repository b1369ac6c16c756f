// The element types Lamina keeps in HDF5 files. Files are little-endian; elements are moved as they are, never
// converted by HDF5 (its own float-to-bf16 conversion rounds half up and is slow).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace lamina::hdf5 {

// bf16 is stored as a custom 16-bit float type with an 8-bit exponent. `other` stands for anything Lamina does not
// read.
enum class Element : std::uint8_t { f32, f16, bf16, i32, i64, u8, u16, u32, u64, other };

[[nodiscard]] std::size_t size_of(Element element);
// "F32", "BF16", "I64", "U16", ... as in safetensors; "?" for `other`.
[[nodiscard]] std::string_view name_of(Element element);

// The element a C++ type is stored as; 16-bit floats travel through the raw calls.
template <typename T>
[[nodiscard]] constexpr Element element_of() {
  if constexpr (std::is_same_v<T, float>) return Element::f32;
  if constexpr (std::is_same_v<T, std::int32_t>) return Element::i32;
  if constexpr (std::is_same_v<T, std::int64_t>) return Element::i64;
  if constexpr (std::is_same_v<T, std::uint8_t>) return Element::u8;
  if constexpr (std::is_same_v<T, std::uint16_t>) return Element::u16;
  if constexpr (std::is_same_v<T, std::uint32_t>) return Element::u32;
  if constexpr (std::is_same_v<T, std::uint64_t>) return Element::u64;
  return Element::other;
}

}  // namespace lamina::hdf5
