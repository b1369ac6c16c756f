#include "commands.hpp"
#include "failure.hpp"

#include <array>
#include <cstdio>

#include <lamina/base/error.hpp>
#include <lamina/base/text.hpp>
#include <lamina/config/argument_parser.hpp>
#include <lamina/config/command_line.hpp>
#include <lamina/mpi/environment.hpp>

#include <fmt/format.h>

namespace {

constexpr const char* help_text = R"(lamina: fully sharded training of language models over MPI

  lamina train CONFIG [--section.key VALUE ...]   train a model (start with srun or mpirun)
  lamina plan CONFIG [--ranks N --nodes N]        units, memory and traffic of such a run, without starting it
  lamina generate --model DIR --prompt TEXT       continue a text
  lamina eval --model DIR --data FILE             loss, perplexity and bits per byte; multiple choice
  lamina --dump-default                           every setting of train with its default and a line of explanation
  lamina --version                                what this program was built from

`lamina COMMAND --help` explains a command. Further programs: lamina-tokenize, lamina-consolidate, lamina-inspect.
Exit codes: 0 done; 64 usage; 65 data; 66 checkpoint; 69 a rank or the network is lost; 70 a defect of lamina;
75 stopped with a checkpoint, start again; 128+n ended by signal n.
)";

int dispatch(int argc, char** argv) {
  const std::vector<std::string> arguments = lamina::argument_list(argc, argv);
  if (arguments.empty() || arguments[0] == "--help" || arguments[0] == "help") {
    std::fputs(help_text, arguments.empty() ? stderr : stdout);
    return static_cast<int>(arguments.empty() ? lamina::ExitCode::usage : lamina::ExitCode::ok);
  }
  const std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
  if (arguments[0] == "--version") {
    fmt::print("{}running   {}\n", lamina::version_text("lamina"), lamina::mpi::Environment::library_version());
    return 0;
  }
  if (arguments[0] == "--dump-default") {
    std::fputs(lamina::default_ini().c_str(), stdout);
    return 0;
  }
  if (arguments[0] == "train") return lamina::train_command(argc, argv);
  if (arguments[0] == "plan") return lamina::plan_command(rest);
  if (arguments[0] == "generate") return lamina::generate_command(rest);
  if (arguments[0] == "eval") return lamina::eval_command(rest);
  static const std::array<std::string, 7> known{"train",     "plan",           "generate", "eval",
                                                "--version", "--dump-default", "--help"};
  const std::string nearest = lamina::nearest_name(arguments[0], known);
  throw lamina::UsageError(lamina::one_line(
      fmt::format("unknown command '{}'", arguments[0]),
      nearest.empty() ? "there is none like it" : fmt::format("did you mean {}?", nearest), "see lamina --help"));
}

}  // namespace

int main(int argc, char** argv) {
  return lamina::run_program([&] { return dispatch(argc, argv); });
}
