# One call for each target: what it is made of and what it may use.
#
# attendant_library(base SRCS ... HDRS ... DEPS ... PRIVATE_DEPS ... [INSTALL]
#     [NUMERIC] [UNITY])
#   makes target attendant_base with the alias attendant::base. INSTALL adds it
#   to the installed package, with its headers. NUMERIC: its loops are optimised
#   even where nothing else is. UNITY: see ATTENDANT_UNITY.
# attendant_binary(attendantd SRCS ... DEPS ...)
# attendant_test(state_test SRCS ... DEPS ... [LABELS ...] [TIMEOUT seconds])
#   a GoogleTest binary, run by ctest as one test.
# attendant_benchmark(kernels_benchmark SRCS ... DEPS ...)
#
# What anonymous namespaces of a library with UNITY hold, or those of a test,
# differs in name throughout its files.
include(GNUInstallDirs)
include(CheckLinkerFlag)

# Most of the time of a build is spent reading headers. Without it, a build shows
# which file misses an include, and compiles one file where one has changed.
option(ATTENDANT_UNITY "Compile sources of a target eight at a time" OFF)

add_library(attendant_options INTERFACE)
target_compile_options(attendant_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual
  $<$<BOOL:${ATTENDANT_WERROR}>:-Werror>
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>
  # A sixth to a quarter of the time goes into collecting garbage, for as much
  # less of memory: 1.1 GiB in place of 1.4 for one of the largest parts.
  "$<$<CXX_COMPILER_ID:GNU>:SHELL:--param ggc-min-heapsize=1000000>")
# See core/base/fail_point.h.
target_compile_definitions(attendant_options INTERFACE
  $<$<NOT:$<BOOL:${ATTENDANT_DEVELOPER}>>:ATTENDANT_NO_FAIL_POINTS>)
if(ATTENDANT_SANITIZE)
  add_compile_options(-fsanitize=${ATTENDANT_SANITIZE}
    -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${ATTENDANT_SANITIZE})
  # GCC sees ghosts in instrumented code, in std::regex for one.
  add_compile_options($<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
endif()

function(attendant_library name)
  cmake_parse_arguments(ARG "INSTALL;NUMERIC;UNITY" "" "SRCS;HDRS;DEPS;PRIVATE_DEPS" ${ARGN})
  set(target attendant_${name})
  if(ARG_SRCS)
    add_library(${target} STATIC ${ARG_SRCS})
    target_link_libraries(${target} PUBLIC ${ARG_DEPS}
      PRIVATE ${ARG_PRIVATE_DEPS} $<BUILD_INTERFACE:attendant_options>)
    list(LENGTH ARG_SRCS count)
    # In a release, what is made of a loop does not depend on what stands beside
    # it.
    if(ARG_UNITY AND ATTENDANT_UNITY AND
        (ATTENDANT_SANITIZE OR NOT ARG_NUMERIC))
      set_target_properties(${target} PROPERTIES UNITY_BUILD ON)
      math(EXPR count "(${count} + 7) / 8")
    endif()
    attendant_precompile(${target} ${count} ${ARG_DEPS})
    if(ARG_NUMERIC)
      target_compile_options(${target} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O1>)
    endif()
    set(scope PUBLIC)
  else()
    add_library(${target} INTERFACE)
    target_link_libraries(${target} INTERFACE ${ARG_DEPS})
    set(scope INTERFACE)
  endif()
  add_library(attendant::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(${target} ${scope}
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/attendant>)
  target_compile_features(${target} ${scope} cxx_std_20)
  if(ARG_INSTALL)
    target_sources(${target} ${scope} FILE_SET HEADERS
      BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${ARG_HDRS})
    install(TARGETS ${target} EXPORT attendant
      ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT core
      FILE_SET HEADERS
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/attendant COMPONENT core)
  endif()
endfunction()

function(attendant_binary name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SRCS})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} attendant_options)
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  install(TARGETS ${name} COMPONENT attendant)
endfunction()

# Tests are compiled once and run once: a third less to compile.
set(attendant_test_options $<$<CONFIG:Release,RelWithDebInfo>:-O0>)
if(ATTENDANT_SANITIZE MATCHES "undefined")
  # A fifth of the time, for checks of each pointer that a test itself follows.
  list(APPEND attendant_test_options
    -fno-sanitize=null,alignment,object-size)
endif()
# Links a test in a third of the time that GNU's other linker takes.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  check_linker_flag(CXX -fuse-ld=gold ATTENDANT_HAS_GOLD)
endif()

function(attendant_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SRCS;DEPS;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SRCS})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} attendant_options
    GTest::gmock_main)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  attendant_precompile_test(${name} ${ARG_DEPS})
  target_compile_options(${name} PRIVATE ${attendant_test_options})
  if(ATTENDANT_HAS_GOLD)
    target_link_options(${name} PRIVATE -fuse-ld=gold)
  endif()
  if(ATTENDANT_UNITY)
    # What tests share may replace a function of the system, and reads a few
    # headers alone.
    set(shared ${ARG_SRCS})
    list(FILTER shared INCLUDE REGEX "^/")
    set_source_files_properties(${shared} PROPERTIES
      SKIP_UNITY_BUILD_INCLUSION ON SKIP_PRECOMPILE_HEADERS ON)
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 240)
  endif()
  # Sanitizers slow a test down by as much.
  if(ATTENDANT_SANITIZE)
    math(EXPR ARG_TIMEOUT "3 * ${ARG_TIMEOUT}")
  endif()
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT}
    LABELS "${ARG_LABELS}")
endfunction()

function(attendant_benchmark name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SRCS})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} attendant_options
    benchmark::benchmark_main)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
endfunction()
