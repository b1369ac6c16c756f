#include "openblas_library.hpp"

#include <cstdint>
#include <optional>
#include <string>

#include <lamina/base/address_space.hpp>
#include <lamina/base/check.hpp>
#include <lamina/base/error.hpp>

#include <dlfcn.h>
#include <stdlib.h>

namespace lamina::cpu {
namespace {

// The file that the build found, and the name that systems give it.
constexpr const char* names[] = {LAMINA_OPENBLAS_FILE, "libopenblas.so.0"};

constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20;
constexpr std::uint64_t code_bytes = 48 * mebibyte;     // of the library and of what it loads
constexpr std::uint64_t buffer_bytes = 128 * mebibyte;  // one for each thread, and one for who calls
constexpr std::uint64_t stack_bytes = 8 * mebibyte;

std::uint64_t needed_bytes(int threads) {
  return code_bytes + buffer_bytes + static_cast<std::uint64_t>(threads) * (buffer_bytes + stack_bytes);
}

// Says how many threads to prepare for while the library is loaded: without it there is a buffer for every core, which
// on a large node is more address space than many a limit leaves.
class PreparedThreads {
 public:
  explicit PreparedThreads(int threads) {
    if (const char* before = ::getenv(name)) before_ = before;
    ::setenv(name, std::to_string(threads).c_str(), 1);
  }
  PreparedThreads(const PreparedThreads&) = delete;
  PreparedThreads& operator=(const PreparedThreads&) = delete;
  ~PreparedThreads() {
    if (before_) {
      ::setenv(name, before_->c_str(), 1);
    } else {
      ::unsetenv(name);
    }
  }

 private:
  static constexpr const char* name = "OMP_NUM_THREADS";
  std::optional<std::string> before_;
};

void* open_library() {
  std::string problems;
  for (const char* name : names) {
    if (void* library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
    problems += std::string(problems.empty() ? "" : ", ") + ::dlerror();
  }
  throw UsageError(one_line("cannot load OpenBLAS", problems, "install it (libopenblas0-openmp) or rebuild lamina"));
}

template <typename Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
}

OpenBlas functions_of(void* library) {
  OpenBlas found;
  find(library, "cblas_sgemm", found.sgemm);
  find(library, "cblas_ssyrk", found.ssyrk);
  find(library, "openblas_get_corename", found.get_corename);
  find(library, "openblas_get_parallel", found.get_parallel);
  find(library, "openblas_set_num_threads", found.set_num_threads);
  find(library, "gotoblas_dynamic_init", found.dynamic_init);
  find(library, "gotoblas_dynamic_quit", found.dynamic_quit);
  if (found.sgemm == nullptr || found.ssyrk == nullptr || found.get_corename == nullptr ||
      found.get_parallel == nullptr || found.set_num_threads == nullptr) {
    throw UsageError(one_line("cannot use OpenBLAS", "functions are missing in the library that was found",
                              "install the version that lamina was built with"));
  }
  return found;
}

// The caller's buffer is taken now, while it is known to be there, and stays.
void take_first_buffer(const OpenBlas& library) {
  const float one = 1;
  float product = 0;
  library.sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, 1, 1, 1, 1, &one, 1, &one, 1, 0, &product, 1);
}

// Never unloaded: its threads and buffers live as long as the process.
std::optional<OpenBlas> loaded;
int most_threads = 0;

}  // namespace

const OpenBlas& load_openblas(int threads) {
  if (threads > most_threads) {
    const std::uint64_t had = most_threads > 0 ? needed_bytes(most_threads) : 0;
    require_address_space(needed_bytes(threads) - had, "OpenBLAS and its buffers");
    most_threads = threads;
  }
  if (!loaded) {
    const PreparedThreads prepared(threads);
    loaded = functions_of(open_library());
    take_first_buffer(*loaded);
  }
  return *loaded;
}

const OpenBlas& openblas() {
  require(loaded.has_value(), "OpenBLAS is loaded before the first product");
  return *loaded;
}

}  // namespace lamina::cpu
