#include "call.hpp"
#include "element_type.hpp"

#include <algorithm>

#include <lamina/base/check.hpp>
#include <lamina/hdf5/file.hpp>

#include <fmt/format.h>

namespace lamina::hdf5 {

namespace {

// Contiguous, allocated at once, never filled: space is reserved before the first byte and no element is written twice.
Handle dataset_properties(std::string_view place) {
  Handle list = owned(Handle::Kind::property_list, H5Pcreate(H5P_DATASET_CREATE), "make properties for", place);
  checked(H5Pset_layout(list.id(), H5D_CONTIGUOUS), "make contiguous", place);
  checked(H5Pset_alloc_time(list.id(), H5D_ALLOC_TIME_EARLY), "allocate early", place);
  checked(H5Pset_fill_time(list.id(), H5D_FILL_TIME_NEVER), "leave unfilled", place);
  return list;
}

Handle make_space(std::span<const std::int64_t> shape, std::string_view place) {
  if (shape.empty()) return owned(Handle::Kind::dataspace, H5Screate(H5S_SCALAR), "shape", place);
  const std::vector<hsize_t> dims(shape.begin(), shape.end());
  return owned(Handle::Kind::dataspace, H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr), "shape",
               place);
}

}  // namespace

std::string Group::place_of(const std::string& name) const {
  return place().ends_with('/') ? place() + name : place() + "/" + name;
}

Group Group::create_group(const std::string& name) {
  be_quiet();
  std::string where = place_of(name);
  Handle group = owned(Handle::Kind::group, H5Gcreate2(id(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                       "create group", where);
  return {std::move(group), std::move(where)};
}

Group Group::open_group(const std::string& name) const {
  be_quiet();
  std::string where = place_of(name);
  Handle group = owned(Handle::Kind::group, H5Gopen2(id(), name.c_str(), H5P_DEFAULT), "open group", where);
  return {std::move(group), std::move(where)};
}

Dataset Group::create_dataset(const std::string& name, Element element, std::span<const std::int64_t> shape) {
  require(std::all_of(shape.begin(), shape.end(), [](std::int64_t n) { return n >= 0; }),
          "hdf5: sizes are not negative");
  be_quiet();
  std::string where = place_of(name);
  const Handle type = make_type(element, where);
  const Handle space = make_space(shape, where);
  const Handle properties = dataset_properties(where);
  Handle dataset =
      owned(Handle::Kind::dataset,
            H5Dcreate2(id(), name.c_str(), type.id(), space.id(), H5P_DEFAULT, properties.id(), H5P_DEFAULT),
            "create dataset", where);
  return {std::move(dataset), std::move(where)};
}

Dataset Group::create_dataset(const std::string& name, Element element, std::int64_t elements) {
  return create_dataset(name, element, std::span<const std::int64_t>(&elements, 1));
}

Dataset Group::open_dataset(const std::string& name) const {
  be_quiet();
  std::string where = place_of(name);
  Handle dataset = owned(Handle::Kind::dataset, H5Dopen2(id(), name.c_str(), H5P_DEFAULT), "open dataset", where);
  return {std::move(dataset), std::move(where)};
}

bool Group::has(const std::string& name) const {
  be_quiet();
  if (checked(H5Lexists(id(), name.c_str(), H5P_DEFAULT), "look for", place_of(name)) == 0) return false;
  return H5Oexists_by_name(id(), name.c_str(), H5P_DEFAULT) > 0;
}

Group::Kind Group::kind_of(const std::string& name) const {
  be_quiet();
  const hid_t object = H5Oopen(id(), name.c_str(), H5P_DEFAULT);
  if (object < 0) return Kind::other;
  const H5I_type_t type = H5Iget_type(object);
  checked(H5Oclose(object), "close", place_of(name));
  if (type == H5I_GROUP) return Kind::group;
  return type == H5I_DATASET ? Kind::dataset : Kind::other;
}

std::vector<std::string> Group::children() const {
  be_quiet();
  H5G_info_t facts;
  checked(H5Gget_info(id(), &facts), "list", place());
  std::vector<std::string> names;
  for (hsize_t i = 0; i < facts.nlinks; ++i) {
    const ssize_t length =
        checked(H5Lget_name_by_idx(id(), ".", H5_INDEX_NAME, H5_ITER_INC, i, nullptr, 0, H5P_DEFAULT), "list", place());
    std::string name(static_cast<std::size_t>(length) + 1, '\0');
    checked(H5Lget_name_by_idx(id(), ".", H5_INDEX_NAME, H5_ITER_INC, i, name.data(), name.size(), H5P_DEFAULT), "list",
            place());
    name.pop_back();
    names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

void Group::write_text(const std::string& name, std::string_view text) {
  Dataset dataset = create_dataset(name, Element::u8, static_cast<std::int64_t>(text.size()));
  dataset.write_raw(0, static_cast<std::int64_t>(text.size()), text.data(), Element::u8);
  dataset.close();
}

std::string Group::read_text(const std::string& name) const {
  const Dataset dataset = open_dataset(name);
  std::string text(static_cast<std::size_t>(dataset.elements()), '\0');
  dataset.read_raw(0, dataset.elements(), text.data(), Element::u8);
  return text;
}

}  // namespace lamina::hdf5
