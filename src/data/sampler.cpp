#include <algorithm>
#include <cmath>

#include <lamina/base/check.hpp>
#include <lamina/base/error.hpp>
#include <lamina/base/random.hpp>
#include <lamina/data/sampler.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

constexpr std::uint64_t whole = std::uint64_t{1} << 32;

// floor(index * share / 2^32) without overflow, for share <= 2^32.
std::uint64_t taken_before(std::uint64_t index, std::uint64_t share) {
  return (index >> 32) * share + (((index & (whole - 1)) * share) >> 32);
}

}  // namespace

std::string_view name_of(LastBatch last_batch) {
  switch (last_batch) {
    case LastBatch::wrap:
      return "wrap";
    case LastBatch::drop:
      return "drop";
    case LastBatch::pad:
      return "pad";
  }
  return "?";
}

std::uint64_t samples_an_epoch(std::uint64_t windows, const EpochEnd& end) {
  if (end.last_batch == LastBatch::wrap) return windows;
  const std::uint64_t batch = end.global_batch, rest = windows % batch;
  if (rest == 0) return windows;
  return end.last_batch == LastBatch::drop ? windows - rest : windows - rest + batch;
}

DataSampler::DataSampler(std::uint64_t seed, std::span<const SampleStream> streams, const EpochEnd& end)
    : seed_(seed), order_(seed) {
  require(!streams.empty(), "a sampler has a stream");
  require(end.global_batch >= 1 && (streams.size() == 1 || end.last_batch == LastBatch::wrap),
          "several streams have no common end of an epoch");
  double left = 0;
  for (const SampleStream& stream : streams) {
    require(stream.windows >= 1 && stream.weight > 0 && std::isfinite(stream.weight),
            "streams have windows and a weight");
    left += stream.weight;
  }
  for (std::size_t i = 0; i < streams.size(); ++i) {
    const double exact = std::ldexp(std::min(1.0, streams[i].weight / left), 32);
    const std::uint64_t share =
        std::clamp(static_cast<std::uint64_t>(std::llround(exact)), std::uint64_t{1}, whole - 1);
    const std::uint64_t epoch = samples_an_epoch(streams[i].windows, end);
    require(epoch >= 1, "an epoch has samples");
    streams_.push_back({streams[i].windows, epoch, i + 1 == streams.size() ? whole : share});
    left -= streams[i].weight;
  }
}

void DataSampler::begin_anew(std::uint64_t times) {
  order_ = times == 0 ? seed_ : stream_key(seed_, fmt::format("data order/anew {}", times));
}

Draw DataSampler::at(std::uint64_t sample) const {
  require(sample >> 63 == 0, "sample indices stay below 2^63");
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    const Stream& stream = streams_[i];
    const std::uint64_t before = taken_before(sample, stream.share);
    if (taken_before(sample + 1, stream.share) == before) {
      sample -= before;  // its index among the samples that this stream leaves
      continue;
    }
    const std::uint64_t epoch = before / stream.epoch, place = before % stream.epoch;
    if (place >= stream.windows) return {i, 0, epoch, true};
    const std::uint64_t key = stream_key(order_, fmt::format("data order/stream {}/epoch {}", i, epoch));
    return {i, permute_index(key, stream.windows, place), epoch};
  }
  throw InternalError("the last stream takes every sample");
}

}  // namespace lamina
