#include "slot_memory.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include <lamina/base/error.hpp>
#include <lamina/base/text.hpp>

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // Linux 5.14
#endif

namespace lamina {

namespace {

constexpr const char* shared_memory_folder = "/dev/shm";  // where Open MPI keeps shared windows
constexpr std::uint64_t page = 4096;

std::uint64_t slot_bytes(const SlotPlan& plan) {
  return (static_cast<std::uint64_t>(plan.slot_elements) * sizeof(float) + page - 1) / page * page;
}
std::uint64_t control_bytes(const SlotPlan& plan) {
  return static_cast<std::uint64_t>(plan.parameter_slots) * sizeof(ParameterCounters) +
         static_cast<std::uint64_t>(plan.gradient_slots) * sizeof(GradientCounters);
}
std::uint64_t parameter_bytes(const SlotPlan& plan) {
  return static_cast<std::uint64_t>(plan.parameter_slots) * slot_bytes(plan);
}
std::uint64_t gradient_bytes(const SlotPlan& plan) {
  return static_cast<std::uint64_t>(plan.gradient_slots) * slot_bytes(plan);
}

void populate_range(std::byte* begin, std::uint64_t bytes) {
  if (bytes == 0) return;
  // Older kernels do not know the advice: there the check of free space before the allocation has to do.
  if (::madvise(begin, bytes, MADV_POPULATE_WRITE) == 0 || errno == EINVAL) return;
  throw UsageError(
      one_line(fmt::format("cannot get {} of shared memory", human_bytes(bytes)), std::strerror(errno),
               fmt::format("enlarge {} (in containers --shm-size) or use smaller units, less prefetch or more nodes",
                           shared_memory_folder)));
}

}  // namespace

std::uint64_t SlotMemory::bytes_of_rank(const SlotPlan& plan, int local_rank) {
  const std::uint64_t slack = 3 * page;  // each window rounds up to whole pages
  return (local_rank == 0 ? control_bytes(plan) + parameter_bytes(plan) : 0) + gradient_bytes(plan) + slack;
}

SlotMemory::SlotMemory(const mpi::Communicator& node, const SlotPlan& plan)
    : plan_(plan),
      local_rank_(node.rank()),
      local_size_(node.size()),
      control_(node, node.rank() == 0 ? control_bytes(plan) : 0),
      parameters_(node, node.rank() == 0 ? parameter_bytes(plan) : 0),
      gradients_(node, gradient_bytes(plan)) {
  // MPI promises no content; fresh pages of a file are zero, a single rank's window is ordinary memory.
  if (node.rank() == 0) std::memset(static_cast<void*>(control_.part(0)), 0, control_bytes(plan));
  node.barrier("the slots of the node");
}

void SlotMemory::populate() const {
  // Each rank touches an equal part of the common slots, so that their pages spread over the node's memory controllers.
  const std::uint64_t pages = parameter_bytes(plan_) / page;
  const auto size = static_cast<std::uint64_t>(local_size_), rank = static_cast<std::uint64_t>(local_rank_);
  const std::uint64_t first = pages * rank / size * page, last = pages * (rank + 1) / size * page;
  if (last > first) populate_range(parameters_.part(0) + first, last - first);
  populate_range(gradients_.part(local_rank_), gradient_bytes(plan_));
}

float* SlotMemory::parameter(int slot) const {
  return reinterpret_cast<float*>(parameters_.part(0) + static_cast<std::uint64_t>(slot) * slot_bytes(plan_));
}

float* SlotMemory::gradient(int local_rank, int slot) const {
  return reinterpret_cast<float*>(gradients_.part(local_rank) + static_cast<std::uint64_t>(slot) * slot_bytes(plan_));
}

ParameterCounters& SlotMemory::parameter_counters(int slot) const {
  return reinterpret_cast<ParameterCounters*>(control_.part(0))[slot];
}

GradientCounters& SlotMemory::gradient_counters(int slot) const {
  auto* after_parameters = reinterpret_cast<ParameterCounters*>(control_.part(0)) + plan_.parameter_slots;
  return reinterpret_cast<GradientCounters*>(after_parameters)[slot];
}

namespace {

// Shared memory is files: the largest window must fit under the limit of a file's size.
void require_file_size(const SlotPlan& plan, std::size_t ranks) {
  rlimit limit{};
  if (ranks < 2 || ::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  const std::uint64_t need =
      std::max(parameter_bytes(plan) + 2 * page, static_cast<std::uint64_t>(ranks) * (gradient_bytes(plan) + 2 * page));
  if (need <= limit.rlim_cur) return;
  throw UsageError(one_line(fmt::format("ulimit -f allows files of {}", human_bytes(limit.rlim_cur)),
                            fmt::format("the slots that a node's ranks share are files of {}", human_bytes(need)),
                            "raise ulimit -f, as to unlimited"));
}

}  // namespace

void require_shared_memory(const mpi::Communicator& world, const Topology& topology, const SlotPlan& plan) {
  world.agree(
      [&] {
        require_file_size(plan, topology.ranks_of_node(topology.node()).size());
        const std::string& host = topology.host_of(topology.rank());
        std::uint64_t need = 0;
        for (int rank = 0; rank < topology.world_size(); ++rank) {
          const bool shares =
              topology.ranks_of_node(topology.node_of(rank)).size() > 1;  // a lone rank's window is private memory
          if (topology.host_of(rank) == host && shares)
            need += SlotMemory::bytes_of_rank(plan, topology.local_of(rank));
        }
        struct statvfs room {};
        if (need == 0 || ::statvfs(shared_memory_folder, &room) != 0) return;
        const std::uint64_t free = static_cast<std::uint64_t>(room.f_bavail) * room.f_frsize;
        if (need <= free) return;
        throw UsageError(one_line(fmt::format("{} on {} is too small: the slots need {} ({} bytes), {} are free",
                                              shared_memory_folder, host, human_bytes(need), need, human_bytes(free)),
                                  "the gathered units and gradients live there",
                                  "enlarge it (mount -o remount,size=..., containers: --shm-size), lower "
                                  "parallel.prefetch, or use more nodes"));
      },
      "the check of shared memory");
}

}  // namespace lamina
