// What can go wrong, and how a process says so.
//
// Every error a user can cause carries one line of the form "problem: why; what to do" and one of the documented exit
// codes. Errors are thrown; only `app` and the tools' mains catch them.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace lamina {

// Exit codes of all Lamina programs (README, "Exit codes"). A signal ends a program with 128 + its number.
enum class ExitCode : int {
  ok = 0,
  usage = 64,       // arguments, configuration, or a request this machine cannot honour
  data = 65,        // a model, tokenizer or data file that cannot be used
  checkpoint = 66,  // no usable checkpoint, or a checkpoint that could not be written
  peer_lost = 69,   // another rank or the communication is lost
  internal = 70,    // a defect in Lamina
  requeue = 75      // checkpointed; wants to be started again
};

class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  [[nodiscard]] ExitCode code() const noexcept { return code_; }

 private:
  ExitCode code_;
};

struct UsageError : Error {
  explicit UsageError(const std::string& message) : Error(ExitCode::usage, message) {}
};
struct DataError : Error {
  explicit DataError(const std::string& message) : Error(ExitCode::data, message) {}
};
struct CheckpointError : Error {
  explicit CheckpointError(const std::string& message) : Error(ExitCode::checkpoint, message) {}
};
struct PeerError : Error {
  explicit PeerError(const std::string& message) : Error(ExitCode::peer_lost, message) {}
};
// A broken promise between two parts of Lamina: never the user's fault.
struct InternalError : Error {
  explicit InternalError(const std::string& message) : Error(ExitCode::internal, message) {}
};

// "problem: why; fix" on one line. Empty `fix` leaves the last part out.
[[nodiscard]] std::string one_line(std::string_view problem, std::string_view why, std::string_view fix = {});

}  // namespace lamina
