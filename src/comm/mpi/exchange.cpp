#include "exchange.hpp"

#include <algorithm>
#include <vector>

#include <lamina/base/check.hpp>

namespace lamina {

namespace {

constexpr int exchange_tag = 3;
constexpr std::size_t most_message = std::size_t{1} << 28;  // floats: counts in MPI are ints

// post(piece) for pieces of `data` that fit one message; both ends cut alike.
template <typename Data, typename Post>
void in_pieces(Data data, Post&& post) {
  for (std::size_t begin = 0; begin < data.size(); begin += most_message) {
    post(data.subspan(begin, std::min(most_message, data.size() - begin)));
  }
}

}  // namespace

std::uint64_t exchange_floats(const mpi::Communicator& world, const Topology& topology,
                              std::span<const FloatSend> sends, std::span<const FloatReceive> receives) {
  std::vector<mpi::Request> messages;
  std::uint64_t to_other_nodes = 0;
  for (const FloatReceive& receive : receives) {
    require(receive.from != topology.rank(), "Fabric: a rank does not exchange with itself");
    in_pieces(receive.data, [&](auto piece) { messages.push_back(world.receive(piece, receive.from, exchange_tag)); });
  }
  for (const FloatSend& send : sends) {
    require(send.to != topology.rank(), "Fabric: a rank does not exchange with itself");
    in_pieces(send.data, [&](auto piece) { messages.push_back(world.send(piece, send.to, exchange_tag)); });
    if (topology.node_of(send.to) != topology.node()) to_other_nodes += send.data.size();
  }
  world.wait_all(messages, "an exchange between ranks");
  return to_other_nodes;
}

}  // namespace lamina
