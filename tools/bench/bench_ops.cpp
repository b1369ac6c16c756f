// lamina-bench-ops: rates of the CPU operations as ratios to the arithmetic peak and to the memory bandwidth of the
// same moment, and what one training step made of them would reach.
#include "fma_probe.hpp"
#include "ops_cases.hpp"

#include <charconv>
#include <cstdio>
#include <string_view>

#include <lamina/base/build_info.hpp>
#include <lamina/base/failure.hpp>

#include <fmt/format.h>

namespace lamina::bench {
namespace {

constexpr const char* usage =
    "usage: lamina-bench-ops [--threads N] [--samples N] [--quick] [--help]\n"
    "  --threads N  threads of the operations and of the probe (1)\n"
    "  --samples N  samples per operation; the median counts (5)\n"
    "  --quick      tiny shapes and one sample: only to see that it runs\n";

struct Options {
  int threads = 1;
  int samples = 5;
  double seconds = 0.08;  // of one sample
  StepShape shape;
  bool help = false;
};

int positive(std::string_view name, std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1) {
    throw UsageError(one_line(fmt::format("cannot use {} {}", name, text), "it takes a positive integer"));
  }
  return value;
}

Options parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    const auto value = [&] {
      if (++i >= argc) throw UsageError(one_line(fmt::format("{} has no value", name), "it takes a positive integer"));
      return positive(name, argv[i]);
    };
    if (name == "--threads") {
      o.threads = value();
    } else if (name == "--samples") {
      o.samples = value();
    } else if (name == "--quick") {
      o.shape = {2, 32, 64, 2, 4, 2, 96, 128, 32};
      o.samples = 1;
      o.seconds = 0.002;
    } else if (name == "--help" || name == "-h") {
      o.help = true;
    } else {
      throw UsageError(one_line(fmt::format("unknown argument {}", name), "see --help"));
    }
  }
  return o;
}

void run(const Options& o) {
  const BuildInfo& build = build_info();
  fmt::print("# lamina {} {} {} {}, BLAS {}, {} thread(s), FMA peak {:.1f} GFLOP/s\n", build.version, build.commit,
             build.build_type, build.cpu_arch, build.blas, o.threads,
             fma_peak(o.threads, 0.02, o.threads == 1 ? Clock::thread : Clock::wall) * 1e-9);
  Backend backend = make_backend("cpu", o.threads);
  const OpsCases all(backend, o.shape);
  const Sample stream = measure(all.bandwidth().run, 0, o.threads, o.samples, o.seconds);
  const double bandwidth = all.bandwidth().bytes / stream.seconds;
  fmt::print("# y += x over {:.0f} MB: {:.1f} GB/s\n", all.bandwidth().bytes * 1e-6, bandwidth * 1e-9);
  fmt::print("{:<30} {:>10} {:>9} {:>8} {:>8} {:>9} {:>7}\n", "operation", "us/call", "GFLOP/s", "of peak", "GB/s",
             "of y+=x", "% step");
  struct Row {
    const Case* item;
    Sample sample;
  };
  std::vector<Row> rows;
  double step_seconds = 0, step_flops = 0, step_work = 0;
  for (const Case& c : all.cases()) {
    rows.push_back({&c, measure(c.run, c.flops, o.threads, o.samples, o.seconds)});
    const Sample& s = rows.back().sample;
    step_seconds += s.seconds * static_cast<double>(c.per_step);
    step_work += s.seconds * s.peak * static_cast<double>(c.per_step);
    step_flops += c.flops * static_cast<double>(c.per_step);
  }
  for (const auto& [c, s] : rows) {
    const double rate = c->bytes / s.seconds;
    const std::string flops = c->flops > 0 ? fmt::format("{:.1f}", c->flops / s.seconds * 1e-9) : "-";
    const std::string ratio = c->flops > 0 ? fmt::format("{:.2f}", s.ratio) : "-";
    fmt::print("{:<30} {:>10.1f} {:>9} {:>8} {:>8.1f} {:>9.2f} {:>7.1f}\n", c->name, s.seconds * 1e6, flops, ratio,
               rate * 1e-9, rate / bandwidth, 100 * s.seconds * static_cast<double>(c->per_step) / step_seconds);
  }
  fmt::print("# a step of these operations: {:.1f} ms, {:.1f} GFLOP, {:.2f} of the FMA peak\n", step_seconds * 1e3,
             step_flops * 1e-9, step_flops / step_work);
}

}  // namespace
}  // namespace lamina::bench

int main(int argc, char** argv) {
  return lamina::run_program([&] {
    const lamina::bench::Options options = lamina::bench::parse(argc, argv);
    if (options.help) {
      fmt::print("{}", lamina::bench::usage);
    } else {
      lamina::bench::run(options);
    }
    return 0;
  });
}
