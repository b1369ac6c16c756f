# lamina_module(NAME SOURCES file... [PUBLIC lib...] [PRIVATE lib...])
#
# One module: static library lamina_NAME from sources in the current folder. Public headers lie in include/lamina/NAME.
# PUBLIC and PRIVATE name what it links; modules are written as lamina_OTHER.
function(lamina_module name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;PUBLIC;PRIVATE")
  set(target lamina_${name})
  add_library(${target} STATIC ${arg_SOURCES})
  target_include_directories(${target}
    PUBLIC "${PROJECT_SOURCE_DIR}/include"
    PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")
  target_link_libraries(${target} PUBLIC ${arg_PUBLIC} PRIVATE lamina_compile_options ${arg_PRIVATE})
endfunction()

# lamina_program(NAME [INSTALL] SOURCES file... LIBS lib...)
#
# INSTALL: a program for users, which `cmake --install` puts into PREFIX/bin.
function(lamina_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "INSTALL" "" "SOURCES;LIBS")
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE lamina_compile_options ${arg_LIBS})
  if(arg_INSTALL)
    install(TARGETS ${name} RUNTIME DESTINATION bin)
  endif()
endfunction()

# lamina_test(NAME SOURCES file... LIBS lib... [RANKS n...] [LABELS label...] [TIMEOUT seconds])
#
# NAME is module/file. Without RANKS: one process with GoogleTest's main. With RANKS: the MPI main (tests/support), one ctest
# entry NAME/npN a rank count. A rank count above MPIEXEC_MAX_NUMPROCS is an error, never a test dropped in silence.
function(lamina_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "SOURCES;LIBS;RANKS;LABELS")
  string(REPLACE "/" "_" target "test_${name}")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  add_executable(${target} ${arg_SOURCES})
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  target_compile_definitions(${target} PRIVATE
    LAMINA_SOURCE_DIR="${PROJECT_SOURCE_DIR}" LAMINA_BIN_DIR="${PROJECT_BINARY_DIR}/bin")
  target_link_libraries(${target} PRIVATE lamina_compile_options ${arg_LIBS} GTest::gtest GTest::gmock)
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
  if(arg_RANKS)
    target_link_libraries(${target} PRIVATE lamina_test_mpi_main)
    foreach(ranks IN LISTS arg_RANKS)
      if(ranks GREATER MPIEXEC_MAX_NUMPROCS)
        message(FATAL_ERROR "test ${name} needs ${ranks} ranks but MPIEXEC_MAX_NUMPROCS is ${MPIEXEC_MAX_NUMPROCS}: "
                            "use a preset, or set -DMPIEXEC_MAX_NUMPROCS=8")
      endif()
      add_test(NAME ${name}/np${ranks}
        COMMAND ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${ranks} ${LAMINA_MPIEXEC_FLAGS} $<TARGET_FILE:${target}>)
      set_tests_properties(${name}/np${ranks} PROPERTIES
        PROCESSORS ${ranks} TIMEOUT ${arg_TIMEOUT} LABELS "mpi;np${ranks};${arg_LABELS}" ENVIRONMENT "${LAMINA_TEST_ENVIRONMENT}")
    endforeach()
  else()
    target_link_libraries(${target} PRIVATE GTest::gtest_main)
    add_test(NAME ${name} COMMAND ${target})
    set_tests_properties(${name} PROPERTIES
      TIMEOUT ${arg_TIMEOUT} LABELS "unit;${arg_LABELS}" ENVIRONMENT "${LAMINA_TEST_ENVIRONMENT}")
  endif()
endfunction()
