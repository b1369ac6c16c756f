#include "inspect/describe.hpp"
#include "support/table.hpp"

#include <lamina/base/error.hpp>
#include <lamina/base/text.hpp>
#include <lamina/hdf5/file.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace lamina {

namespace {

std::string describe_attributes(const hdf5::Object& object) {
  std::vector<std::string> parts;
  for (const std::string& name : object.attributes()) parts.push_back(name + " = " + object.attribute_text(name));
  return fmt::format("{}", fmt::join(parts, ", "));
}

void add_dataset(const hdf5::Group& group, const std::string& link, const std::string& name, Table& table) {
  const hdf5::Dataset dataset = group.open_dataset(link);
  const auto bytes = static_cast<std::uint64_t>(dataset.elements()) * hdf5::size_of(dataset.element());
  table.add({name, std::string(hdf5::name_of(dataset.element())), fmt::format("[{}]", fmt::join(dataset.shape(), ", ")),
             human_bytes(bytes), describe_attributes(dataset)});
}

// One object that cannot be read does not hide the others.
void try_add_dataset(const hdf5::Group& group, const std::string& link, const std::string& name, Table& table) {
  try {
    add_dataset(group, link, name, table);
  } catch (const DataError& error) {
    table.add({name, "unreadable", "", "", error.what()});
  }
}

// Hard links may form cycles: a depth limit ends them.
void add_group(const hdf5::Group& group, const std::string& prefix, int depth, Table& table) {
  constexpr int deepest = 16;
  if (depth > deepest) return table.add({prefix + "...", "", "", "", ""});
  for (const std::string& name : group.children()) {
    const std::string full = prefix + name;
    switch (group.kind_of(name)) {
      case hdf5::Group::Kind::group: {
        const hdf5::Group child = group.open_group(name);
        table.add({full + "/", "group", "", "", describe_attributes(child)});
        add_group(child, full + "/", depth + 1, table);
        break;
      }
      case hdf5::Group::Kind::dataset:
        try_add_dataset(group, name, full, table);
        break;
      case hdf5::Group::Kind::other:
        table.add({full, "other", "", "", ""});
        break;
    }
  }
}

}  // namespace

std::string describe_hdf5(const std::filesystem::path& path) {
  const hdf5::File file = hdf5::File::open_read_only(path);
  Table table({"name", "type", "shape", "size>", "attributes"});
  table.add({"/", "group", "", "", describe_attributes(file)});
  add_group(file, "/", 0, table);
  return fmt::format("HDF5 file {} ({})\n\n{}", path.string(), human_bytes(std::filesystem::file_size(path)),
                     table.text());
}

}  // namespace lamina
