#include "exchange.hpp"

#include "message_pieces.hpp"

#include <vector>

#include <lamina/base/check.hpp>

namespace lamina {

namespace {

constexpr int exchange_tag = 3;

}  // namespace

std::uint64_t exchange_floats(const mpi::Communicator& world, const Topology& topology,
                              std::span<const FloatSend> sends, std::span<const FloatReceive> receives) {
  std::vector<mpi::Request> messages;
  std::uint64_t to_other_nodes = 0;
  for (const FloatReceive& receive : receives) {
    require(receive.from != topology.rank(), "Fabric: a rank does not exchange with itself");
    in_message_pieces(receive.data,
                      [&](auto piece) { messages.push_back(world.receive(piece, receive.from, exchange_tag)); });
  }
  for (const FloatSend& send : sends) {
    require(send.to != topology.rank(), "Fabric: a rank does not exchange with itself");
    in_message_pieces(send.data, [&](auto piece) { messages.push_back(world.send(piece, send.to, exchange_tag)); });
    if (topology.node_of(send.to) != topology.node()) to_other_nodes += send.data.size();
  }
  world.wait_all(messages, "an exchange between ranks");
  return to_other_nodes;
}

}  // namespace lamina
