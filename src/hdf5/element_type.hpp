// HDF5 datatypes of our elements.
#pragma once

#include <string_view>

#include <lamina/hdf5/element.hpp>
#include <lamina/hdf5/handle.hpp>

namespace lamina::hdf5 {

// A new datatype, little-endian. `element` is not Element::other.
[[nodiscard]] Handle make_type(Element element, std::string_view place);
// The element a stored datatype is, or Element::other.
[[nodiscard]] Element element_of_type(std::int64_t type, std::string_view place);

}  // namespace lamina::hdf5
