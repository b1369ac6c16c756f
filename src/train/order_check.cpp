#include <algorithm>

#include <lamina/base/error.hpp>
#include <lamina/train/order_check.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

using UnitName = std::function<std::string(std::size_t)>;

std::string describe(const std::vector<CollectiveOrder::Entry>& entries, std::size_t position,
                     const UnitName& unit_name) {
  if (position >= entries.size()) return "nothing more";
  return fmt::format("{} {}", name_of(entries[position].kind), unit_name(entries[position].unit));
}

}  // namespace

void check_collective_order(const mpi::Communicator& world, const CollectiveOrder& order, const UnitName& unit_name) {
  const auto hash = static_cast<std::int64_t>(order.hash());
  const std::vector<std::int64_t> hashes = world.all_gather(std::span(&hash, 1), "the order of collectives");
  const auto other = std::ranges::find_if(hashes, [&](std::int64_t h) { return h != hashes.front(); });
  if (other == hashes.end()) return;
  const auto rank = static_cast<std::size_t>(other - hashes.begin());
  const std::vector<std::string> texts = world.all_gather(order.to_text(), "the differing orders of collectives");
  const auto first = CollectiveOrder::from_text(texts.front()).entries(),
             second = CollectiveOrder::from_text(texts[rank]).entries();
  const auto position = static_cast<std::size_t>(std::ranges::mismatch(first, second).in1 - first.begin());
  throw mpi::AgreedError(ExitCode::internal,
                         one_line(fmt::format("ranks have called collectives in different orders: operation {} since "
                                              "the last comparison was '{}' on rank 0 "
                                              "and '{}' on rank {}",
                                              position + 1, describe(first, position, unit_name),
                                              describe(second, position, unit_name), rank),
                                  "data of this step, or of what came before it, may be mixed up",
                                  "please report it; the last checkpoint is sound"));
}

}  // namespace lamina
