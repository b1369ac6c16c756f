// Element types of tensors in memory and in files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lamina {

enum class DType : std::uint8_t { f32, f16, bf16 };

[[nodiscard]] std::size_t size_of(DType dtype);
// "F32", "F16", "BF16": the names that safetensors uses.
[[nodiscard]] std::string_view name_of(DType dtype);

// Conversions. To 16 bits: round to nearest even, overflow to infinity, NaN stays NaN.
[[nodiscard]] float bf16_to_float(std::uint16_t bits);
[[nodiscard]] float f16_to_float(std::uint16_t bits);
[[nodiscard]] std::uint16_t float_to_bf16(float value);
[[nodiscard]] std::uint16_t float_to_f16(float value);

// `count` elements of `from` at `source` (any alignment) as floats.
void to_floats(DType from, const void* source, float* target, std::size_t count);
// `count` floats as elements of `to` at `target` (any alignment).
void from_floats(DType to, const float* source, void* target, std::size_t count);

}  // namespace lamina
