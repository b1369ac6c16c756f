#include "call.hpp"

#include <algorithm>

#include <lamina/base/check.hpp>
#include <lamina/hdf5/object.hpp>

#include <fmt/format.h>

namespace lamina::hdf5 {

namespace {

constexpr std::size_t longest_text = 60'000;  // an attribute must fit an object header of 64 KiB

std::string place_of(const Object& object, const std::string& name) {
  return fmt::format("attribute \"{}\" of {}", name, object.place());
}

Handle text_type(std::size_t size, std::string_view place) {
  Handle type = owned(Handle::Kind::datatype, H5Tcopy(H5T_C_S1), "make a text type for", place);
  checked(H5Tset_size(type.id(), size), "size a text type for", place);
  checked(H5Tset_cset(type.id(), H5T_CSET_UTF8), "make UTF-8 a text type for", place);
  return type;
}

Handle scalar_space(std::string_view place) {
  return owned(Handle::Kind::dataspace, H5Screate(H5S_SCALAR), "make a dataspace for", place);
}

void write_value(const Object& object, const std::string& name, hid_t type, const void* value) {
  const std::string place = place_of(object, name);
  const Handle space = scalar_space(place);
  Handle attribute =
      owned(Handle::Kind::attribute, H5Acreate2(object.id(), name.c_str(), type, space.id(), H5P_DEFAULT, H5P_DEFAULT),
            "create", place);
  checked(H5Awrite(attribute.id(), type, value), "write", place);
  checked(attribute.close(), "close", place);
}

// One value only: everything else is not ours.
Handle open_scalar(const Object& object, const std::string& name, H5T_class_t wanted, std::string_view kind) {
  const std::string place = place_of(object, name);
  Handle attribute = owned(Handle::Kind::attribute, H5Aopen(object.id(), name.c_str(), H5P_DEFAULT), "open", place);
  const Handle space = owned(Handle::Kind::dataspace, H5Aget_space(attribute.id()), "read the shape of", place);
  const Handle type = owned(Handle::Kind::datatype, H5Aget_type(attribute.id()), "read the type of", place);
  if (H5Sget_simple_extent_npoints(space.id()) != 1 || H5Tget_class(type.id()) != wanted) {
    throw DataError(one_line(fmt::format("cannot read {}", place), fmt::format("it is not one {}", kind)));
  }
  return attribute;
}

std::string read_variable_text(hid_t attribute, hid_t type, std::string_view place) {
  char* text = nullptr;
  const Handle memory_type = text_type(H5T_VARIABLE, place);
  checked(H5Tset_cset(memory_type.id(), H5Tget_cset(type)), "read", place);
  checked(H5Aread(attribute, memory_type.id(), static_cast<void*>(&text)), "read", place);
  std::string result = text == nullptr ? std::string() : std::string(text);
  H5free_memory(text);
  return result;
}

}  // namespace

void Object::write_attribute(const std::string& name, std::string_view text) {
  require(text.size() <= longest_text, "hdf5: long texts go to datasets");
  be_quiet();
  const Handle type = text_type(text.empty() ? 1 : text.size(), place_);
  const std::string padded = text.empty() ? std::string(1, '\0') : std::string(text);
  write_value(*this, name, type.id(), padded.data());
}

void Object::write_attribute(const std::string& name, std::int64_t value) {
  be_quiet();
  write_value(*this, name, H5T_STD_I64LE, &value);
}

bool Object::has_attribute(const std::string& name) const {
  be_quiet();
  return checked(H5Aexists(id(), name.c_str()), "look for", place_of(*this, name)) > 0;
}

std::string Object::read_text_attribute(const std::string& name) const {
  be_quiet();
  const std::string place = place_of(*this, name);
  const Handle attribute = open_scalar(*this, name, H5T_STRING, "text");
  const Handle type = owned(Handle::Kind::datatype, H5Aget_type(attribute.id()), "read the type of", place);
  if (checked(H5Tis_variable_str(type.id()), "read the type of", place) > 0) {
    return read_variable_text(attribute.id(), type.id(), place);
  }
  std::string text(H5Tget_size(type.id()), '\0');
  checked(H5Aread(attribute.id(), type.id(), text.data()), "read", place);
  text.resize(text.find_last_not_of('\0') + 1);
  return text;
}

std::int64_t Object::read_int_attribute(const std::string& name) const {
  be_quiet();
  std::int64_t value = 0;
  const Handle attribute = open_scalar(*this, name, H5T_INTEGER, "integer");
  checked(H5Aread(attribute.id(), H5T_NATIVE_INT64, &value), "read", place_of(*this, name));
  return value;
}

std::vector<std::string> Object::attributes() const {
  be_quiet();
  // A file's own id is no object to HDF5: "." is its root group.
  const Handle self = owned(Handle::Kind::object, H5Oopen(id(), ".", H5P_DEFAULT), "open", place_);
  const int count = checked(H5Aget_num_attrs(self.id()), "list attributes of", place_);
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) {
    const Handle attribute = owned(
        Handle::Kind::attribute,
        H5Aopen_by_idx(self.id(), ".", H5_INDEX_NAME, H5_ITER_INC, static_cast<hsize_t>(i), H5P_DEFAULT, H5P_DEFAULT),
        "list attributes of", place_);
    const auto length = checked(H5Aget_name(attribute.id(), 0, nullptr), "list attributes of", place_);
    std::string name(static_cast<std::size_t>(length) + 1, '\0');
    checked(H5Aget_name(attribute.id(), name.size(), name.data()), "list attributes of", place_);
    name.pop_back();
    names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string Object::attribute_text(const std::string& name) const {
  try {
    return read_text_attribute(name);
  } catch (const DataError&) {
  }
  try {
    return fmt::to_string(read_int_attribute(name));
  } catch (const DataError&) {
    return "(neither text nor integer)";
  }
}

void Object::close() { checked(handle_.close(), "close", place_); }

}  // namespace lamina::hdf5
