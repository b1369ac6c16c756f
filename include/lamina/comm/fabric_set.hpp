// The fabrics of a mesh: one for each group of ranks that exchange units.
#pragma once

#include <memory>
#include <string>

#include <lamina/comm/fabric.hpp>
#include <lamina/mpi/communicator.hpp>
#include <lamina/topology/mesh.hpp>

namespace lamina {

class FabricSet {
 public:
  // Collective over `world`, which must outlive the set. `name` as for make_fabric.
  FabricSet(const std::string& name, const mpi::Communicator& world, const Mesh& mesh, SumOrder order);

  // Of the same ranks, with every rank a shard group of its own. Collective.
  [[nodiscard]] FabricSet without_sharding() const;

  // All ranks.
  [[nodiscard]] Fabric& world() { return *world_; }
  // The ranks that hold one copy of the weights between them; the world itself when there is one group.
  [[nodiscard]] Fabric& shard() { return shard_ ? *shard_ : *world_; }
  // The ranks that hold the same part; the world itself when every rank holds everything. Must not be asked for when
  // there is one group.
  [[nodiscard]] Fabric& replica();
  [[nodiscard]] const Mesh& mesh() const { return mesh_; }
  [[nodiscard]] SumOrder order() const { return order_; }
  // Of all groups, see Fabric.
  void interrupt();
  // Floats this rank has sent to other nodes, over all groups.
  [[nodiscard]] std::uint64_t floats_sent() const;

 private:
  std::string name_;
  const mpi::Communicator* communicator_;  // outlives this
  Mesh mesh_;
  SumOrder order_;
  std::unique_ptr<Fabric> world_, shard_, replica_;
};

}  // namespace lamina
