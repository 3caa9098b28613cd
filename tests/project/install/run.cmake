# Installs the components attendant and core, and checks that the files fit together.
# cmake -D BUILD_DIR=... -D WORK_DIR=... -D PROTOC=... -P run.cmake
set(prefix ${WORK_DIR}/prefix)
file(REMOVE_RECURSE ${WORK_DIR})
execute_process(COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET
  COMMAND ${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${prefix}
    --component attendant)

foreach(path
    bin/attendant bin/attendant-load bin/attendantd
    etc/attendant/attendantd.toml
    lib/systemd/system/attendantd.service
    share/attendant/grafana/attendant.json
    share/attendant/prometheus/rules.yml
    share/attendant/proto/attendant/v1/attention_service.proto
    share/attendant/service_config.json
    share/doc/attendant/README.md
    share/doc/attendant/changelog.gz
    share/doc/attendant/copyright
    share/doc/attendant/docs/operations.md)
  if(NOT EXISTS ${prefix}/${path})
    message(FATAL_ERROR "not installed: ${path}")
  endif()
endforeach()

foreach(program attendant attendant-load attendantd)
  execute_process(COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET
    COMMAND ${prefix}/bin/${program} --help)
endforeach()

# Every header of core that a header includes is installed.
set(headers ${prefix}-core/include/attendant)
execute_process(COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET
  COMMAND ${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${prefix}-core
    --component core)
file(GLOB_RECURSE files ${headers}/core/*.h)
list(LENGTH files count)
if(count LESS 50)
  message(FATAL_ERROR "${count} headers of core")
endif()
foreach(file ${files})
  file(STRINGS ${file} includes REGEX "^#include \"core/")
  foreach(include ${includes})
    string(REGEX REPLACE "^#include \"(.*)\".*" "\\1" path "${include}")
    if(NOT EXISTS ${headers}/${path})
      message(FATAL_ERROR "${file} includes ${path}, which is not installed")
    endif()
  endforeach()
endforeach()

# The installed protos are complete: clients in other languages need no other files.
set(protos ${prefix}/share/attendant/proto)
file(GLOB_RECURSE files ${protos}/attendant/*.proto)
execute_process(COMMAND_ERROR_IS_FATAL ANY
  COMMAND ${PROTOC} -I${protos} --descriptor_set_out=${WORK_DIR}/protos ${files})

# Each setting of the example, commented out or not, is a flag with its default or
# names a file. The missing certificate ends the server before it serves.
file(READ ${prefix}/etc/attendant/attendantd.toml example)
string(REGEX REPLACE "(^|\n)# ([a-z-]+ = )" "\\1\\2" config "${example}")
string(REPLACE "/etc/attendant/" "${WORK_DIR}/missing/" config "${config}")
string(REGEX MATCHALL "\n[a-z-]+ = [^\n]+" settings "${config}")
file(WRITE ${WORK_DIR}/all.toml "${config}")
execute_process(RESULT_VARIABLE status OUTPUT_QUIET ERROR_VARIABLE refusal
  COMMAND ${prefix}/bin/attendantd --config ${WORK_DIR}/all.toml
    --data-dir ${WORK_DIR}/store --http-listen none)
if(NOT status EQUAL 1 OR NOT refusal MATCHES "missing/server.pem can't be read")
  message(FATAL_ERROR "attendantd with the example: ${status}: ${refusal}")
endif()
string(REGEX REPLACE "\n(tls-cert|tls-key|auth-tokens) = [^\n]+" "" config
  "${config}")
file(WRITE ${WORK_DIR}/all.toml "${config}")
execute_process(COMMAND_ERROR_IS_FATAL ANY OUTPUT_VARIABLE effective
  COMMAND ${prefix}/bin/attendantd --config ${WORK_DIR}/all.toml
    --data-dir ${WORK_DIR}/store --check-config)
set(count 0)
foreach(setting ${settings})
  if(setting MATCHES
      "^\n(data-dir|http-listen|memory-limit|tls-cert|tls-key|auth-tokens) ")
    continue()
  endif()
  string(FIND "\n${effective}" "${setting}\n" position)
  if(position EQUAL -1)
    message(FATAL_ERROR "not the default, or not taken:${setting}")
  endif()
  math(EXPR count "${count} + 1")
endforeach()
if(count LESS 3)
  message(FATAL_ERROR "the example shows ${count} defaults")
endif()

# The unit starts the installed program, in the prefix that it is built for.
file(STRINGS ${prefix}/lib/systemd/system/attendantd.service start
  REGEX "^ExecStart=")
if(NOT start MATCHES
    "=(/.*)/bin/attendantd --config (/.*)/attendant/attendantd.toml$")
  message(FATAL_ERROR "the unit has ${start}")
endif()

# The unit may write only to its StateDirectory, below /var/lib for any prefix.
file(STRINGS ${prefix}/lib/systemd/system/attendantd.service state
  REGEX "^StateDirectory=")
string(REPLACE "StateDirectory=" "/var/lib/" state "${state}")
string(FIND "${example}" "\ndata-dir = \"${state}\"\n" position)
if(position EQUAL -1)
  message(FATAL_ERROR "the unit writes ${state}, the example elsewhere")
endif()
file(REMOVE_RECURSE ${WORK_DIR})
