// HDF5 files and groups: thin, owning, throwing.
//
// Files are created in the v110 format with file locks off (locks fail on NFS, Lustre and DVS), contiguous datasets, no
// filters, space allocated early and never filled. Objects must be closed before their file: close() of a file with
// open objects throws. HDF5 prints nothing itself. All calls throw DataError naming file, object, attempt and HDF5's
// reason. A file that was written is only trustworthy once close() returned, the file was fsynced, reopened and
// compared: HDF5 returns success for a flush and a close whose bytes never reached a full disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <lamina/hdf5/dataset.hpp>
#include <lamina/hdf5/object.hpp>

namespace lamina::hdf5 {

class Group : public Object {
 public:
  Group(Handle handle, std::string place) : Object(std::move(handle), std::move(place)) {}

  [[nodiscard]] Group create_group(const std::string& name);
  [[nodiscard]] Group open_group(const std::string& name) const;
  [[nodiscard]] Dataset create_dataset(const std::string& name, Element element, std::span<const std::int64_t> shape);
  [[nodiscard]] Dataset create_dataset(const std::string& name, Element element, std::int64_t elements);
  [[nodiscard]] Dataset open_dataset(const std::string& name) const;

  // Whether a link of this name (no slashes) leads to an object.
  [[nodiscard]] bool has(const std::string& name) const;
  enum class Kind { group, dataset, other };
  // What the link leads to; `other` also when it leads nowhere.
  [[nodiscard]] Kind kind_of(const std::string& name) const;
  // Names of the links, sorted by byte value.
  [[nodiscard]] std::vector<std::string> children() const;

  // Text of any length as a dataset of bytes.
  void write_text(const std::string& name, std::string_view text);
  [[nodiscard]] std::string read_text(const std::string& name) const;

 private:
  [[nodiscard]] std::string place_of(const std::string& name) const;
};

// The file's handle doubles as its root group.
class File : public Group {
 public:
  // Replaces what was at `path`.
  [[nodiscard]] static File create(const std::filesystem::path& path);
  [[nodiscard]] static File open_read_only(const std::filesystem::path& path);
  [[nodiscard]] static bool looks_like_hdf5(const std::filesystem::path& path);

  void flush();

 private:
  File(Handle handle, std::string place) : Group(std::move(handle), std::move(place)) {}
};

}  // namespace lamina::hdf5
