// Text of a .txt, .jsonl or .json file, plain or gzip, read with bounded memory.
#pragma once

#include "gzip_stream.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <lamina/data/tokenize_files.hpp>

namespace lamina::detail {

// Turns the text of a JSON list into lines, one an element, with all checks of the list itself; what the elements hold
// is for their reader. Throws DataError.
class JsonListLines {
 public:
  explicit JsonListLines(std::string name) : name_(std::move(name)) {}
  // Appends what `text`, the next part of the list from its '[' on, makes.
  void add(std::string_view text, std::string& lines);
  // The text is at its end: so must be the list.
  void end() const;

 private:
  void add_structure(char c, std::string& lines);
  void end_element(bool last);
  [[noreturn]] void refuse(std::string_view problem) const;

  std::string name_;
  std::uint64_t element_ = 1;
  std::size_t depth_ = 0;
  bool in_text_ = false;    // between double quotes
  bool escaped_ = false;    // behind a backslash
  bool has_value_ = false;  // of the current element
  bool closed_ = false;
};

class TextInput {
 public:
  // Opens the file and looks at its beginning. Throws DataError for kinds of files that are no text, and names them;
  // UsageError if `format` is automatic and the name says nothing.
  TextInput(const std::filesystem::path& path, TextFormat format);

  [[nodiscard]] const std::string& name() const { return stream_.file().name(); }
  [[nodiscard]] TextFormat format() const { return format_; }
  // Whether lines are elements of a JSON list.
  [[nodiscard]] bool is_list() const { return list_.has_value(); }
  // "NAME:12", or "NAME: element 12" of a list.
  [[nodiscard]] std::string place_of_line(std::size_t line) const;
  [[nodiscard]] std::uint64_t file_bytes() const { return stream_.file().size(); }
  [[nodiscard]] std::uint64_t taken() const { return stream_.taken(); }  // of file_bytes
  [[nodiscard]] bool at_end() const { return stream_.at_end() && head_.empty(); }

  // Appends about `bytes` bytes, nothing at the end.
  void read(std::size_t bytes, std::string& out);

 private:
  GzipStream stream_;
  TextFormat format_;
  std::string head_;  // read, but not handed out
  std::optional<JsonListLines> list_;
};

}  // namespace lamina::detail
