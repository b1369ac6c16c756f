#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <ctime>
#include <fstream>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>

#include <lamina/base/error.hpp>
#include <lamina/base/file.hpp>
#include <lamina/base/log.hpp>
#include <lamina/checkpoint/run_lock.hpp>
#include <lamina/checkpoint/transaction.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace lamina {

namespace {

namespace fs = std::filesystem;

std::string first_line(const fs::path& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

// Field 22 of /proc/PID/stat; nullopt when there is no such process, or it is only waiting to be reaped.
std::optional<std::uint64_t> start_ticks_of(std::int64_t pid) {
  const std::string line = first_line(fmt::format("/proc/{}/stat", pid));
  const std::size_t name_end = line.rfind(')');  // the name may hold anything
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(line.substr(name_end + 1));
  std::string word;
  for (int field = 3; field <= 22 && fields >> word; ++field) {
    if (field == 3 && (word == "Z" || word == "X")) return std::nullopt;
  }
  return fields ? std::optional<std::uint64_t>(std::stoull(word)) : std::nullopt;
}

std::string utc_now() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S UTC", &parts)};
}

std::string to_text(const LockHolder& holder) {
  const nlohmann::ordered_json object{{"host", holder.host},
                                      {"pid", holder.pid},
                                      {"started", holder.started},
                                      {"job", holder.job},
                                      {"job_step", holder.job_step},
                                      {"job_restarts", holder.job_restarts},
                                      {"boot", holder.boot},
                                      {"pid_space", holder.pid_space},
                                      {"start_ticks", holder.start_ticks},
                                      {"token", holder.token}};
  return object.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

// nullopt: the file is not there, or not (yet) whole.
std::optional<LockHolder> read_holder(const fs::path& path) {
  const auto object = nlohmann::json::parse(std::ifstream(path), nullptr, false);
  if (!object.is_object()) return std::nullopt;
  try {
    return LockHolder{object.at("host"),         object.at("boot"),    object.at("pid_space"), object.at("pid"),
                      object.at("start_ticks"),  object.at("started"), object.at("job"),       object.at("job_step"),
                      object.at("job_restarts"), object.at("token")};
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

std::string describe(const LockHolder& holder) {
  return fmt::format("process {} on {}{}, since {}", holder.pid, holder.host,
                     holder.job.empty() ? "" : fmt::format(" (job {})", holder.job), holder.started);
}

[[noreturn]] void refuse(const fs::path& path, const std::string& why) {
  throw UsageError(one_line(fmt::format("cannot lock the run folder {}", path.parent_path().string()), why,
                            "choose a writable run.dir"));
}

// Makes `path` with that content if it is not there. Returns whether it did.
bool create_exclusively(const fs::path& path, const std::string& content) {
  const fs::path draft = path.string() + ".tmp-" + CheckpointTransaction::make_id();
  write_file_atomically(draft, content, ExitCode::usage);
  const bool linked = ::link(draft.c_str(), path.c_str()) == 0;
  int failure = linked ? 0 : errno;
  std::error_code ignored;
  // A lost reply of a file server: the link is there all the same.
  const bool there = linked || fs::hard_link_count(draft, ignored) == 2;
  fs::remove(draft, ignored);
  if (there || failure == EEXIST) return there;
  if (failure != EPERM && failure != EOPNOTSUPP && failure != ENOSYS && failure != EMLINK)
    refuse(path, std::generic_category().message(failure));
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file < 0 && errno == EEXIST) return false;
  if (file < 0) refuse(path, std::generic_category().message(errno));
  const bool written = ::write(file, content.data(), content.size()) == static_cast<ssize_t>(content.size());
  failure = errno;
  if (::close(file) == 0 && written) return true;
  fs::remove(path, ignored);
  refuse(path, std::generic_category().message(failure));
}

// Several machines may have this name.
bool names_one_machine(const std::string& host) { return !host.empty() && !host.starts_with("localhost"); }

}  // namespace

LockHolder this_process() {
  LockHolder self;
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) == 0) self.host = host.data();
  self.boot = first_line("/proc/sys/kernel/random/boot_id");
  std::error_code ignored;
  self.pid_space = fs::read_symlink("/proc/self/ns/pid", ignored).string();
  self.pid = ::getpid();
  self.start_ticks = start_ticks_of(self.pid).value_or(0);
  self.started = utc_now();
  self.token = CheckpointTransaction::make_id();
  return self;
}

std::string why_gone(const LockHolder& holder, const LockHolder& self, const JobHasEnded& job_has_ended) {
  if (!holder.boot.empty() && holder.boot == self.boot && holder.pid_space == self.pid_space) {
    const std::optional<std::uint64_t> ticks = start_ticks_of(holder.pid);
    // Where /proc hides the processes of others, kill(2) still says whether they are there.
    const bool hidden = !ticks && ::kill(static_cast<pid_t>(holder.pid), 0) != 0 && errno == EPERM;
    return hidden || ticks == holder.start_ticks ? "" : fmt::format("process {} has ended", holder.pid);
  }
  const bool both_boots = !holder.boot.empty() && !self.boot.empty();
  if (both_boots && holder.host == self.host && names_one_machine(self.host) && holder.boot != self.boot) {
    return fmt::format("{} was started again since", holder.host);
  }
  if (holder.job.empty()) return {};
  if (holder.job == self.job && holder.job_restarts < self.job_restarts) {
    return fmt::format("job {} was requeued since", holder.job);
  }
  // Of this very job only a step can have ended.
  const bool same_job = holder.job == self.job;
  if (same_job && (holder.job_step.empty() || holder.job_step == self.job_step)) return {};
  if (!job_has_ended(holder.job, same_job ? holder.job_step : "").value_or(false)) return {};
  return same_job ? fmt::format("step {} of job {} has ended", holder.job_step, holder.job)
                  : fmt::format("job {} has ended", holder.job);
}

RunLock::RunLock(const fs::path& run_folder, LockHolder self, const JobHasEnded& job_has_ended)
    : path_(run_folder / file_name), self_(std::move(self)) {
  constexpr int attempts = 20;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    if (try_take()) return;
    const std::optional<LockHolder> holder = read_holder(path_);
    if (!holder) {  // just released, or just being written
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      continue;
    }
    const std::string gone = why_gone(*holder, self_, job_has_ended);
    if (gone.empty()) {
      throw UsageError(
          one_line(fmt::format("another run writes to {}: {}", run_folder.string(), describe(*holder)),
                   "two runs would lose each other's checkpoints and metrics",
                   fmt::format("wait for it, or choose another run.dir; if it is dead, remove {}", path_.string())));
    }
    take_over(*holder);
    log_warn(fmt::format("took over the lock of {} from {}: {}", run_folder.string(), describe(*holder), gone));
    return;
  }
  throw UsageError(one_line(fmt::format("cannot lock the run folder {}", run_folder.string()),
                            fmt::format("{} cannot be read", path_.string()), "remove it if no run uses that folder"));
}

bool RunLock::try_take() { return create_exclusively(path_, to_text(self_)); }

// Of several that found the same stale lock one holds a second lock meanwhile, sees that the stale one is still there,
// and puts its own in place of it.
void RunLock::take_over(const LockHolder& stale) {
  const fs::path guard = path_.string() + ".takeover";
  const auto lost = [&] {
    throw UsageError(
        one_line(fmt::format("another run takes over the folder {} at this moment", path_.parent_path().string()),
                 "two runs would lose each other's checkpoints and metrics",
                 fmt::format("wait for it; if none does, remove {}", guard.string())));
  };
  if (!create_exclusively(guard, to_text(self_))) {
    const std::optional<LockHolder> taker = read_holder(guard);
    const JobHasEnded unknown = [](const std::string&, const std::string&) { return std::nullopt; };
    if (!taker || why_gone(*taker, self_, unknown).empty()) lost();
    std::error_code ignored;
    fs::remove(guard, ignored);  // its maker died within the moment a takeover takes
    if (!create_exclusively(guard, to_text(self_))) lost();
  }
  const bool still = read_holder(path_) == stale;
  if (still) write_file_atomically(path_, to_text(self_), ExitCode::usage);
  std::error_code ignored;
  fs::remove(guard, ignored);
  if (!still) lost();
}

RunLock::~RunLock() {
  try {
    const std::optional<LockHolder> holder = read_holder(path_);
    std::error_code ignored;
    if (holder && holder->token == self_.token) fs::remove(path_, ignored);
  } catch (...) {
    // the next run finds a dead process and takes over
  }
}

}  // namespace lamina
