# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Helpers for code that uses LLVM and MLIR: compile flags, include paths, and
# the two ways of linking (libMLIR.so, or everything inside).

list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
include(TableGen)
include(AddLLVM)
include(AddMLIR)

if(DFA_STATIC_LLVM)
  include(DfaStaticLLVM)
else()
  # One copy of MLIR in a process: static archives beside libMLIR.so would
  # register the same options and type ids twice.
  set(MLIR_LINK_MLIR_DYLIB ON)
  set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)
endif()

# For tblgen and for every target below this directory. Not for runtime/, which
# is configured before this file is read.
include_directories(SYSTEM ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
include_directories(
  "${PROJECT_SOURCE_DIR}/dialects" "${PROJECT_BINARY_DIR}/dialects"
  "${PROJECT_SOURCE_DIR}/include" "${PROJECT_BINARY_DIR}/include"
  "${PROJECT_SOURCE_DIR}/runtime/include")

# All generated headers. Libraries wait for it, so that no folder must know
# which .td file another folder's header needs.
add_custom_target(dfa-headers)

# dfa_add_tablegen(<name>): closes a run of mlir_tablegen() calls.
macro(dfa_add_tablegen name)
  add_public_tablegen_target(${name})
  add_dependencies(dfa-headers ${name})
endmacro()

# LLVM's own compile flags. RTTI must agree with LLVM's, or typeinfo symbols
# are missing at link time.
#
# Visibility must be the default one beside libMLIR.so: MLIR tells traits apart
# by an address that one inline function holds, and a hidden copy of it in our
# objects is another address. Modules hide their symbols when they are linked.
function(dfa_use_llvm target)
  set_target_properties(${target} PROPERTIES
    CXX_VISIBILITY_PRESET default VISIBILITY_INLINES_HIDDEN OFF)
  separate_arguments(definitions NATIVE_COMMAND "${LLVM_DEFINITIONS}")
  target_compile_definitions(${target} PRIVATE ${definitions})
  # Generated code leaves parameters unused.
  set(flags -Wno-unused-parameter)
  if(NOT LLVM_ENABLE_RTTI)
    list(APPEND flags -fno-rtti)
  endif()
  if(NOT LLVM_ENABLE_EH)
    list(APPEND flags -fno-exceptions)
  endif()
  target_compile_options(${target} PRIVATE
    "$<$<COMPILE_LANGUAGE:CXX>:${flags}>")
  add_dependencies(${target} dfa-headers)
endfunction()

# dfa_link_mlir(<target> PUBLIC|PRIVATE <MLIR libraries>...)
#
# Names are checked in both ways of linking; else a wrong one would show only in
# the self-contained link.
function(dfa_link_mlir target scope)
  foreach(library IN LISTS ARGN)
    if(NOT TARGET ${library})
      message(FATAL_ERROR "${target}: MLIR has no library '${library}'")
    endif()
  endforeach()
  if(DFA_STATIC_LLVM)
    target_link_libraries(${target} ${scope} ${ARGN})
  else()
    target_link_libraries(${target} ${scope} MLIR LLVM)
  endif()
endfunction()

# dfa_link_mlir_capi(<target> PUBLIC|PRIVATE <MLIRCAPI libraries>...)
#
# libMLIR.so exports no C API. The archives name MLIR's other archives as their
# dependencies; by file they bring nothing but themselves.
function(dfa_link_mlir_capi target scope)
  if(DFA_STATIC_LLVM)
    target_link_libraries(${target} ${scope} ${ARGN})
  else()
    foreach(library IN LISTS ARGN)
      target_link_libraries(${target} ${scope} "$<TARGET_FILE:${library}>")
    endforeach()
    target_link_libraries(${target} ${scope} MLIR LLVM)
  endif()
endfunction()

# dfa_add_library(<name> <source>... [LINK <our libraries>...]
#                 [MLIR <MLIR libraries>...] [DEPENDS <targets>...] [NO_PCH])
#
# A static library of the compiler. MLIR names what the sources use: the
# self-contained link needs it, libMLIR.so holds everything.
function(dfa_add_library name)
  cmake_parse_arguments(ARG "NO_PCH" "" "LINK;MLIR;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  dfa_use_llvm(${name})
  target_link_libraries(${name} PUBLIC dfa_headers_base ${ARG_LINK})
  dfa_link_mlir(${name} PUBLIC ${ARG_MLIR})
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
  if(DFA_PRECOMPILE_HEADERS AND NOT ARG_NO_PCH)
    target_precompile_headers(${name} REUSE_FROM dfa_precompiled)
    # Lets ccache see which precompiled header was used.
    target_compile_options(${name} PRIVATE
      "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>")
  endif()
endfunction()

# The headers that nearly every file of lib/ includes, compiled once.
if(DFA_PRECOMPILE_HEADERS)
  file(WRITE "${PROJECT_BINARY_DIR}/dfa_precompiled.cpp" "")
  add_library(dfa_precompiled OBJECT EXCLUDE_FROM_ALL
    "${PROJECT_BINARY_DIR}/dfa_precompiled.cpp")
  dfa_use_llvm(dfa_precompiled)
  target_link_libraries(dfa_precompiled PRIVATE dfa_headers_base)
  target_precompile_headers(dfa_precompiled PRIVATE
    <mlir/IR/Builders.h>
    <mlir/IR/BuiltinAttributes.h>
    <mlir/IR/BuiltinOps.h>
    <mlir/IR/BuiltinTypes.h>
    <mlir/IR/Diagnostics.h>
    <mlir/IR/OpDefinition.h>
    <mlir/IR/OpImplementation.h>
    <mlir/IR/PatternMatch.h>
    <mlir/IR/SymbolTable.h>
    <mlir/Pass/Pass.h>)
endif()
