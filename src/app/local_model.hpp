// A whole model of a Hugging Face folder in this process, for generation and evaluation.
#pragma once

#include <filesystem>

#include <lamina/backends/backend.hpp>
#include <lamina/model/loaded_model.hpp>

namespace lamina {

// Throws DataError for a broken folder, UsageError when memory is short.
[[nodiscard]] LoadedModel load_model(const std::filesystem::path& folder, Device& device);

}  // namespace lamina
