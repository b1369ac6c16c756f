#include <algorithm>

#include <lamina/base/check.hpp>
#include <lamina/base/file.hpp>
#include <lamina/safetensors/writer.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace lamina {

namespace {

std::vector<std::vector<TensorToWrite>> split(std::vector<TensorToWrite> tensors, std::uint64_t max_file_bytes) {
  std::vector<std::vector<TensorToWrite>> parts(1);
  std::uint64_t bytes = 0;
  for (TensorToWrite& tensor : tensors) {
    if (!parts.back().empty() && bytes + tensor.bytes() > max_file_bytes) {
      parts.emplace_back();
      bytes = 0;
    }
    bytes += tensor.bytes();
    parts.back().push_back(std::move(tensor));
  }
  return parts;
}

}  // namespace

SafetensorsFolderWriter::SafetensorsFolderWriter(std::filesystem::path folder, std::string stem,
                                                 std::vector<TensorToWrite> tensors, std::uint64_t max_file_bytes,
                                                 ExitCode code)
    : folder_(std::move(folder)),
      stem_(std::move(stem)),
      code_(code),
      parts_(split(std::move(tensors), max_file_bytes)) {
  next_file();
}

SafetensorsFolderWriter::~SafetensorsFolderWriter() = default;

std::string SafetensorsFolderWriter::file_name(std::size_t part) const {
  if (parts_.size() == 1) return stem_ + ".safetensors";
  return fmt::format("{}-{:05}-of-{:05}.safetensors", stem_, part + 1, parts_.size());
}

void SafetensorsFolderWriter::next_file() {
  current_ = std::make_unique<SafetensorsFileWriter>(folder_ / file_name(part_), parts_[part_], code_);
}

void SafetensorsFolderWriter::write(std::span<const float> values) {
  while (!values.empty()) {
    if (current_->missing() == 0) {
      require(part_ + 1 < parts_.size(), "SafetensorsFolderWriter: no more elements than declared");
      current_->finish();
      ++part_;
      next_file();
      continue;
    }
    const std::size_t count = std::min(values.size(), static_cast<std::size_t>(current_->missing()));
    current_->write(values.first(count));
    values = values.subspan(count);
  }
}

void SafetensorsFolderWriter::finish() {
  current_->finish();
  while (++part_ < parts_.size()) {  // files of empty tensors only
    next_file();
    current_->finish();
  }
  if (parts_.size() > 1) write_index();
}

void SafetensorsFolderWriter::write_index() const {
  std::uint64_t total = 0;
  nlohmann::json names = nlohmann::json::object();
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    for (const TensorToWrite& tensor : parts_[part]) {
      names[tensor.name] = file_name(part);
      total += tensor.bytes();
    }
  }
  nlohmann::ordered_json index;
  index["metadata"] = {{"total_size", total}};
  index["weight_map"] = names;
  write_file_atomically(folder_ / (stem_ + ".safetensors.index.json"), index.dump(2) + "\n", code_);
}

}  // namespace lamina
