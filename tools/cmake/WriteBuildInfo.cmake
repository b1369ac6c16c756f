# Runs at build time, so that the commit is that of the tree being built. The output changes only when a fact does.
execute_process(COMMAND git -C "${SOURCE_DIR}" rev-parse --short=12 HEAD
  OUTPUT_VARIABLE LAMINA_COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  set(LAMINA_COMMIT unknown)
else()
  execute_process(COMMAND git -C "${SOURCE_DIR}" status --porcelain -uno OUTPUT_VARIABLE changes ERROR_QUIET)
  if(changes)
    string(APPEND LAMINA_COMMIT "-dirty")
  endif()
endif()
configure_file("${INPUT}" "${OUTPUT}" @ONLY)
