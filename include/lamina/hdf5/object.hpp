// What groups and datasets share: a handle, a place for messages ("FILE:/group/name"), and attributes.
//
// Attributes are for short facts. An array that may grow beyond 64 KiB belongs in a dataset (C9: the earliest format
// cannot hold it). All calls throw DataError naming file, object, attempt and HDF5's reason.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <lamina/hdf5/handle.hpp>

namespace lamina::hdf5 {

class Object {
 public:
  [[nodiscard]] const std::string& place() const { return place_; }
  [[nodiscard]] std::int64_t id() const { return handle_.id(); }

  // A new attribute; one that exists already is an error. Text may hold at most 60,000 bytes.
  void write_attribute(const std::string& name, std::string_view text);
  void write_attribute(const std::string& name, std::int64_t value);
  [[nodiscard]] bool has_attribute(const std::string& name) const;
  // Fixed- and variable-length strings alike.
  [[nodiscard]] std::string read_text_attribute(const std::string& name) const;
  // Any integer type.
  [[nodiscard]] std::int64_t read_int_attribute(const std::string& name) const;
  // Names of all attributes, sorted.
  [[nodiscard]] std::vector<std::string> attributes() const;
  // The value for people: a text, an integer, or a word for anything else.
  [[nodiscard]] std::string attribute_text(const std::string& name) const;

  // Closes now and reports failure. The object is unusable afterwards.
  void close();

 protected:
  Object(Handle handle, std::string place) : handle_(std::move(handle)), place_(std::move(place)) {}

 private:
  Handle handle_;
  std::string place_;
};

}  // namespace lamina::hdf5
