#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <lamina/base/error.hpp>
#include <lamina/base/file.hpp>
#include <lamina/base/steady_clock.hpp>
#include <lamina/train/timeline.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

constexpr int step_track = static_cast<int>(stream_kinds);
constexpr int clock_looks = 9;

int track_of(StreamKind stream) { return static_cast<int>(stream); }

// Seconds of this rank's clock that show the moment at which rank 0's showed `zero`. All leave a barrier at nearly the
// same moment; the median of several looks leaves out the odd late one.
double shared_origin(const mpi::Communicator& world) {
  std::vector<double> differences;
  double zero = 0;
  for (int look = 0; look < clock_looks; ++look) {
    world.barrier("the comparison of clocks");
    const auto nanoseconds = static_cast<std::int64_t>(1e9 * steady_seconds());
    const std::vector<std::int64_t> all = world.all_gather(std::span(&nanoseconds, 1), "the comparison of clocks");
    if (look == 0) zero = 1e-9 * static_cast<double>(all.front());
    differences.push_back(1e-9 * static_cast<double>(nanoseconds - all.front()));
  }
  std::ranges::nth_element(differences, differences.begin() + clock_looks / 2);
  return zero + differences[clock_looks / 2];
}

std::string metadata(int rank, const std::string& host) {
  std::string text = fmt::format(R"({{"name":"process_name","ph":"M","pid":{0},"args":{{"name":"rank {0} on {1}"}}}},)"
                                 R"({{"name":"process_sort_index","ph":"M","pid":{0},"args":{{"sort_index":{0}}}}},)",
                                 rank, host);
  const std::array<std::string_view, stream_kinds + 1> tracks{"compute", "gather", "reduce", "copy", "step"};
  for (std::size_t track = 0; track < tracks.size(); ++track) {
    text += fmt::format(R"({{"name":"thread_name","ph":"M","pid":{0},"tid":{1},"args":{{"name":"{2}"}}}},)"
                        R"({{"name":"thread_sort_index","ph":"M","pid":{0},"tid":{1},"args":{{"sort_index":{3}}}}},)",
                        rank, track, tracks[track], (track + 1) % tracks.size());
  }
  return text;
}

std::string stage_name(const Stage& stage) {
  if (stage.kind == StageKind::block) return fmt::format("layers.{}", stage.layer);
  return stage.kind == StageKind::head ? "head" : "embedding";
}

}  // namespace

Timeline::Timeline(const mpi::Communicator& world, const ModelPlan& plan, const ScheduleShape& shape, StepRange range)
    : world_(world), plan_(plan), shape_(shape), range_(range), origin_(shared_origin(world)) {}

void Timeline::add(const StepResult& result, const StepTrace& trace) {
  if (!range_.contains(result.step)) return;
  last_step_ = result.step;
  add_operations(trace);
  add_event("sums over ranks", track_of(StreamKind::compute), trace.exchange, "");
  add_event("optimizer", track_of(StreamKind::compute), trace.update, "");
  add_event(fmt::format("step {}", result.step), step_track, {trace.begin, trace.update.end},
            result.overlap ? fmt::format(R"("overlap":{:.4f})", *result.overlap) : std::string());
}

std::string Timeline::name_of_operation(const Operation& operation) const {
  const std::string& unit = plan_.units[operation.unit].name;
  switch (operation.kind) {
    case OperationKind::load:
      return "load batch";
    case OperationKind::forward:
      return "forward " + stage_name(plan_.stages[operation.stage]);
    case OperationKind::backward: {
      const bool head = plan_.stages[operation.stage].kind == StageKind::head;
      const std::string part = operation.parts > 1 ? fmt::format(" {}/{}", operation.part + 1, operation.parts) : "";
      return (head ? "loss and backward " : "backward ") + stage_name(plan_.stages[operation.stage]) + part;
    }
    case OperationKind::accumulate:
    case OperationKind::reduce:
      return fmt::format("{} {}{}", name_of(operation.kind), unit,
                         operation.parts > 1 ? fmt::format(" {}/{}", operation.part + 1, operation.parts) : "");
    default:
      return fmt::format("{} {}", name_of(operation.kind), unit);
  }
}

void Timeline::add_operations(const StepTrace& trace) {
  for (std::size_t place = 0; place < trace.operations.size(); ++place) {
    const Operation& operation = trace.operations[place];
    // A mark without duration, and the part of the head's forward that is not computed apart.
    const bool head = operation.kind == OperationKind::forward && operation.stage + 1 == plan_.stages.size();
    if (operation.kind == OperationKind::release || head) continue;
    std::string arguments = fmt::format(R"("micro_step":{})", operation.micro_step + 1);
    if (operation.kind != OperationKind::load) {
      const bool bucket = operation.kind == OperationKind::reduce || operation.kind == OperationKind::accumulate;
      const std::int64_t elements = bucket ? bucket_range(shape_.units[operation.unit], operation.part).length()
                                           : shape_.units[operation.unit].elements;
      arguments += fmt::format(R"(,"unit":"{}","bytes":{})", plan_.units[operation.unit].name, 4 * elements);
    }
    add_event(name_of_operation(operation), track_of(operation.stream), trace.intervals[place], arguments);
    add_arrows(trace, place);
  }
}

void Timeline::add_arrows(const StepTrace& trace, std::size_t place) {
  const Operation& operation = trace.operations[place];
  for (const std::size_t wait : operation.waits) {
    const Operation& earlier = trace.operations[wait];
    const bool weights = earlier.kind == OperationKind::gather && operation.stream == StreamKind::compute;
    const bool gradient = earlier.kind == OperationKind::backward && operation.stream == StreamKind::reduce;
    if (weights || gradient) {
      add_arrow(weights ? "weights" : "gradient", track_of(earlier.stream), trace.intervals[wait],
                track_of(operation.stream), trace.intervals[place]);
    }
  }
}

void Timeline::add_event(std::string_view name, int track, Interval interval, const std::string& arguments) {
  events_ += fmt::format(R"({{"name":"{}","ph":"X","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{{}}}}},)", name,
                         world_.rank(), track, 1e6 * (interval.start - origin_), 1e6 * (interval.end - interval.start),
                         arguments);
}

void Timeline::add_arrow(std::string_view name, int from_track, Interval from, int to_track, Interval to) {
  // Both ends lie inside their events: viewers tie them to what surrounds them.
  const auto inside = [](Interval interval, double part) {
    return interval.start + part * (interval.end - interval.start);
  };
  const std::string id = fmt::format("{}.{}", world_.rank(), ++arrows_);
  events_ += fmt::format(R"({{"name":"{}","cat":"flow","ph":"s","id":"{}","pid":{},"tid":{},"ts":{:.3f}}},)", name, id,
                         world_.rank(), from_track, 1e6 * (inside(from, 0.99) - origin_));
  events_ += fmt::format(R"({{"name":"{}","cat":"flow","ph":"f","bp":"e","id":"{}","pid":{},"tid":{},"ts":{:.3f}}},)",
                         name, id, world_.rank(), to_track, 1e6 * (inside(to, 0.01) - origin_));
}

std::filesystem::path Timeline::write(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "timeline.json";
  const std::string mine = metadata(world_.rank(), mpi::Communicator::host_name()) + events_;
  const std::vector<std::string> all = world_.all_gather(mine, "the timeline");
  world_.agree(
      [&] {
        if (world_.rank() != 0) return;
        std::string text = R"({"displayTimeUnit":"ms","traceEvents":[)";
        for (const std::string& events : all) text += events;
        text.back() = ']';  // the last comma
        write_file_atomically(path, text + "}\n", ExitCode::usage);
      },
      "the writing of the timeline");
  events_.clear();
  return path;
}

}  // namespace lamina
