#include "call.hpp"
#include "element_type.hpp"

#include <algorithm>
#include <array>
#include <functional>

#include <lamina/hdf5/dataset.hpp>

#include <fmt/format.h>

namespace lamina::hdf5 {

namespace {

using Transfer = std::function<void(hid_t memory_space, hid_t file_space, std::int64_t done)>;

// The row-major range [first, first + count) of a shape as boxes: each box starts at the current position and takes as
// many whole rows of the slowest dimension that begins there as still fit. At most 2 x rank - 1 boxes.
class RangeBoxes {
 public:
  explicit RangeBoxes(const std::vector<std::int64_t>& shape) : shape_(shape) {}

  // Calls use(start, counts, elements) for each box, in order.
  template <typename Use>
  void visit(std::int64_t first, std::int64_t count, Use&& use) const {
    while (count > 0) {
      std::vector<hsize_t> start(shape_.size());
      std::vector<hsize_t> counts(shape_.size(), 1);
      const std::int64_t taken = place_box(first, count, start, counts);
      use(start, counts, taken);
      first += taken;
      count -= taken;
    }
  }

 private:
  std::int64_t place_box(std::int64_t first, std::int64_t count, std::vector<hsize_t>& start,
                         std::vector<hsize_t>& counts) const {
    std::int64_t row = 1;       // elements below one index of dimension d
    std::int64_t rest = first;  // index over dimensions 0..d
    std::int64_t taken = 1;
    bool aligned = true;  // the range begins at index 0 of every faster dimension
    for (std::size_t d = shape_.size(); d-- > 0;) {
      const std::int64_t index = rest % shape_[d];
      start[d] = static_cast<hsize_t>(index);
      if (aligned && row <= count) {
        const std::int64_t rows = std::min(shape_[d] - index, count / row);
        counts[d] = static_cast<hsize_t>(rows);
        for (std::size_t faster = d + 1; faster < shape_.size(); ++faster) {
          counts[faster] = static_cast<hsize_t>(shape_[faster]);
        }
        taken = rows * row;
      }
      aligned = aligned && index == 0;
      rest /= shape_[d];
      row *= shape_[d];
    }
    return taken;
  }

  const std::vector<std::int64_t>& shape_;
};

void transfer_range(const Dataset& dataset, std::int64_t first, std::int64_t count, const Transfer& transfer) {
  const Handle file_space =
      owned(Handle::Kind::dataspace, H5Dget_space(dataset.id()), "read the shape of", dataset.place());
  if (dataset.shape().empty()) {
    transfer(H5S_ALL, H5S_ALL, 0);
    return;
  }
  std::int64_t done = 0;
  RangeBoxes(dataset.shape()).visit(first, count, [&](const auto& start, const auto& counts, std::int64_t elements) {
    const auto length = static_cast<hsize_t>(elements);
    const Handle memory_space =
        owned(Handle::Kind::dataspace, H5Screate_simple(1, &length, nullptr), "describe memory for", dataset.place());
    checked(H5Sselect_hyperslab(file_space.id(), H5S_SELECT_SET, start.data(), nullptr, counts.data(), nullptr),
            "select a part of", dataset.place());
    transfer(memory_space.id(), file_space.id(), done);
    done += elements;
  });
}

std::vector<std::int64_t> shape_of(hid_t dataset, std::string_view place) {
  const Handle space = owned(Handle::Kind::dataspace, H5Dget_space(dataset), "read the shape of", place);
  if (H5Sget_simple_extent_type(space.id()) == H5S_NULL) {
    throw DataError(one_line(fmt::format("cannot read {}", place), "it holds no data"));
  }
  const int rank = checked(H5Sget_simple_extent_ndims(space.id()), "read the rank of", place);
  std::vector<hsize_t> dims(static_cast<std::size_t>(rank));
  checked(H5Sget_simple_extent_dims(space.id(), dims.data(), nullptr), "read the shape of", place);
  return {dims.begin(), dims.end()};
}

}  // namespace

Dataset::Dataset(Handle handle, std::string place) : Object(std::move(handle), std::move(place)) {
  shape_ = shape_of(id(), this->place());
  const hssize_t points = [&] {
    const Handle space = owned(Handle::Kind::dataspace, H5Dget_space(id()), "read the shape of", this->place());
    return checked(H5Sget_simple_extent_npoints(space.id()), "count the elements of", this->place());
  }();
  elements_ = points;
  const Handle type = owned(Handle::Kind::datatype, H5Dget_type(id()), "read the type of", this->place());
  element_ = element_of_type(type.id(), this->place());
}

std::optional<std::uint64_t> Dataset::file_offset() const {
  be_quiet();
  const haddr_t offset = H5Dget_offset(id());
  if (offset == HADDR_UNDEF) return std::nullopt;
  return offset;
}

void Dataset::check_range(std::int64_t first, std::int64_t count, Element element, const char* attempt) const {
  if (element != element_) {
    throw DataError(one_line(fmt::format("cannot {} {}", attempt, place()),
                             fmt::format("its elements are {}, not {}", name_of(element_), name_of(element))));
  }
  if (first < 0 || count < 0 || first > elements_ || count > elements_ - first) {
    throw DataError(one_line(fmt::format("cannot {} {}", attempt, place()),
                             fmt::format("elements {} to {} are outside its {}", first, first + count, elements_)));
  }
}

void Dataset::write_raw(std::int64_t first, std::int64_t count, const void* source, Element element) {
  check_range(first, count, element, "write");
  if (count == 0) return;
  be_quiet();
  const Handle type = make_type(element, place());
  transfer_range(*this, first, count, [&](hid_t memory_space, hid_t file_space, std::int64_t done) {
    const auto* from = static_cast<const unsigned char*>(source) + static_cast<std::size_t>(done) * size_of(element);
    checked(H5Dwrite(id(), type.id(), memory_space, file_space, H5P_DEFAULT, from), "write", place());
  });
}

void Dataset::read_raw(std::int64_t first, std::int64_t count, void* target, Element element) const {
  check_range(first, count, element, "read");
  if (count == 0) return;
  be_quiet();
  const Handle type = make_type(element, place());
  transfer_range(*this, first, count, [&](hid_t memory_space, hid_t file_space, std::int64_t done) {
    auto* to = static_cast<unsigned char*>(target) + static_cast<std::size_t>(done) * size_of(element);
    checked(H5Dread(id(), type.id(), memory_space, file_space, H5P_DEFAULT, to), "read", place());
  });
}

}  // namespace lamina::hdf5
