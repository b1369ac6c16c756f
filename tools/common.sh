#!/bin/bash
# Shared by tools/quickstart and tools/check: sourced, not run.

heading() { printf '\n=== %s\n' "$*"; }

# Prints the reason and ends the script.
refuse() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 64
}

wanted_packages() { sed 's/#.*//' tools/packages.txt; }

missing_packages() {
  local package
  for package in $(wanted_packages); do
    # -W fails for packages it has never heard of; removed ones are known but not installed.
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || echo "$package"
  done
}

# Runs a command without its chatter, which is shown only when it fails.
quietly() {
  local log
  log=$(mktemp)
  if ! "$@" >"$log" 2>&1; then
    printf '$ %s\n' "$*" >&2
    tail -n 40 "$log" >&2
    rm -f "$log"
    return 1
  fi
  rm -f "$log"
}

# Installs what tools/packages.txt names and this machine lacks. Needs root or sudo only if something is missing.
install_packages() {
  command -v dpkg-query >/dev/null || refuse "no dpkg: packages are installed on Debian 12 only; install the equivalents of" \
    "tools/packages.txt yourself and pass --no-packages"
  local missing as_root=()
  mapfile -t missing < <(missing_packages)
  if [ "${#missing[@]}" -eq 0 ]; then
    echo "all packages are installed"
    return
  fi
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || refuse "packages are missing and this is neither root nor is there sudo; as root run:" \
      "apt-get install --no-install-recommends ${missing[*]}"
    as_root=(sudo)
  fi
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get -q -o Acquire::Retries=3)
  echo "reading the lists of packages (some 10 MB)"
  quietly "${apt[@]}" update || refuse "apt-get update failed"
  echo "installing: ${missing[*]}"
  # --assume-no says what would come, and ends with an error.
  "${apt[@]}" --assume-no install --no-install-recommends "${missing[@]}" 2>/dev/null |
    sed -n 's/^Need to get \(.*\) of archives.*/downloading \1/p; s/^After this operation, \(.*\) of additional.*/using \1 of disk/p' ||
    true
  quietly "${apt[@]}" -y install --no-install-recommends "${missing[@]}" || refuse "apt-get install failed"
}

# Compilers at once: one a core, but 1.5 GB of memory each.
build_jobs() {
  local cores memory
  cores=$(nproc)
  memory=$(awk '/MemAvailable/ {print int($2 / 1500000)}' /proc/meminfo)
  [ "$memory" -lt 1 ] && memory=1
  echo $((cores < memory ? cores : memory))
}

# Fills `mpirun_command` for N ranks: Open MPI refuses root and more ranks than cores unless told otherwise.
set_mpirun_command() {
  local ranks=$1
  mpirun_command=(mpirun -n "$ranks")
  [ "$(id -u)" -eq 0 ] && mpirun_command+=(--allow-run-as-root)
  [ "$(nproc)" -lt "$ranks" ] && mpirun_command+=(--oversubscribe --bind-to none)
  return 0
}
