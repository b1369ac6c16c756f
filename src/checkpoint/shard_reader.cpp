#include "staging.hpp"
#include "strict_names.hpp"

#include <algorithm>
#include <list>
#include <optional>
#include <unordered_map>

#include <lamina/base/check.hpp>
#include <lamina/checkpoint/proof.hpp>
#include <lamina/checkpoint/shard_reader.hpp>
#include <lamina/hdf5/file.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

constexpr std::size_t most_open_files = 32;

// Where a tensor lies in the checkpoint's own units.
struct TensorPlace {
  std::size_t unit = 0;
  std::size_t tensor = 0;
  std::int64_t flat_offset = 0;
};

struct HeldRange {
  FlatRange range;
  std::size_t file = 0;
  const SliceRecord* slice = nullptr;
};

// None where the slice was saved without that kind of state.
std::optional<std::uint64_t> checksum_of(const SliceRecord& slice, StateKind kind) {
  if (kind == StateKind::param) return slice.param;
  if (kind == StateKind::ema) return slice.ema;
  if (!slice.moments) return std::nullopt;
  return kind == StateKind::exp_avg ? slice.moments->exp_avg : slice.moments->exp_avg_sq;
}

}  // namespace

struct ShardReader::State {
  std::filesystem::path folder;
  Manifest manifest;
  std::unordered_map<std::string, TensorPlace> places;  // by name and alias
  std::vector<std::vector<HeldRange>> held;             // per unit, sorted by begin, no gaps
  std::vector<PackedTensors> second;                    // per unit: what exp_avg_sq holds
  std::list<std::pair<std::size_t, hdf5::File>> open;   // most recently used first
  std::vector<float> staging;
  std::uint64_t bytes_read = 0;

  explicit State(std::filesystem::path path) : folder(std::move(path)), manifest(read_manifest(folder)) {
    index_tensors();
    index_slices();
    for (std::size_t unit = 0; unit < manifest.units.size(); ++unit) second.push_back(second_moments(manifest, unit));
  }

  // Where a part of a unit lies among the values of a kind.
  [[nodiscard]] FlatRange places_of(std::size_t unit, FlatRange range, StateKind kind) const {
    return kind == StateKind::exp_avg_sq ? second[unit].packed(range) : range;
  }

  [[nodiscard]] bool keeps(const TensorPlace& place, StateKind kind) const {
    return kind != StateKind::exp_avg_sq || second[place.unit].holds(place.tensor);
  }

  void check_kept(const TensorPlace& place, StateKind kind) const {
    if (keeps(place, kind)) return;
    throw CheckpointError(
        one_line(fmt::format("cannot read {} of {} from {}", name_of(kind), spec(place).name, folder.string()),
                 "the optimizer keeps none for it"));
  }

  void index_tensors() {
    for (std::size_t unit = 0; unit < manifest.units.size(); ++unit) {
      const FlatLayout layout(manifest.units[unit], 1);
      for (std::size_t i = 0; i < layout.unit().tensors.size(); ++i) {
        const TensorSpec& tensor = layout.unit().tensors[i];
        const TensorPlace place{unit, i, layout.tensor_offset(i)};
        places.emplace(tensor.name, place);
        for (const std::string& alias : tensor.aliases) places.emplace(alias, place);
      }
    }
  }

  void index_slices() {
    held.resize(manifest.units.size());
    for (std::size_t file = 0; file < manifest.files.size(); ++file) {
      for (const SliceRecord& slice : manifest.files[file].slices) {
        if (slice.range.length() > 0) held[slice.unit].push_back({slice.range, file, &slice});
      }
    }
    for (auto& ranges : held) {
      std::sort(ranges.begin(), ranges.end(),
                [](const HeldRange& a, const HeldRange& b) { return a.range.begin < b.range.begin; });
    }
  }

  const hdf5::File& file(std::size_t index) {
    for (auto it = open.begin(); it != open.end(); ++it) {
      if (it->first != index) continue;
      open.splice(open.begin(), open, it);
      return open.front().second;
    }
    if (open.size() >= most_open_files) open.pop_back();
    open.emplace_front(index, hdf5::File::open_read_only(folder / manifest.files[index].name));
    return open.front().second;
  }

  hdf5::Dataset dataset(std::size_t index, const SliceRecord& slice, StateKind kind) {
    if (!checksum_of(slice, kind)) {
      throw CheckpointError(one_line(fmt::format("cannot read {} of unit {} from {}", name_of(kind),
                                                 manifest.units[slice.unit].name, folder.string()),
                                     "it was saved without that state"));
    }
    hdf5::Dataset result = file(index).open_group(manifest.units[slice.unit].name).open_dataset(name_of(kind));
    const std::int64_t expected = places_of(slice.unit, slice.range, kind).length();
    if (result.elements() != expected) {
      throw CheckpointError(one_line(
          fmt::format("cannot use {}", result.place()),
          fmt::format("it holds {} elements and the manifest says {}", result.elements(), expected), take_another));
    }
    return result;
  }

  // Elements [begin, begin + out.size()) of a unit of the checkpoint, all of them of one tensor.
  void read_flat(std::size_t unit, std::int64_t begin, StateKind kind, std::span<float> out) {
    const auto& ranges = held[unit];
    auto it = std::upper_bound(ranges.begin(), ranges.end(), begin,
                               [](std::int64_t at, const HeldRange& r) { return at < r.range.end; });
    while (!out.empty()) {
      require(it != ranges.end() && it->range.begin <= begin, "ShardReader: slices cover the unit");
      const auto count = std::min(out.size(), static_cast<std::size_t>(it->range.end - begin));
      const std::int64_t first = places_of(unit, {it->range.begin, begin}, kind).length();
      dataset(it->file, *it->slice, kind).read(first, out.first(count));
      bytes_read += count * sizeof(float);
      begin += static_cast<std::int64_t>(count);
      out = out.subspan(count);
      ++it;
    }
  }

  const TensorPlace& locate(const std::string& name) const {
    const auto it = places.find(name);
    if (it != places.end()) return it->second;
    throw CheckpointError(
        one_line(fmt::format("cannot load {}", name), fmt::format("{} does not hold it", folder.string())));
  }

  const TensorSpec& spec(const TensorPlace& place) const { return manifest.units[place.unit].tensors[place.tensor]; }

  void check_shape(const TensorPlace& place, const TensorSpec& wanted) const {
    if (spec(place).shape == wanted.shape) return;
    throw CheckpointError(one_line(
        fmt::format("cannot load {} from {}", wanted.name, folder.string()),
        fmt::format("its shape is {} there and {} here", shape_text(spec(place).shape), shape_text(wanted.shape)),
        "use the model it was saved from"));
  }

  void verify_slice(std::size_t index, const SliceRecord& slice, StateKind kind) {
    const hdf5::Dataset values = dataset(index, slice, kind);
    if (dataset_checksum(values, staging) == checksum_of(slice, kind)) return;
    throw CheckpointError(one_line(fmt::format("cannot use {}", values.place()),
                                   "its checksum does not match the manifest, so its data is damaged", take_another));
  }

  void verify_file(std::size_t index) {
    const ShardFileRecord& record = manifest.files[index];
    check_size(record.name, record.bytes);
    for (const SliceRecord& slice : record.slices) {
      for (const StateKind kind : all_state_kinds) {
        if (checksum_of(slice, kind)) verify_slice(index, slice, kind);
      }
    }
  }

  void verify_side_files() const {
    for (const SideFileRecord& record : manifest.side_files) {
      check_size(record.name, record.bytes);
      if (file_checksum(folder / record.name) == record.checksum) continue;
      throw CheckpointError(one_line(fmt::format("cannot use {}", (folder / record.name).string()),
                                     "its checksum does not match the manifest, so it was changed or damaged",
                                     take_another));
    }
  }

  void check_size(const std::string& name, std::uint64_t expected) const {
    const std::uint64_t bytes = std::filesystem::file_size(folder / name);
    if (bytes == expected) return;
    throw CheckpointError(one_line(fmt::format("cannot use {}", (folder / name).string()),
                                   fmt::format("it has {} bytes and the manifest says {}", bytes, expected),
                                   take_another));
  }
};

ShardReader::ShardReader(std::filesystem::path folder) : state_(std::make_unique<State>(std::move(folder))) {}
ShardReader::~ShardReader() = default;
ShardReader::ShardReader(ShardReader&&) noexcept = default;
ShardReader& ShardReader::operator=(ShardReader&&) noexcept = default;

const Manifest& ShardReader::manifest() const { return state_->manifest; }
const std::filesystem::path& ShardReader::folder() const { return state_->folder; }
std::uint64_t ShardReader::bytes_read() const { return state_->bytes_read; }

void ShardReader::check_units(std::span<const UnitSpec> units) const {
  std::vector<TensorSpec> stored;
  for (const UnitSpec& unit : state_->manifest.units) {
    stored.insert(stored.end(), unit.tensors.begin(), unit.tensors.end());
  }
  const std::string difference = compare_tensors(units, stored);
  if (difference.empty()) return;
  throw CheckpointError(
      one_line(fmt::format("cannot load {}", state_->folder.string()), difference, "use the model it was saved from"));
}

bool ShardReader::has(StateKind kind) const {
  for (const auto& ranges : state_->held) {
    for (const HeldRange& held : ranges) {
      if (!checksum_of(*held.slice, kind)) return false;
    }
  }
  return true;
}

bool ShardReader::keeps(const std::string& name, StateKind kind) const {
  return state_->keeps(state_->locate(name), kind);
}

void ShardReader::read(const FlatLayout& target, FlatRange range, StateKind kind, std::span<float> out) {
  require(static_cast<std::int64_t>(out.size()) == range.length(), "ShardReader: `out` is as long as the range");
  with_checkpoint_errors(state_->folder, [&] {
    for (const Span& span : target.spans(range)) {
      const TensorSpec& tensor = target.unit().tensors[span.tensor];
      const TensorPlace& place = state_->locate(tensor.name);
      state_->check_shape(place, tensor);
      state_->check_kept(place, kind);
      state_->read_flat(
          place.unit, place.flat_offset + span.tensor_offset, kind,
          out.subspan(static_cast<std::size_t>(span.flat_offset - range.begin), static_cast<std::size_t>(span.length)));
    }
  });
  const std::int64_t padding = std::clamp(target.elements() - range.begin, std::int64_t{0}, range.length());
  std::fill(out.begin() + padding, out.end(), 0.0f);
}

void ShardReader::read_tensor(const std::string& name, std::int64_t first, StateKind kind, std::span<float> out) {
  with_checkpoint_errors(state_->folder, [&] {
    const TensorPlace& place = state_->locate(name);
    state_->check_kept(place, kind);
    const std::int64_t elements = state_->spec(place).elements();
    const auto count = static_cast<std::int64_t>(out.size());
    require(first >= 0 && first <= elements && count <= elements - first, "ShardReader: a range inside the tensor");
    state_->read_flat(place.unit, place.flat_offset + first, kind, out);
  });
}

void ShardReader::verify_files(std::size_t first, std::size_t count) {
  require(first + count <= state_->manifest.files.size(), "ShardReader: files that the manifest lists");
  with_checkpoint_errors(state_->folder, [&] {
    for (std::size_t index = first; index < first + count; ++index) state_->verify_file(index);
    if (first == 0) state_->verify_side_files();
  });
}

void ShardReader::verify_all() { verify_files(0, state_->manifest.files.size()); }

FileShare file_share(std::size_t files, std::int64_t rank, std::int64_t world) {
  require(world >= 1 && rank >= 0 && rank < world, "file_share: a rank of the world");
  const auto r = static_cast<std::size_t>(rank), w = static_cast<std::size_t>(world);
  const std::size_t base = files / w, longer = files % w;
  return {r * base + std::min(r, longer), base + (r < longer ? 1 : 0)};
}

void refuse_without_average(const ShardReader& reader) {
  if (reader.has(StateKind::ema)) return;
  throw CheckpointError(one_line(fmt::format("cannot take the averaged weights of {}", reader.folder().string()),
                                 "it was saved without them: optim.ema_decay was 0", "take the trained weights"));
}

CheckpointTensors::CheckpointTensors(ShardReader& reader, StateKind kind) : reader_(reader), kind_(kind) {
  for (const UnitSpec& unit : reader.manifest().units) {
    for (const TensorSpec& tensor : unit.tensors) {
      if (reader.keeps(tensor.name, kind)) tensors_.push_back(tensor);
    }
  }
}

void CheckpointTensors::read(std::size_t index, std::int64_t first, std::span<float> out) {
  reader_.read_tensor(tensors_[index].name, first, kind_, out);
}

}  // namespace lamina
