# Installs the core component, and builds and runs a project that uses it.
# cmake -D BUILD_DIR=... -D SOURCE_DIR=... -D WORK_DIR=... -D GENERATOR=...
#   -D COMPILER=... -D BUILD_TYPE=... -D SANITIZE=... -P run.cmake
set(prefix ${WORK_DIR}/prefix)
set(build ${WORK_DIR}/build)
set(data ${WORK_DIR}/data)
file(REMOVE_RECURSE ${prefix} ${build} ${data})

set(flags "")
if(SANITIZE)
  set(flags "-fsanitize=${SANITIZE}")
endif()

execute_process(COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET
  COMMAND ${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${prefix}
    --component core)
execute_process(COMMAND_ERROR_IS_FATAL ANY
  COMMAND ${CMAKE_COMMAND} -S ${SOURCE_DIR} -B ${build} -G ${GENERATOR}
    -D CMAKE_PREFIX_PATH=${prefix} -D CMAKE_CXX_COMPILER=${COMPILER}
    -D CMAKE_BUILD_TYPE=${BUILD_TYPE} -D CMAKE_CXX_FLAGS=${flags})
execute_process(COMMAND_ERROR_IS_FATAL ANY
  COMMAND ${CMAKE_COMMAND} --build ${build})
execute_process(COMMAND_ERROR_IS_FATAL ANY COMMAND ${build}/consumer ${data})
file(REMOVE_RECURSE ${data})
