// The reduction of one unit's gradients into this rank's block, in segments, so that staging stays small.
#pragma once

#include "routes.hpp"

#include <functional>
#include <span>
#include <vector>

#include <lamina/comm/fabric.hpp>
#include <lamina/mpi/communicator.hpp>

namespace lamina {

// Bytes of a rank's staging for units with blocks up to `largest_block`.
[[nodiscard]] std::uint64_t staging_bytes(const Topology& topology, SumOrder order, std::int64_t largest_block);

class Reduction {
 public:
  Reduction(const mpi::Communicator& world, const Topology& topology, SumOrder order);

  // Staging for segments; called once. block_elements: of the largest unit.
  void allocate(std::int64_t largest_block);

  // accumulator += the part of all gradients of my block that lies in [begin, end) of the unit's flat buffer. slots[l]:
  // the gradient of local rank l (all elements of the unit).
  void run(std::span<const float* const> slots, std::int64_t begin, std::int64_t end, std::span<float> accumulator);

  [[nodiscard]] std::uint64_t floats_sent() const { return floats_sent_; }

 private:
  // A bucket: a range of the unit's flat buffer, which is cut into equal blocks.
  struct Bucket {
    std::int64_t begin = 0, end = 0;
    std::int64_t block_elements = 0;
  };
  // What of a block lies in both a bucket and a segment, in elements from the block's beginning.
  struct Piece {
    std::int64_t begin = 0, length = 0;
  };
  struct Segment {
    std::int64_t begin = 0;  // within every block
    std::size_t buffer = 0;  // which half of the staging
  };
  [[nodiscard]] std::size_t outgoing_count() const;
  [[nodiscard]] Piece piece_of(const Segment& segment, const Bucket& bucket, int owner) const;
  // Segments that hold something of the bucket for this rank or its wards.
  [[nodiscard]] std::vector<Segment> segments(const Bucket& bucket) const;
  void post(const Segment& segment, const Bucket& bucket, std::span<const float* const> slots);
  void send_to_ward(const Segment& segment, const Bucket& bucket, std::span<const float* const> slots,
                    std::size_t ward);
  void add_up(const Segment& segment, const Bucket& bucket, std::span<const float* const> slots,
              std::span<float> accumulator);
  [[nodiscard]] float* incoming(std::size_t buffer, std::size_t message);
  [[nodiscard]] float* outgoing(std::size_t buffer, std::size_t ward);

  const mpi::Communicator& world_;
  const Topology& topology_;
  SumOrder order_;
  Routes routes_;
  SumPlan plan_;
  std::int64_t segment_ = 0;
  std::vector<float> incoming_, outgoing_, node_sum_;
  std::vector<mpi::Request> receives_[2], sends_[2];
  std::uint64_t floats_sent_ = 0;
};

}  // namespace lamina
