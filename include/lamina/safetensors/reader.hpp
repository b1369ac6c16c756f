// Reads ranges of tensors from safetensors files and folders, as floats.
//
// Only the bytes asked for are read (pread), counted in bytes_read. A conversion from 16 bits goes through a block of
// at most 1 MiB. Not thread-safe. Errors are DataErrors that name file and tensor.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include <lamina/safetensors/header.hpp>

namespace lamina {

class SafetensorsFile {
 public:
  // Opens the file and checks its header.
  explicit SafetensorsFile(std::filesystem::path path);
  ~SafetensorsFile();
  SafetensorsFile(SafetensorsFile&& other) noexcept;
  SafetensorsFile& operator=(SafetensorsFile&&) = delete;
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] const SafetensorsHeader& header() const { return header_; }

  // Elements [first, first + out.size()) of tensor `index` of the header, converted to float.
  void read(std::size_t index, std::int64_t first, std::span<float> out);
  [[nodiscard]] std::uint64_t bytes_read() const { return bytes_read_; }

 private:
  void read_bytes(std::uint64_t offset, void* target, std::size_t count);

  std::filesystem::path path_;
  int descriptor_ = -1;
  SafetensorsHeader header_;
  std::vector<std::byte> staging_;
  std::uint64_t bytes_read_ = 0;
};

// FOLDER/STEM.safetensors, or FOLDER/STEM.safetensors.index.json and the files it names. When both exist the single
// file counts, as in transformers. Strict both ways: the index names exactly the tensors that the files hold, each in
// its file.
class SafetensorsFolder {
 public:
  explicit SafetensorsFolder(const std::filesystem::path& folder, const std::string& stem = "model");

  // Whether the folder holds such files at all.
  [[nodiscard]] static bool present(const std::filesystem::path& folder, const std::string& stem = "model");

  struct Place {
    std::size_t file = 0, entry = 0;
  };
  [[nodiscard]] const std::vector<SafetensorsFile>& files() const { return files_; }
  // Every tensor, file by file, in the order of their bytes.
  [[nodiscard]] const std::vector<Place>& places() const { return places_; }
  [[nodiscard]] const SafetensorsEntry& entry(Place place) const;
  // Null when there is none of that name.
  [[nodiscard]] const Place* find(const std::string& name) const;
  void read(Place place, std::int64_t first, std::span<float> out);
  [[nodiscard]] std::uint64_t bytes_read() const;

 private:
  void add_file(const std::filesystem::path& path);
  void open_index(const std::filesystem::path& folder, const std::filesystem::path& index);

  std::vector<SafetensorsFile> files_;
  std::vector<Place> places_;
  std::unordered_map<std::string, Place> by_name_;
};

}  // namespace lamina
