// A small model, a small text and the programs, for whole-program tests.
#pragma once

#include "support/run_program.hpp"
#include "support/temporary_folder.hpp"

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace lamina::test {

class ProgramTest : public testing::Test {
 protected:
  ProgramTest();

  // A config.json of a tiny Llama with these changes.
  void write_model(const std::string& name, const nlohmann::json& changes = nlohmann::json::object());
  // The config file with a run of `steps` steps, global batch 12, in runs/NAME.
  [[nodiscard]] std::string program(const std::string& name) const { return std::string(LAMINA_BIN_DIR) + "/" + name; }
  // mpiexec -n RANKS lamina train CONFIG --run.dir FOLDER/RUN ARGUMENTS
  [[nodiscard]] std::string train_command(int ranks, const std::string& run, const std::string& arguments = "") const;
  [[nodiscard]] ProgramResult train(int ranks, const std::string& run, const std::string& arguments = "") const {
    return run_command(train_command(ranks, run, arguments));
  }
  [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void write(const std::string& name, const std::string& content) const;
  [[nodiscard]] std::string read(const std::string& name) const;
  // Of each line of RUN/metrics.jsonl, what the same-bits law speaks of: step, loss, norm, validation.
  [[nodiscard]] std::vector<std::string> bits_of(const std::string& run) const;
  // The digest over all tensors of the newest checkpoint in RUN.
  [[nodiscard]] std::string digest_of(const std::string& run) const;

  TemporaryFolder folder_;
};

// The lines of `output` that begin with "error:".
[[nodiscard]] std::vector<std::string> error_lines(const std::string& output);

// Whether this process may make mount namespaces (root, as in CI).
[[nodiscard]] bool can_mount();

}  // namespace lamina::test
