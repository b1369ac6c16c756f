/* Makes one call on files slow, as a loaded disk does: LD_PRELOAD, and LAMINA_TEST_SLOW=CALL:RANK:SECONDS, where CALL is
 * write, sync or read. The first such call of that rank on a file of a checkpoint sleeps. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static int of_checkpoint(int fd) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  if (length <= 0) return 0;
  path[length] = '\0';
  return strstr(path, "/step_") != NULL;
}

static void maybe_sleep(const char* call, int fd) {
  static int done = 0;
  const char* asked = getenv("LAMINA_TEST_SLOW");
  const char* rank = getenv("OMPI_COMM_WORLD_RANK");
  const size_t length = strlen(call);
  if (done || asked == NULL || rank == NULL || strncmp(asked, call, length) != 0 || asked[length] != ':') return;
  char* end = NULL;
  if (strtol(asked + length + 1, &end, 10) != atoi(rank) || !of_checkpoint(fd)) return;
  done = 1;
  usleep((useconds_t)(atof(end + 1) * 1e6));
}

ssize_t pwrite64(int fd, const void* data, size_t bytes, off64_t offset) {
  ssize_t (*next)(int, const void*, size_t, off64_t) = dlsym(RTLD_NEXT, "pwrite64");
  maybe_sleep("write", fd);
  return next(fd, data, bytes, offset);
}
ssize_t pread64(int fd, void* data, size_t bytes, off64_t offset) {
  ssize_t (*next)(int, void*, size_t, off64_t) = dlsym(RTLD_NEXT, "pread64");
  maybe_sleep("read", fd);
  return next(fd, data, bytes, offset);
}
ssize_t pwrite(int fd, const void* data, size_t bytes, off_t offset) { return pwrite64(fd, data, bytes, offset); }
ssize_t pread(int fd, void* data, size_t bytes, off_t offset) { return pread64(fd, data, bytes, offset); }
int fsync(int fd) {
  int (*next)(int) = dlsym(RTLD_NEXT, "fsync");
  maybe_sleep("sync", fd);
  return next(fd);
}
