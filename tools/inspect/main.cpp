// lamina-inspect: what a run folder, checkpoint, model folder or file holds. Needs no MPI: it runs on a login node.
#include "inspect/describe.hpp"
#include "support/run_tool.hpp"

#include <lamina/base/error.hpp>

#include <fmt/format.h>

int main(int argc, char** argv) {
  using namespace lamina;
  constexpr const char* program = "lamina-inspect";
  std::string path, weights = "trained";
  bool digest = false;
  ArgumentParser parser(program, "Lists what a run folder, checkpoint, model folder, safetensors or HDF5 file holds.");
  parser.example("lamina-inspect runs/first");
  parser.example("lamina-inspect --digest runs/first/model");
  parser.positional("PATH", path, "what to look at");
  parser.flag("digest", digest, "print one digest a tensor and one of all: they depend on names and fp32 values only");
  parser.choice("weights", weights, {"trained", "ema"}, "with --digest: whose digests, of a checkpoint");
  return run_tool(argc, argv, parser, [&] {
    if (!digest && parser.given("weights")) {
      throw UsageError(
          one_line("--weights changes nothing", "it says whose digests are printed", "add --digest or leave it out"));
    }
    fmt::print("{}", digest ? digest_text(path, weights == "ema" ? StateKind::ema : StateKind::param) : describe(path));
  });
}
