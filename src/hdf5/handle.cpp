#include "call.hpp"

#include <lamina/hdf5/handle.hpp>

namespace lamina::hdf5 {

Handle& Handle::operator=(Handle&& other) noexcept {
  if (this != &other) {
    static_cast<void>(close());
    kind_ = std::exchange(other.kind_, Kind::none);
    id_ = std::exchange(other.id_, -1);
  }
  return *this;
}

Handle::~Handle() { static_cast<void>(close()); }

int Handle::close() noexcept {
  const std::int64_t id = std::exchange(id_, -1);
  switch (std::exchange(kind_, Kind::none)) {
    case Kind::none:
      return 0;
    case Kind::file:
      return H5Fclose(id);
    case Kind::group:
      return H5Gclose(id);
    case Kind::dataset:
      return H5Dclose(id);
    case Kind::dataspace:
      return H5Sclose(id);
    case Kind::datatype:
      return H5Tclose(id);
    case Kind::object:
      return H5Oclose(id);
    case Kind::attribute:
      return H5Aclose(id);
    case Kind::property_list:
      return H5Pclose(id);
  }
  return -1;
}

}  // namespace lamina::hdf5
