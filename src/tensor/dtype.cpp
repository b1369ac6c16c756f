#include <bit>
#include <cmath>
#include <cstring>

#include <lamina/tensor/dtype.hpp>

namespace lamina {

std::size_t size_of(DType dtype) { return dtype == DType::f32 ? 4 : 2; }

std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "F32";
    case DType::f16:
      return "F16";
    case DType::bf16:
      return "BF16";
  }
  return "?";
}

float bf16_to_float(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

float f16_to_float(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1Fu;
  const std::uint32_t mantissa = bits & 0x3FFu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000u | (mantissa << 13));
  if (exponent == 0) {
    const float magnitude = std::ldexp(static_cast<float>(mantissa), -24);
    return sign != 0 ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

std::uint16_t float_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  const std::uint32_t rounded = bits + 0x7FFFu + ((bits >> 16) & 1u);
  return static_cast<std::uint16_t>(rounded >> 16);
}

std::uint16_t float_to_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const float magnitude = std::abs(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | 0x7E00u);
  if (magnitude >= 65520.0f) return static_cast<std::uint16_t>(sign | 0x7C00u);
  if (magnitude < 0x1p-14f) {  // subnormal in half: a multiple of 2^-24; nearbyint rounds to even
    return static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(std::nearbyint(std::ldexp(magnitude, 24))));
  }
  const std::uint32_t absolute = bits & 0x7FFFFFFFu;
  const std::uint32_t rounded = absolute + 0xFFFu + ((absolute >> 13) & 1u);
  return static_cast<std::uint16_t>(sign | ((rounded >> 13) - (112u << 10)));
}

void to_floats(DType from, const void* source, float* target, std::size_t count) {
  if (from == DType::f32) {
    std::memcpy(target, source, count * sizeof(float));
    return;
  }
  const auto* bytes = static_cast<const unsigned char*>(source);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, bytes + 2 * i, 2);
    target[i] = from == DType::bf16 ? bf16_to_float(bits) : f16_to_float(bits);
  }
}

void from_floats(DType to, const float* source, void* target, std::size_t count) {
  if (to == DType::f32) {
    std::memcpy(target, source, count * sizeof(float));
    return;
  }
  auto* bytes = static_cast<unsigned char*>(target);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint16_t bits = to == DType::bf16 ? float_to_bf16(source[i]) : float_to_f16(source[i]);
    std::memcpy(bytes + 2 * i, &bits, 2);
  }
}

}  // namespace lamina
