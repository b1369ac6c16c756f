// Small files, whole: read, and written so that a reader sees the old or the new content, never a part.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include <lamina/base/error.hpp>

namespace lamina {

// The whole content. Throws DataError naming the path and the system's reason.
[[nodiscard]] std::string read_file(const std::filesystem::path& path);

// Throws DataError when there is no such folder of a model, and for a folder of a run or a checkpoint, naming the way
// to a model. A name that reads like one of the Hugging Face hub
// ("org/name") is told from a path: nothing is downloaded, and the message says how to fetch it.
void require_model_folder(const std::filesystem::path& folder);

// Writes to a temporary name beside `path`, fsyncs, renames, fsyncs the folder. Throws Error with `code` naming path
// and reason; the old content, if any, is then still there.
void write_file_atomically(const std::filesystem::path& path, std::string_view content, ExitCode code);

// fsync of a file or folder that exists. Throws std::system_error.
void sync_path(const std::filesystem::path& path);

}  // namespace lamina
