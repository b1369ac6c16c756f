#include "consolidate/export_weights.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include <lamina/base/error.hpp>
#include <lamina/base/file.hpp>
#include <lamina/base/hash.hpp>
#include <lamina/hdf5/file.hpp>
#include <lamina/safetensors/writer.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

constexpr std::int64_t piece_floats = std::int64_t{1} << 20;

using TakePiece = std::function<void(std::int64_t first, std::span<const float> values)>;

// Reads one tensor piece by piece; returns whether all its values are finite.
bool stream_tensor(TensorSource& source, std::size_t index, std::vector<float>& staging, const TakePiece& take) {
  const std::int64_t elements = source.tensors()[index].elements();
  bool finite = true;
  for (std::int64_t first = 0; first < elements; first += piece_floats) {
    const auto count = static_cast<std::size_t>(std::min(piece_floats, elements - first));
    if (staging.size() < count) staging.resize(count);
    const auto values = std::span(staging).first(count);
    source.read(index, first, values);
    finite = finite && std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
    take(first, values);
  }
  return finite;
}

// Calls export_one(source, index, name) for every tensor of every part and counts.
template <typename ExportOne>
void for_each_tensor(const std::vector<ExportPart>& parts, DType dtype, ExportResult& result, ExportOne&& export_one) {
  for (const ExportPart& part : parts) {
    for (std::size_t i = 0; i < part.source->tensors().size(); ++i) {
      const TensorSpec& tensor = part.source->tensors()[i];
      const std::string name = tensor.name + part.suffix;
      if (!export_one(*part.source, i, name)) result.not_finite.push_back(name);
      ++result.tensors;
      result.bytes += static_cast<std::uint64_t>(tensor.elements()) * size_of(dtype);
    }
  }
}

class Hdf5Export {
 public:
  Hdf5Export(std::filesystem::path path, DType dtype)
      : path_(std::move(path)),
        dtype_(dtype),
        element_(dtype == DType::bf16 ? hdf5::Element::bf16 : hdf5::Element::f32),
        file_(hdf5::File::create(path_)) {
    file_.write_attribute("format", "lamina weights");
    file_.write_attribute("dtype", hdf5::name_of(element_));
  }

  bool add(TensorSource& source, std::size_t index, const std::string& name) {
    hdf5::Dataset dataset = file_.create_dataset(name, element_, source.tensors()[index].shape);
    dataset.write_attribute("dtype", hdf5::name_of(element_));
    Xxh3Stream stream;
    const bool finite = stream_tensor(source, index, staging_, [&](std::int64_t first, std::span<const float> values) {
      bytes_.resize(std::max(bytes_.size(), values.size() * size_of(dtype_)));
      from_floats(dtype_, values.data(), bytes_.data(), values.size());
      stream.update(bytes_.data(), values.size() * size_of(dtype_));
      dataset.write_raw(first, static_cast<std::int64_t>(values.size()), bytes_.data(), element_);
    });
    dataset.close();
    written_.emplace_back(name, stream.digest());
    return finite;
  }

  // Success of every write proves little on a full disk: what was written must come back.
  void finish() {
    file_.close();
    sync_path(path_);
    const hdf5::File file = hdf5::File::open_read_only(path_);
    for (const auto& [name, expected] : written_) {
      const hdf5::Dataset dataset = file.open_dataset(name);
      Xxh3Stream stream;
      for (std::int64_t first = 0; first < dataset.elements(); first += piece_floats) {
        const std::int64_t count = std::min(piece_floats, dataset.elements() - first);
        dataset.read_raw(first, count, bytes_.data(), element_);
        stream.update(bytes_.data(), static_cast<std::size_t>(count) * size_of(dtype_));
      }
      if (stream.digest() == expected) continue;
      throw CheckpointError(one_line(fmt::format("cannot write {}", dataset.place()),
                                     "what was read back is not what was written",
                                     "check the disk and its free space"));
    }
  }

 private:
  std::filesystem::path path_;
  DType dtype_;
  hdf5::Element element_;
  hdf5::File file_;
  std::vector<float> staging_;
  std::vector<std::byte> bytes_;
  std::vector<std::pair<std::string, std::uint64_t>> written_;
};

}  // namespace

ExportResult export_safetensors(const std::filesystem::path& folder, const std::string& stem,
                                const std::vector<ExportPart>& parts, DType dtype, std::uint64_t max_file_bytes) {
  std::vector<TensorToWrite> headers;
  for (const ExportPart& part : parts) {
    for (const TensorSpec& tensor : part.source->tensors())
      headers.push_back({tensor.name + part.suffix, dtype, tensor.shape});
  }
  SafetensorsFolderWriter writer(folder, stem, std::move(headers), max_file_bytes, ExitCode::checkpoint);
  ExportResult result;
  std::vector<float> staging;
  for_each_tensor(parts, dtype, result, [&](TensorSource& source, std::size_t index, const std::string&) {
    return stream_tensor(source, index, staging, [&](std::int64_t, std::span<const float> v) { writer.write(v); });
  });
  writer.finish();
  result.files = writer.file_count();
  return result;
}

ExportResult export_hdf5(const std::filesystem::path& folder, const std::string& stem,
                         const std::vector<ExportPart>& parts, DType dtype) {
  ExportResult result;
  try {
    Hdf5Export output(folder / (stem + ".h5"), dtype);
    for_each_tensor(parts, dtype, result, [&](TensorSource& source, std::size_t index, const std::string& name) {
      return output.add(source, index, name);
    });
    output.finish();
  } catch (const DataError& error) {
    throw CheckpointError(error.what());
  }
  result.files = 1;
  return result;
}

}  // namespace lamina
