#include <set>

#include <lamina/base/error.hpp>
#include <lamina/base/file.hpp>
#include <lamina/safetensors/reader.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

std::filesystem::path single_file(const std::filesystem::path& folder, const std::string& stem) {
  return folder / (stem + ".safetensors");
}
std::filesystem::path index_file(const std::filesystem::path& folder, const std::string& stem) {
  return folder / (stem + ".safetensors.index.json");
}

}  // namespace

bool SafetensorsFolder::present(const std::filesystem::path& folder, const std::string& stem) {
  std::error_code error;
  return std::filesystem::exists(single_file(folder, stem), error) ||
         std::filesystem::exists(index_file(folder, stem), error);
}

SafetensorsFolder::SafetensorsFolder(const std::filesystem::path& folder, const std::string& stem) {
  std::error_code error;  // a folder that cannot be searched holds nothing for us
  if (std::filesystem::exists(single_file(folder, stem), error)) {
    add_file(single_file(folder, stem));
  } else if (std::filesystem::exists(index_file(folder, stem), error)) {
    open_index(folder, index_file(folder, stem));
  } else {
    throw DataError(one_line(fmt::format("cannot read weights from {}", folder.string()),
                             fmt::format("it holds neither {0}.safetensors nor {0}.safetensors.index.json", stem),
                             "save the model as safetensors"));
  }
}

void SafetensorsFolder::add_file(const std::filesystem::path& path) {
  files_.emplace_back(path);
  const auto& tensors = files_.back().header().tensors;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Place place{files_.size() - 1, i};
    if (!by_name_.emplace(tensors[i].name, place).second) {
      throw DataError(one_line(fmt::format("cannot use tensor \"{}\" of {}", tensors[i].name, path.string()),
                               "another file of the folder holds it too"));
    }
    places_.push_back(place);
  }
}

void SafetensorsFolder::open_index(const std::filesystem::path& folder, const std::filesystem::path& index) {
  const auto listed = parse_safetensors_index(read_file(index), index.string());
  std::set<std::string> names;
  for (const auto& [tensor, file] : listed) names.insert(file);
  for (const std::string& name : names) add_file(folder / name);
  for (const auto& [tensor, file] : listed) {
    const Place* place = find(tensor);
    if (place == nullptr || files_[place->file].path().filename() != file) {
      throw DataError(one_line(fmt::format("cannot use {}", index.string()),
                               fmt::format("it says that {} holds tensor \"{}\", which it does not", file, tensor)));
    }
  }
  for (const Place place : places_) {
    if (!listed.contains(entry(place).name)) {
      throw DataError(one_line(fmt::format("cannot use {}", files_[place.file].path().string()),
                               fmt::format("its tensor \"{}\" is not in the index", entry(place).name)));
    }
  }
}

const SafetensorsEntry& SafetensorsFolder::entry(Place place) const {
  return files_[place.file].header().tensors[place.entry];
}

const SafetensorsFolder::Place* SafetensorsFolder::find(const std::string& name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : &it->second;
}

void SafetensorsFolder::read(Place place, std::int64_t first, std::span<float> out) {
  files_[place.file].read(place.entry, first, out);
}

std::uint64_t SafetensorsFolder::bytes_read() const {
  std::uint64_t sum = 0;
  for (const SafetensorsFile& file : files_) sum += file.bytes_read();
  return sum;
}

}  // namespace lamina
