#include "call.hpp"

#include <lamina/hdf5/file.hpp>

#include <fmt/format.h>

namespace lamina::hdf5 {

namespace {

// Locks off (they fail on parallel file systems), and closing a file with open objects is an error instead of a delay.
Handle access_properties(std::string_view place) {
  Handle list = owned(Handle::Kind::property_list, H5Pcreate(H5P_FILE_ACCESS), "make properties for", place);
  checked(H5Pset_libver_bounds(list.id(), H5F_LIBVER_V110, H5F_LIBVER_V110), "set the format of", place);
  checked(H5Pset_fclose_degree(list.id(), H5F_CLOSE_SEMI), "set the closing of", place);
#if H5_VERSION_GE(1, 10, 7)
  checked(H5Pset_file_locking(list.id(), false, true), "switch off locking of", place);
#endif
  return list;
}

}  // namespace

File File::create(const std::filesystem::path& path) {
  be_quiet();
  const Handle access = access_properties(path.string());
  Handle file = owned(Handle::Kind::file, H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.id()), "create",
                      path.string());
  return {std::move(file), path.string() + ":/"};
}

File File::open_read_only(const std::filesystem::path& path) {
  be_quiet();
  const Handle access = access_properties(path.string());
  Handle file = owned(Handle::Kind::file, H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.id()), "open", path.string());
  return {std::move(file), path.string() + ":/"};
}

bool File::looks_like_hdf5(const std::filesystem::path& path) {
  be_quiet();
  return H5Fis_hdf5(path.c_str()) > 0;
}

void File::flush() { checked(H5Fflush(id(), H5F_SCOPE_LOCAL), "flush", place()); }

}  // namespace lamina::hdf5
