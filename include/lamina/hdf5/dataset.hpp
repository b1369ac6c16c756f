// A dataset: contiguous, unfiltered elements of any rank, read and written as ranges of its row-major element sequence.
//
// All calls throw DataError with the file, the object, what was attempted, and the useful line of HDF5's error stack.
// Nothing is ever converted: a range must be read as the element type the dataset has.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <lamina/hdf5/element.hpp>
#include <lamina/hdf5/object.hpp>

namespace lamina::hdf5 {

class Dataset : public Object {
 public:
  // Made by Group. `shape` empty = a scalar.
  Dataset(Handle handle, std::string place);

  [[nodiscard]] Element element() const { return element_; }
  [[nodiscard]] const std::vector<std::int64_t>& shape() const { return shape_; }
  [[nodiscard]] std::int64_t elements() const { return elements_; }
  // Where element 0 lies in the file; empty when nothing is allocated (no elements) or the layout is not contiguous.
  [[nodiscard]] std::optional<std::uint64_t> file_offset() const;

  // Elements [first, first + values.size()).
  template <typename T>
  void write(std::int64_t first, std::span<const T> values) {
    write_raw(first, static_cast<std::int64_t>(values.size()), values.data(), element_of<T>());
  }
  template <typename T>
  void read(std::int64_t first, std::span<T> values) const {
    read_raw(first, static_cast<std::int64_t>(values.size()), values.data(), element_of<T>());
  }
  void write_raw(std::int64_t first, std::int64_t count, const void* source, Element element);
  void read_raw(std::int64_t first, std::int64_t count, void* target, Element element) const;

 private:
  void check_range(std::int64_t first, std::int64_t count, Element element, const char* attempt) const;

  std::vector<std::int64_t> shape_;
  std::int64_t elements_ = 0;
  Element element_ = Element::other;
};

}  // namespace lamina::hdf5
