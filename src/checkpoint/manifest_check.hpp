// Whether what a manifest says can be true.
#pragma once

#include <string>

#include <lamina/checkpoint/manifest.hpp>

namespace lamina {

// Throws CheckpointError: shapes that overflow, names that repeat, file names that leave the folder, slices that leave
// elements out or hold them twice.
void check_manifest(const Manifest& manifest, const std::string& where);

}  // namespace lamina
