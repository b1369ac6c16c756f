#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include <lamina/base/error.hpp>
#include <lamina/base/file.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace lamina {

namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] int close_checked() { return ::close(std::exchange(fd_, -1)); }

 private:
  int fd_;
};

void write_synced(const std::filesystem::path& path, std::string_view content) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (file.get() < 0) throw std::system_error(errno, std::generic_category());
  while (!content.empty()) {
    const ssize_t n = ::write(file.get(), content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw std::system_error(errno, std::generic_category());
    content.remove_prefix(static_cast<std::size_t>(n));
  }
  if (::fsync(file.get()) != 0 || file.close_checked() != 0) throw std::system_error(errno, std::generic_category());
}

}  // namespace

std::string read_file(const std::filesystem::path& path) {
  if (std::filesystem::is_directory(path)) {
    throw DataError(one_line(fmt::format("cannot read {}", path.string()), "it is a folder", "name a file"));
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    throw DataError(one_line(fmt::format("cannot read {}", path.string()), std::strerror(errno),
                             "check the path and its permissions"));
  }
  std::ostringstream out;
  out << in.rdbuf();
  if (in.bad()) throw DataError(one_line(fmt::format("cannot read {}", path.string()), std::strerror(errno)));
  return std::move(out).str();
}

namespace {

// "org/name", where no folder `org` is here.
bool reads_like_hub_id(const std::filesystem::path& path) {
  const std::string text = path.string();
  const std::size_t slash = text.find('/');
  if (slash == 0 || slash == std::string::npos || slash + 1 == text.size() || text[0] == '.' || text[0] == '~')
    return false;
  const auto allowed = [](unsigned char c) { return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_'; };
  return std::ranges::all_of(text.substr(0, slash), allowed) && std::ranges::all_of(text.substr(slash + 1), allowed) &&
         !std::filesystem::exists(path.parent_path());
}

// A folder of a run or of a checkpoint: its weights are in shards, its config.json elsewhere or alone.
void refuse_run_folder(const std::filesystem::path& folder) {
  const std::string name = folder.string();
  const bool checkpoint = std::filesystem::exists(folder / "manifest.json");
  bool run = false;
  std::error_code unreadable;  // is told by whoever reads the folder
  for (const auto& entry : std::filesystem::directory_iterator(folder, unreadable))
    run = run || (entry.path().filename().string().starts_with("step_") && entry.is_directory());
  if (!checkpoint && !run) return;
  const bool has_model = run && std::filesystem::exists(folder / "model" / "config.json");
  throw DataError(
      one_line(fmt::format("{} is a {}, not a model", name, checkpoint ? "checkpoint" : "run folder"),
               "its weights are in shards, one a rank",
               has_model ? fmt::format("name {}", (folder / "model").string())
                         : fmt::format("make a model of it: lamina-consolidate {} MODEL_FOLDER, and name that", name)));
}

}  // namespace

void require_model_folder(const std::filesystem::path& folder) {
  std::error_code error;
  if (std::filesystem::is_directory(folder, error) && !std::filesystem::exists(folder / "config.json", error) && !error)
    refuse_run_folder(folder);
  if (std::filesystem::exists(folder, error) || (error && error != std::errc::no_such_file_or_directory)) return;
  const std::string name = folder.string();
  if (!reads_like_hub_id(folder)) {
    throw DataError(one_line(fmt::format("cannot read the model {}", name), "there is no such folder",
                             "name the folder that holds its config.json"));
  }
  throw DataError(one_line(fmt::format("cannot read the model {}", name),
                           "there is no such folder, and lamina downloads nothing from the Hugging Face hub",
                           fmt::format("fetch it with `hf download {} --local-dir {}` and name the folder {}", name,
                                       folder.filename().string(), folder.filename().string())));
}

void sync_path(const std::filesystem::path& path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0 || ::fsync(file.get()) != 0) throw std::system_error(errno, std::generic_category());
}

void write_file_atomically(const std::filesystem::path& path, std::string_view content, ExitCode code) {
  const std::filesystem::path temporary = path.string() + fmt::format(".tmp-{}", ::getpid());
  try {
    write_synced(temporary, content);
    std::filesystem::rename(temporary, path);
    sync_path(path.has_parent_path() ? path.parent_path() : std::filesystem::path("."));
  } catch (const std::system_error& error) {
    std::error_code ignored;
    std::filesystem::remove(temporary, ignored);
    throw Error(code, one_line(fmt::format("cannot write {}", path.string()), error.code().message(),
                               "free space or choose another folder"));
  }
}

}  // namespace lamina
