// Files that are not what a reader wants, recognised by how they begin.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

namespace lamina::detail {

[[nodiscard]] bool looks_like_gzip(std::span<const std::byte> head);

// Throws DataError for compressed files, archives and tables: what it is and the command that makes it readable.
void refuse_foreign_kind(std::span<const std::byte> head, const std::string& name);

// The same for text that is not UTF-8 but UTF-16 or UTF-32, with or without a byte order mark.
void refuse_wide_text(std::span<const std::byte> head, const std::string& name);

// ".jsonl" of a.jsonl and of a.jsonl.gz.
[[nodiscard]] std::string text_extension(const std::filesystem::path& path);
// Whether the name says that the file holds text or JSON.
[[nodiscard]] bool is_text_name(const std::filesystem::path& path);

}  // namespace lamina::detail
