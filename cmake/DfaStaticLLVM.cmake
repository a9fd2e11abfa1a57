# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# The self-contained link, for wheels and tarballs. MLIR's exported archives
# still name the shared libraries LLVM and MLIR; those two imported targets are
# pointed at a linker script that groups the static LLVM archives instead.

find_program(DFA_LLVM_CONFIG NAMES llvm-config
             PATHS "${LLVM_TOOLS_BINARY_DIR}" NO_DEFAULT_PATH REQUIRED)

# Host code generation, NVPTX, the JIT, and what MLIR's translation uses.
set(DFA_LLVM_COMPONENTS
    core nvptx native orcjit passes irreader linker bitreader bitwriter
    perfjitevents debuginfodwarf frontendopenmp frontenddriver
    frontendoffloading targetparser remarks supportlsp)

# LLVM's compression. Machines that only run programs have the versioned name.
find_library(DFA_ZLIB NAMES z libz.so.1 REQUIRED)
find_library(DFA_ZSTD NAMES zstd libzstd.so.1 REQUIRED)

execute_process(
  COMMAND "${DFA_LLVM_CONFIG}" --libfiles --link-static ${DFA_LLVM_COMPONENTS}
  OUTPUT_VARIABLE files OUTPUT_STRIP_TRAILING_WHITESPACE
  COMMAND_ERROR_IS_FATAL ANY)
separate_arguments(files UNIX_COMMAND "${files}")
# Polly is listed by the packages and used by nothing here.
list(FILTER files EXCLUDE REGEX "libPolly")
list(JOIN files "\n  " files)

# With the extension .so, CMake accepts it as the location of a shared library;
# the linker reads it as what it is, a script.
set(script "${PROJECT_BINARY_DIR}/static-llvm/libDfaStaticLLVM.so")
file(WRITE "${script}" "GROUP(\n  ${files}\n)\n")

foreach(target IN ITEMS LLVM MLIR)
  get_target_property(configurations ${target} IMPORTED_CONFIGURATIONS)
  foreach(configuration IN LISTS configurations)
    set_target_properties(${target} PROPERTIES
      IMPORTED_LOCATION_${configuration} "${script}"
      IMPORTED_SONAME_${configuration} ""
      IMPORTED_NO_SONAME_${configuration} TRUE)
  endforeach()
  set_property(TARGET ${target} APPEND PROPERTY
    INTERFACE_LINK_LIBRARIES "${DFA_ZLIB}" "${DFA_ZSTD}")
endforeach()

# A shared object must not offer this LLVM to the process it is loaded into.
add_link_options(-Wl,--exclude-libs,ALL -Wl,--gc-sections)
