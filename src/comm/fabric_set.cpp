#include <lamina/base/check.hpp>
#include <lamina/comm/fabric_registry.hpp>
#include <lamina/comm/fabric_set.hpp>

namespace lamina {

namespace {

// The fabric of a group of world ranks. Collective over `world`; groups with different colours are made at the same
// time.
std::unique_ptr<Fabric> make_group(const std::string& name, const mpi::Communicator& world, const Topology& group,
                                   int colour, SumOrder order) {
  const mpi::Communicator members = world.split(colour, group.rank());
  return make_fabric(name, members, group, order);
}

}  // namespace

FabricSet::FabricSet(const std::string& name, const mpi::Communicator& world, const Mesh& mesh, SumOrder order)
    : name_(name), communicator_(&world), mesh_(mesh), order_(order), world_(make_fabric(name, world, mesh.world(), order)) {
  if (mesh.shard_size() > 1 && mesh.replicas() > 1) {
    shard_ = make_group(name, world, mesh.shard_group(), mesh.replica_index(), order);
    replica_ = make_group(name, world, mesh.replica_group(), mesh.shard_index(), order);
  }
}

FabricSet FabricSet::without_sharding() const { return {name_, *communicator_, Mesh(mesh_.world(), 1), order_}; }

Fabric& FabricSet::replica() {
  require(mesh_.replicas() > 1, "FabricSet: there are no replicas");
  return replica_ ? *replica_ : *world_;
}

void FabricSet::interrupt() {
  for (auto* fabric : {world_.get(), shard_.get(), replica_.get()}) {
    if (fabric != nullptr) fabric->interrupt();
  }
}

std::uint64_t FabricSet::floats_sent() const {
  std::uint64_t floats = world_->floats_sent();
  for (const auto* fabric : {shard_.get(), replica_.get()}) floats += fabric != nullptr ? fabric->floats_sent() : 0;
  return floats;
}

}  // namespace lamina
