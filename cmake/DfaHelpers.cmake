# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Helpers that need no LLVM: folders, tools and unit tests.

# Adds a folder of the tree if it is there. A source package may leave out
# test/ or python/; a missing folder is then no error.
function(dfa_add_subdirectory folder)
  if(EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/${folder}/CMakeLists.txt")
    add_subdirectory(${folder})
  endif()
endfunction()

# Headers of ours that every part may include: the ABI and the version.
add_library(dfa_headers_base INTERFACE)
target_include_directories(dfa_headers_base INTERFACE
  "${PROJECT_SOURCE_DIR}/include"
  "${PROJECT_BINARY_DIR}/include"
  "${PROJECT_SOURCE_DIR}/runtime/include")

# dfa_add_tool(<name> <source>... [LINK <our libraries>...]
#              [MLIR <MLIR libraries>...])
#
# A program in build/bin. With MLIR (or a LINK library that uses it) the
# compile flags are LLVM's; say NO_LLVM for a tool that touches neither.
function(dfa_add_tool name)
  cmake_parse_arguments(ARG "NO_LLVM" "" "LINK;MLIR" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE dfa_headers_base ${ARG_LINK})
  if(NOT ARG_NO_LLVM)
    dfa_use_llvm(${name})
    dfa_link_mlir(${name} PRIVATE ${ARG_MLIR})
  endif()
  install(TARGETS ${name} RUNTIME DESTINATION bin COMPONENT tools)
endfunction()

# dfa_add_unittest(<name> <source>... [LINK <our libraries>...]
#                  [MLIR <MLIR libraries>...] [TIMEOUT <seconds>])
#
# A GoogleTest program; each TEST becomes one ctest case. Sources compile with
# LLVM's flags only if MLIR is given.
function(dfa_add_unittest name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "LINK;MLIR" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/test/unit")
  # What is tested is optimised; GoogleTest's templates take 40 % less time so.
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O0>)
  target_link_libraries(${name} PRIVATE dfa_headers_base ${ARG_LINK}
    GTest::gmock GTest::gtest GTest::gtest_main)
  if(ARG_MLIR)
    dfa_use_llvm(${name})
    dfa_link_mlir(${name} PRIVATE ${ARG_MLIR})
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  gtest_discover_tests(${name}
    TEST_PREFIX "${name}/" DISCOVERY_TIMEOUT 60
    PROPERTIES TIMEOUT ${ARG_TIMEOUT})
endfunction()
