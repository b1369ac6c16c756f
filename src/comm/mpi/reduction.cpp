#include "reduction.hpp"

#include "accumulate.hpp"

#include <algorithm>

namespace lamina {

namespace {

constexpr int reduce_tag = 2;
constexpr std::int64_t most_segment = 256 * 1024;       // floats: 1 MiB messages are past the latency-bound range
constexpr std::int64_t most_staging = 8 * 1024 * 1024;  // floats, both halves together
constexpr std::int64_t least_segment = 1024;

// Halves of the staging for messages that come in, and for sums that go out. In rank order the peers' slots themselves
// are sent; only sums need a place of their own.
std::size_t incoming_buffers(const SumPlan& plan) { return 2 * plan.message_from.size(); }
std::size_t outgoing_buffers(const Routes& routes, SumOrder order) {
  return order == SumOrder::hierarchical ? 2 * routes.wards.size() : 0;
}

std::int64_t segment_elements(std::size_t buffers, std::int64_t largest_block) {
  const std::int64_t fitting =
      buffers == 0 ? most_segment
                   : std::clamp(most_staging / static_cast<std::int64_t>(buffers), least_segment, most_segment);
  return std::max<std::int64_t>(1, std::min(largest_block, fitting));
}

}  // namespace

std::uint64_t staging_bytes(const Topology& topology, SumOrder order, std::int64_t largest_block) {
  const std::size_t buffers =
      incoming_buffers(make_sum_plan(topology, order)) + outgoing_buffers(make_routes(topology), order);
  const std::size_t node_sums = order == SumOrder::hierarchical ? 1 : 0;
  return (buffers + node_sums) * static_cast<std::size_t>(segment_elements(buffers, largest_block)) * sizeof(float);
}

Reduction::Reduction(const mpi::Communicator& world, const Topology& topology, SumOrder order)
    : world_(world),
      topology_(topology),
      order_(order),
      routes_(make_routes(topology)),
      plan_(make_sum_plan(topology, order)) {}

std::size_t Reduction::outgoing_count() const { return outgoing_buffers(routes_, order_) / 2; }

void Reduction::allocate(std::int64_t largest_block) {
  segment_ = segment_elements(incoming_buffers(plan_) + outgoing_buffers(routes_, order_), largest_block);
  const auto segment = static_cast<std::size_t>(segment_);
  incoming_.resize(2 * plan_.message_from.size() * segment);
  outgoing_.resize(2 * outgoing_count() * segment);
  if (order_ == SumOrder::hierarchical) node_sum_.resize(segment);
}

float* Reduction::incoming(std::size_t buffer, std::size_t message) {
  return incoming_.data() + (buffer * plan_.message_from.size() + message) * static_cast<std::size_t>(segment_);
}

float* Reduction::outgoing(std::size_t buffer, std::size_t ward) {
  return outgoing_.data() + (buffer * outgoing_count() + ward) * static_cast<std::size_t>(segment_);
}

Reduction::Piece Reduction::piece_of(const Segment& segment, const Bucket& bucket, int owner) const {
  const std::int64_t block = topology_.block_of(owner) * bucket.block_elements;
  const std::int64_t begin = std::max(segment.begin, bucket.begin - block);
  const std::int64_t end = std::min({segment.begin + segment_, bucket.block_elements, bucket.end - block});
  return {begin, std::max<std::int64_t>(0, end - begin)};
}

std::vector<Reduction::Segment> Reduction::segments(const Bucket& bucket) const {
  std::vector<Segment> result;
  for (std::int64_t begin = 0; begin < bucket.block_elements; begin += segment_) {
    const Segment segment{begin, result.size() % 2};
    const auto has_part = [&](int owner) { return piece_of(segment, bucket, owner).length > 0; };
    if (has_part(topology_.rank()) || std::ranges::any_of(routes_.wards, has_part)) result.push_back(segment);
  }
  return result;
}

void Reduction::send_to_ward(const Segment& segment, const Bucket& bucket, std::span<const float* const> slots,
                             std::size_t ward) {
  const int to = routes_.wards[ward];
  const Piece piece = piece_of(segment, bucket, to);
  if (piece.length == 0) return;
  const std::int64_t offset = topology_.block_of(to) * bucket.block_elements + piece.begin;
  const auto length = static_cast<std::size_t>(piece.length);
  std::vector<const float*> sources;
  for (const float* slot : slots) sources.push_back(slot + offset);
  if (order_ == SumOrder::hierarchical) {
    const std::span<float> sum(outgoing(segment.buffer, ward), length);
    sum_of(sum, sources);
    sources = {sum.data()};
  }
  for (const float* source : sources) {
    sends_[segment.buffer].push_back(world_.send({source, length}, to, reduce_tag));
    floats_sent_ += length;
  }
}

void Reduction::post(const Segment& segment, const Bucket& bucket, std::span<const float* const> slots) {
  // The half's last messages must be gone before its memory is used again.
  world_.wait_all(sends_[segment.buffer], "a reduction's messages");
  sends_[segment.buffer].clear();
  receives_[segment.buffer].clear();
  const auto length = static_cast<std::size_t>(piece_of(segment, bucket, topology_.rank()).length);
  for (std::size_t message = 0; length > 0 && message < plan_.message_from.size(); ++message) {
    receives_[segment.buffer].push_back(
        world_.receive({incoming(segment.buffer, message), length}, plan_.message_from[message], reduce_tag));
  }
  for (std::size_t ward = 0; ward < routes_.wards.size(); ++ward) send_to_ward(segment, bucket, slots, ward);
}

void Reduction::add_up(const Segment& segment, const Bucket& bucket, std::span<const float* const> slots,
                       std::span<float> accumulator) {
  const Piece piece = piece_of(segment, bucket, topology_.rank());
  if (piece.length == 0) return;
  const std::int64_t offset = topology_.block_of(topology_.rank()) * bucket.block_elements + piece.begin;
  const auto length = static_cast<std::size_t>(piece.length);
  const std::span<float> target = accumulator.subspan(static_cast<std::size_t>(piece.begin), length);
  std::vector<const float*> terms;
  for (const Term& term : plan_.terms) {
    if (term.message >= 0) {
      terms.push_back(incoming(segment.buffer, static_cast<std::size_t>(term.message)));
      continue;
    }
    std::vector<const float*> local;
    for (const int l : term.local) local.push_back(slots[static_cast<std::size_t>(l)] + offset);
    if (order_ == SumOrder::hierarchical) {
      sum_of(std::span(node_sum_).first(length), local);
      terms.push_back(node_sum_.data());
    } else {
      terms.push_back(local.front());
    }
  }
  accumulate(target, terms);
}

void Reduction::run(std::span<const float* const> slots, std::int64_t begin, std::int64_t end,
                    std::span<float> accumulator) {
  const Bucket bucket{begin, end, static_cast<std::int64_t>(accumulator.size())};
  const std::vector<Segment> parts = segments(bucket);
  if (parts.empty()) return;
  post(parts.front(), bucket, slots);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i + 1 < parts.size()) post(parts[i + 1], bucket, slots);
    world_.wait_all(receives_[parts[i].buffer], "another node's gradients");
    add_up(parts[i], bucket, slots, accumulator);
  }
  for (auto& sends : sends_) {
    world_.wait_all(sends, "a reduction's messages");
    sends.clear();
  }
}

}  // namespace lamina
