// A shard file's record as text, to be sent from rank to rank.
#pragma once

#include <string>

#include <lamina/checkpoint/manifest.hpp>

namespace lamina {

[[nodiscard]] std::string to_text(const ShardFileRecord& record);
[[nodiscard]] ShardFileRecord record_from_text(const std::string& text);

}  // namespace lamina
