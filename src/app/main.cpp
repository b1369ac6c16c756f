#include "commands.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include <lamina/base/error.hpp>
#include <lamina/base/failure.hpp>
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
  lamina chat --model DIR                         talk with a model, turn by turn
  lamina eval --model DIR --data FILE             loss, perplexity and bits per byte; multiple choice
  lamina help COMMAND                             the options of a command, with examples
  lamina --dump-default                           every setting of train with its default and a line of explanation
  lamina --version                                what this program was built from

Further programs: lamina-tokenize, lamina-consolidate, lamina-inspect.
Exit codes: 0 done; 64 usage; 65 data; 66 checkpoint; 69 a rank or the network is lost; 70 a defect of lamina;
75 stopped with a checkpoint, start again; 128+n ended by signal n.
)";

bool is_help(const std::string& word) { return word == "--help" || word == "-h" || word == "help"; }

[[noreturn]] void refuse_command(const std::string& name) {
  static const std::array<std::string, 8> known{"train", "plan",      "generate",       "chat",
                                                "eval",  "--version", "--dump-default", "--help"};
  static const std::array<std::string, 3> programs{"tokenize", "consolidate", "inspect"};
  const std::string problem = fmt::format("unknown command '{}'", name);
  if (std::ranges::find(programs, name) != programs.end()) {
    throw lamina::UsageError(
        lamina::one_line(problem, "it is a program of its own", fmt::format("start lamina-{}", name)));
  }
  const std::string nearest = lamina::nearest_name(name, known);
  throw lamina::UsageError(
      lamina::one_line(problem, nearest.empty() ? "there is none like it" : fmt::format("did you mean {}?", nearest),
                       "see lamina --help"));
}

// `arguments` begin with the command's name; `argc` and `argv` are the program's, which MPI wants.
int run_command(const std::vector<std::string>& arguments, int argc, char** argv) {
  const std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
  if (arguments[0] == "train") return lamina::train_command(rest, argc, argv);
  if (arguments[0] == "plan") return lamina::plan_command(rest);
  if (arguments[0] == "generate") return lamina::generate_command(rest);
  if (arguments[0] == "chat") return lamina::chat_command(rest);
  if (arguments[0] == "eval") return lamina::eval_command(rest);
  refuse_command(arguments[0]);
}

int dispatch(int argc, char** argv) {
  const std::vector<std::string> arguments = lamina::argument_list(argc, argv);
  if (arguments.empty() || std::ranges::all_of(arguments, is_help)) {
    std::fputs(help_text, arguments.empty() ? stderr : stdout);
    return static_cast<int>(arguments.empty() ? lamina::ExitCode::usage : lamina::ExitCode::ok);
  }
  if (is_help(arguments[0])) return run_command({arguments[1], "--help"}, argc, argv);
  if (arguments[0] == "--version") {
    fmt::print("{}running   {}\n", lamina::version_text("lamina"), lamina::mpi::Environment::library_version());
    return 0;
  }
  if (arguments[0] == "--dump-default") {
    std::fputs(lamina::parse_run_arguments("lamina", arguments).print_instead->c_str(), stdout);
    return 0;
  }
  return run_command(arguments, argc, argv);
}

}  // namespace

int main(int argc, char** argv) {
  return lamina::run_program([&] { return dispatch(argc, argv); });
}
