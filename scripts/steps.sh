# Numbered steps with their time, for the scripts beside this file.
#
#   steps_begin NAME COUNT LOG_FILE
#   step "what happens now" command arguments...
#
# A step's output goes to LOG_FILE. When one fails, its last lines and the path
# of the log are printed and the script ends with the step's status.
# shellcheck shell=bash

steps_begin() {
  steps_name="$1"
  steps_count="$2"
  steps_log="$3"
  steps_done=0
  steps_ticker=
  mkdir -p "$(dirname "$steps_log")"
  : > "$steps_log"
  trap steps_stop_ticker EXIT
}

elapsed() { printf '%d:%02d' $((SECONDS / 60)) $((SECONDS % 60)); }

# step_title TITLE: says which step begins.
step_title() {
  steps_done=$((steps_done + 1))
  steps_title="$1"
  printf '[%d/%d %s] %s\n' "$steps_done" "$steps_count" "$(elapsed)" "$1"
  printf '\n== %s\n' "$1" >> "$steps_log"
}

# step_failed STATUS: tells what failed, and ends.
step_failed() {
  {
    echo
    tail -n 40 "$steps_log" | sed 's/^/  | /'
    echo
    echo "$steps_name: step $steps_done ($steps_title) failed with status $1"
    echo "$steps_name: everything it said is in $steps_log"
  } >&2
  exit "$1"
}

# Every 5 seconds a sign of life: how far Ninja is, or a dot. sleep must not
# hold our output open after we have ended.
steps_tick() {
  local line last=
  while sleep 5 > /dev/null 2>&1; do
    line="$(tail -n 1 "$steps_log")"
    if [[ "$line" =~ ^\[([0-9]+/[0-9]+)\] && "$line" != "$last" ]]; then
      printf ' %s' "${BASH_REMATCH[1]}"
      last="$line"
    else
      printf ' .'
    fi
  done
}

steps_stop_ticker() {
  [[ -n "$steps_ticker" ]] || return 0
  kill "$steps_ticker" 2> /dev/null || true
  wait "$steps_ticker" 2> /dev/null || true
  steps_ticker=
}

# step TITLE COMMAND...: a function as the command must return its own failures,
# since `set -e` does not hold in it.
step() {
  local begin=$SECONDS status=0
  step_title "$1"
  shift
  steps_tick &
  steps_ticker=$!
  "$@" >> "$steps_log" 2>&1 < /dev/null || status=$?
  steps_stop_ticker
  if ((SECONDS - begin >= 5)); then printf '\n'; fi
  if ((status != 0)); then step_failed "$status"; fi
}
