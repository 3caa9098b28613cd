# Headers of other projects that most of our files include, compiled once for
# each library, and once for all tests and benchmarks of a kind: half the time of
# a build is spent reading them. Without it, a build shows which file misses an
# include.
set(ATTENDANT_PRECOMPILE "" CACHE STRING
  "For what to precompile the headers of other projects: \"\", MOST (tests, and libraries of many sources) or ALL")
set_property(CACHE ATTENDANT_PRECOMPILE PROPERTY STRINGS "" MOST ALL)

if(ATTENDANT_PRECOMPILE)
  # Who shares a precompiled header must agree on this, and ccache on the rest.
  add_compile_options(-pthread
    "$<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>"
    $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
endif()

set(core_headers <algorithm> <atomic> <bit> <chrono> <cmath> <cstdint> <deque>
  <filesystem> <fstream> <functional> <limits> <map> <memory> <numeric>
  <optional> <random> <set> <span> <sstream> <string> <thread> <utility>
  <variant> <vector>
  <absl/container/btree_map.h> <absl/container/flat_hash_map.h>
  <absl/container/flat_hash_set.h> <absl/functional/function_ref.h>
  <absl/status/statusor.h> <absl/strings/str_cat.h> <absl/strings/str_format.h>
  <absl/strings/str_join.h> <absl/strings/str_split.h>
  <absl/synchronization/mutex.h> <absl/time/clock.h> <absl/time/time.h>)
set(rpc_headers ${core_headers} <grpcpp/grpcpp.h>
  <google/protobuf/text_format.h> <google/protobuf/util/json_util.h>
  <nlohmann/json.hpp> <attendant/v1/alias_service.grpc.pb.h>
  <attendant/v1/attention_service.grpc.pb.h>
  <attendant/v1/catalog_service.grpc.pb.h>
  <attendant/v1/item_service.grpc.pb.h>
  <attendant/v1/model_service.grpc.pb.h>
  <attendant/v1/sequence_service.grpc.pb.h>
  <attendant/v1/snapshot_service.grpc.pb.h>)
set(test_headers <gmock/gmock.h> <gtest/gtest.h>)

# Sets `kind` to that of a target that depends on these: core or rpc.
function(attendant_kind_of_headers kind)
  set(${kind} core PARENT_SCOPE)
  if("${ARGN}" MATCHES
      "attendant::(proto|client|commands|load|service|integration_support)")
    set(${kind} rpc PARENT_SCOPE)
  endif()
endfunction()

# attendant_precompile(TARGET COUNT DEPS...): for a library whose sources
# are compiled in COUNT parts.
function(attendant_precompile target count)
  # To compile them takes as long as eight parts save: of twenty, half is gained.
  if(ATTENDANT_PRECOMPILE STREQUAL "ALL" OR
      (ATTENDANT_PRECOMPILE STREQUAL "MOST" AND count GREATER_EQUAL 20))
    attendant_kind_of_headers(kind ${ARGN})
    target_precompile_headers(${target} PRIVATE ${${kind}_headers})
  endif()
endfunction()

# attendant_precompile_test(TARGET DEPS...): for a program with
# attendant_test_options.
function(attendant_precompile_test target)
  if(NOT ATTENDANT_PRECOMPILE)
    return()
  endif()
  attendant_kind_of_headers(kind ${ARGN})
  set(owner attendant_${kind}_test_headers)
  if(NOT TARGET ${owner})
    file(WRITE ${PROJECT_BINARY_DIR}/${owner}.cc "")
    add_library(${owner} OBJECT ${PROJECT_BINARY_DIR}/${owner}.cc)
    target_link_libraries(${owner} PRIVATE attendant_options GTest::gmock
      $<$<STREQUAL:${kind},rpc>:attendant::proto>
      $<$<STREQUAL:${kind},core>:attendant::base>)
    target_compile_options(${owner} PRIVATE ${attendant_test_options})
    target_precompile_headers(${owner} PRIVATE ${${kind}_headers}
      ${test_headers})
  endif()
  target_precompile_headers(${target} REUSE_FROM ${owner})
endfunction()
