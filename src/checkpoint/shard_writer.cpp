#include "staging.hpp"

#include <algorithm>
#include <set>

#include <lamina/base/check.hpp>
#include <lamina/base/file.hpp>
#include <lamina/base/hash.hpp>
#include <lamina/checkpoint/shard_writer.hpp>
#include <lamina/hdf5/file.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

std::span<const float> values_of(const ShardSlice& slice, StateKind kind) {
  switch (kind) {
    case StateKind::param:
      return slice.param;
    case StateKind::exp_avg:
      return slice.exp_avg;
    case StateKind::exp_avg_sq:
      return slice.exp_avg_sq;
    case StateKind::ema:
      return slice.ema;
  }
  return {};
}

// How many values of a kind the slice holds if it has any.
std::size_t length_of(const ShardSlice& slice, StateKind kind) {
  const bool packed = kind == StateKind::exp_avg_sq && slice.second != nullptr;
  return static_cast<std::size_t>((packed ? slice.second->packed(slice.range) : slice.range).length());
}

// A slice without elements has all there could be.
bool has(const ShardSlice& slice, StateKind kind) {
  return length_of(slice, kind) == 0 || !values_of(slice, kind).empty();
}

void check_slices(std::span<const UnitSpec> units, std::span<const ShardSlice> slices) {
  std::set<std::size_t> seen;
  for (const ShardSlice& slice : slices) {
    require(slice.unit < units.size() && seen.insert(slice.unit).second, "write_shard_file: one slice of each unit");
    const auto length = static_cast<std::size_t>(slice.range.length());
    require(slice.range.begin >= 0 && slice.range.end >= slice.range.begin &&
                slice.range.end <= units[slice.unit].elements(),
            "write_shard_file: a range inside its unit, without padding");
    require(slice.param.size() == length, "write_shard_file: as many values as the range is long");
    for (const StateKind kind : {StateKind::exp_avg, StateKind::exp_avg_sq, StateKind::ema}) {
      const std::size_t values = values_of(slice, kind).size();
      require(values == 0 || values == length_of(slice, kind), "write_shard_file: values for the range, or none");
    }
    require(slice.exp_avg_sq.empty() || !slice.exp_avg.empty(), "write_shard_file: exp_avg_sq comes with exp_avg");
  }
}

// Piece by piece, so that each byte is hashed while it is in the cache.
std::uint64_t write_values(hdf5::Group& group, StateKind kind, std::span<const float> values) {
  hdf5::Dataset dataset =
      group.create_dataset(name_of(kind), hdf5::Element::f32, static_cast<std::int64_t>(values.size()));
  dataset.write_attribute("dtype", hdf5::name_of(hdf5::Element::f32));
  Xxh3Stream stream;
  constexpr auto piece = static_cast<std::size_t>(staging_floats);
  for (std::size_t first = 0; first < values.size(); first += piece) {
    const auto part = values.subspan(first, std::min(piece, values.size() - first));
    stream.update(part.data(), part.size_bytes());
    dataset.write(static_cast<std::int64_t>(first), part);
  }
  dataset.close();
  return stream.digest();
}

void write_triples(hdf5::Group& group, const char* name, std::span<const std::int64_t> triples) {
  hdf5::Dataset spans = group.create_dataset(name, hdf5::Element::i64, static_cast<std::int64_t>(triples.size()));
  spans.write(0, triples);
  spans.close();
}

void write_spans(hdf5::Group& group, const UnitSpec& unit, const ShardSlice& slice) {
  std::vector<std::int64_t> all, second;
  std::string names;
  std::int64_t line = 0;
  for (const Span& span : FlatLayout(unit, 1).spans(slice.range)) {
    const std::int64_t triple[] = {line++, span.tensor_offset, span.length};
    all.insert(all.end(), std::begin(triple), std::end(triple));
    if (slice.second != nullptr && slice.second->holds(span.tensor)) {
      second.insert(second.end(), std::begin(triple), std::end(triple));
    }
    names += unit.tensors[span.tensor].name + "\n";
  }
  write_triples(group, "spans", all);
  if (slice.second != nullptr && !slice.second->whole()) write_triples(group, "exp_avg_sq_spans", second);
  group.write_text("tensor_names", names);
}

SliceRecord write_slice(hdf5::File& file, const UnitSpec& unit, const ShardSlice& slice) {
  require(unit.name.find('/') == std::string::npos, "write_shard_file: unit names have no slash");
  hdf5::Group group = file.create_group(unit.name);
  group.write_attribute("begin", slice.range.begin);
  group.write_attribute("end", slice.range.end);
  write_spans(group, unit, slice);
  SliceRecord record;
  record.unit = slice.unit;
  record.range = slice.range;
  record.param = write_values(group, StateKind::param, slice.param);
  if (has(slice, StateKind::exp_avg)) {
    record.moments.emplace().exp_avg = write_values(group, StateKind::exp_avg, slice.exp_avg);
    if (has(slice, StateKind::exp_avg_sq)) {
      record.moments->exp_avg_sq = write_values(group, StateKind::exp_avg_sq, slice.exp_avg_sq);
    }
  }
  if (!slice.ema.empty()) record.ema = write_values(group, StateKind::ema, slice.ema);
  group.close();
  return record;
}

void compare(const hdf5::Group& group, StateKind kind, std::uint64_t expected, std::vector<float>& staging) {
  const hdf5::Dataset dataset = group.open_dataset(name_of(kind));
  if (dataset_checksum(dataset, staging) == expected) return;
  throw CheckpointError(one_line(fmt::format("cannot save {}", dataset.place()),
                                 "what was read back is not what was written",
                                 "check the file system's health and free space"));
}

// A full disk can leave a file whose writes, flush and close all succeeded: only reading it back tells.
void prove(const std::filesystem::path& path, std::span<const UnitSpec> units, const ShardFileRecord& record) {
  const hdf5::File file = hdf5::File::open_read_only(path);
  std::vector<float> staging;
  for (const SliceRecord& slice : record.slices) {
    const hdf5::Group group = file.open_group(units[slice.unit].name);
    compare(group, StateKind::param, slice.param, staging);
    if (slice.ema) compare(group, StateKind::ema, *slice.ema, staging);
    if (!slice.moments) continue;
    compare(group, StateKind::exp_avg, slice.moments->exp_avg, staging);
    if (slice.moments->exp_avg_sq) compare(group, StateKind::exp_avg_sq, *slice.moments->exp_avg_sq, staging);
  }
}

}  // namespace

std::string shard_file_name(std::int64_t rank) { return fmt::format("rank_{:05}.h5", rank); }

ShardFileRecord write_shard_file(const std::filesystem::path& folder, std::int64_t rank,
                                 std::span<const UnitSpec> units, std::span<const ShardSlice> slices) {
  check_slices(units, slices);
  ShardFileRecord record;
  record.name = shard_file_name(rank);
  const std::filesystem::path path = folder / record.name;
  with_checkpoint_errors(path, [&] {
    hdf5::File file = hdf5::File::create(path);
    file.write_attribute("format", "lamina shard");
    file.write_attribute("version", Manifest::current_version);
    file.write_attribute("rank", rank);
    for (const ShardSlice& slice : slices) record.slices.push_back(write_slice(file, units[slice.unit], slice));
    file.close();
    sync_path(path);
    prove(path, units, record);
    record.bytes = std::filesystem::file_size(path);
  });
  return record;
}

}  // namespace lamina
