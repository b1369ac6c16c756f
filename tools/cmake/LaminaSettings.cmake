# Language level, dependencies and output folders shared by every target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)  # an installed program finds the MPI and HDF5 it was linked with
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

find_package(Threads REQUIRED)
find_package(MPI REQUIRED COMPONENTS C)
find_package(OpenMP REQUIRED COMPONENTS CXX)
set(HDF5_PREFER_PARALLEL OFF)
find_package(HDF5 REQUIRED COMPONENTS C)
find_package(OpenBLAS REQUIRED)
find_package(Boost 1.74 REQUIRED COMPONENTS program_options)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(UTF8PROC REQUIRED IMPORTED_TARGET libutf8proc)

# OpenBLAS is loaded when it is needed (src/backends/cpu/openblas_library.hpp), so nothing links it.
list(GET OpenBLAS_LIBRARIES 0 LAMINA_OPENBLAS_FILE)
if(NOT LAMINA_OPENBLAS_FILE MATCHES "\\.(so|dylib)")
  message(FATAL_ERROR "a shared OpenBLAS is needed, but ${LAMINA_OPENBLAS_FILE} was found")
endif()
add_library(lamina_openblas INTERFACE)
target_include_directories(lamina_openblas SYSTEM INTERFACE ${OpenBLAS_INCLUDE_DIRS})
target_compile_definitions(lamina_openblas INTERFACE "LAMINA_OPENBLAS_FILE=\"${LAMINA_OPENBLAS_FILE}\"")
target_link_libraries(lamina_openblas INTERFACE ${CMAKE_DL_LIBS})

add_library(lamina_hdf5_library INTERFACE)
target_include_directories(lamina_hdf5_library SYSTEM INTERFACE ${HDF5_C_INCLUDE_DIRS})
target_link_libraries(lamina_hdf5_library INTERFACE ${HDF5_C_LIBRARIES})

# MPI's C interface only: mpi.h must not pull in the removed C++ bindings.
add_library(lamina_mpi_library INTERFACE)
target_compile_definitions(lamina_mpi_library INTERFACE OMPI_SKIP_MPICXX=1 MPICH_SKIP_MPICXX=1)
target_link_libraries(lamina_mpi_library INTERFACE MPI::MPI_C)

add_library(lamina_compile_options INTERFACE)
target_compile_options(lamina_compile_options INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wnon-virtual-dtor
  -Woverloaded-virtual -Wno-error=deprecated-declarations)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 sees overlaps in std::string's operator+ that cannot be (GCC bug 105651).
  target_compile_options(lamina_compile_options INTERFACE -Wno-restrict)
endif()
if(LAMINA_WARNINGS_AS_ERRORS)
  target_compile_options(lamina_compile_options INTERFACE -Werror)
endif()
if(LAMINA_SANITIZE)
  target_compile_options(lamina_compile_options INTERFACE
    -fsanitize=${LAMINA_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(lamina_compile_options INTERFACE -fsanitize=${LAMINA_SANITIZE})
endif()

# Numeric kernels: vector instructions, and no contraction the source does not ask for, so that an element's value does not
# depend on whether it fell into a vector body or a tail. That is what makes results independent of sharding.
add_library(lamina_kernel_options INTERFACE)
target_compile_options(lamina_kernel_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-O3;-ffp-contract=off;-fno-math-errno;-fno-trapping-math>)
if(LAMINA_CPU_ARCH AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  target_compile_options(lamina_kernel_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-march=${LAMINA_CPU_ARCH};-mprefer-vector-width=256>)
endif()
target_link_libraries(lamina_kernel_options INTERFACE OpenMP::OpenMP_CXX)

set(LAMINA_MPIEXEC_FLAGS --oversubscribe --bind-to none CACHE STRING "Further flags of mpiexec in tests")
# Ranks outnumber cores here: waits inside MPI must give way. Leaks inside Open MPI are not ours.
set(LAMINA_TEST_ENVIRONMENT OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1
    OMPI_MCA_rmaps_base_oversubscribe=1 OMP_NUM_THREADS=1 ASAN_OPTIONS=detect_leaks=0
    TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/support/tsan_suppressions.txt)
