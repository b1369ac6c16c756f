// One move-only owner for every kind of HDF5 identifier. hdf5.h itself stays inside src/hdf5.
#pragma once

#include <cstdint>
#include <utility>

namespace lamina::hdf5 {

class Handle {
 public:
  enum class Kind : std::uint8_t { none, file, group, dataset, object, dataspace, datatype, attribute, property_list };

  Handle() = default;
  Handle(Kind kind, std::int64_t id) : kind_(kind), id_(id) {}
  Handle(Handle&& other) noexcept : kind_(std::exchange(other.kind_, Kind::none)), id_(std::exchange(other.id_, -1)) {}
  Handle& operator=(Handle&& other) noexcept;
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  // Closes and ignores the result: call close() where the result matters.
  ~Handle();

  // HDF5's hid_t; negative when empty.
  [[nodiscard]] std::int64_t id() const { return id_; }
  [[nodiscard]] bool empty() const { return kind_ == Kind::none; }
  // Closes and leaves the handle empty; negative when HDF5 reports a failure. Closing an empty handle succeeds.
  [[nodiscard]] int close() noexcept;

 private:
  Kind kind_ = Kind::none;
  std::int64_t id_ = -1;
};

}  // namespace lamina::hdf5
