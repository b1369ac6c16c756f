#include "call.hpp"
#include "element_type.hpp"

#include <bit>

#include <lamina/base/check.hpp>

namespace lamina::hdf5 {

static_assert(std::endian::native == std::endian::little, "raw reads and writes assume a little-endian machine");

namespace {

constexpr Element known_elements[] = {Element::f32, Element::f16, Element::bf16, Element::i32, Element::i64,
                                      Element::u8,  Element::u16, Element::u32,  Element::u64};

hid_t integer_type(Element element) {
  switch (element) {
    case Element::i32:
      return H5T_STD_I32LE;
    case Element::i64:
      return H5T_STD_I64LE;
    case Element::u8:
      return H5T_STD_U8LE;
    case Element::u16:
      return H5T_STD_U16LE;
    case Element::u32:
      return H5T_STD_U32LE;
    case Element::u64:
      return H5T_STD_U64LE;
    default:
      return -1;
  }
}

// IEEE-like 16-bit float: sign, exponent, mantissa from the top.
void make_half(hid_t type, std::size_t exponent_bits, std::size_t bias, std::string_view place) {
  const std::size_t mantissa_bits = 15 - exponent_bits;
  checked(H5Tset_fields(type, 15, mantissa_bits, exponent_bits, 0, mantissa_bits), "describe a 16-bit float of", place);
  checked(H5Tset_size(type, 2), "size a 16-bit float of", place);
  checked(H5Tset_ebias(type, bias), "bias a 16-bit float of", place);
}

}  // namespace

std::size_t size_of(Element element) {
  switch (element) {
    case Element::u8:
      return 1;
    case Element::f16:
    case Element::bf16:
    case Element::u16:
      return 2;
    case Element::f32:
    case Element::i32:
    case Element::u32:
      return 4;
    case Element::i64:
    case Element::u64:
      return 8;
    case Element::other:
      break;
  }
  return 0;
}

std::string_view name_of(Element element) {
  switch (element) {
    case Element::f32:
      return "F32";
    case Element::f16:
      return "F16";
    case Element::bf16:
      return "BF16";
    case Element::i32:
      return "I32";
    case Element::i64:
      return "I64";
    case Element::u8:
      return "U8";
    case Element::u16:
      return "U16";
    case Element::u32:
      return "U32";
    case Element::u64:
      return "U64";
    case Element::other:
      break;
  }
  return "?";
}

Handle make_type(Element element, std::string_view place) {
  require(element != Element::other, "hdf5: a known element type");
  be_quiet();
  const bool floating = element == Element::f32 || element == Element::f16 || element == Element::bf16;
  const hid_t base = floating ? H5T_IEEE_F32LE : integer_type(element);
  Handle type = owned(Handle::Kind::datatype, H5Tcopy(base), "copy a datatype for", place);
  if (element == Element::f16) make_half(type.id(), 5, 15, place);
  if (element == Element::bf16) make_half(type.id(), 8, 127, place);
  return type;
}

Element element_of_type(std::int64_t type, std::string_view place) {
  for (const Element element : known_elements) {
    const Handle candidate = make_type(element, place);
    if (checked(H5Tequal(type, candidate.id()), "compare datatypes of", place) > 0) return element;
  }
  return Element::other;
}

}  // namespace lamina::hdf5
