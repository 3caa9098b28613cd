# Numbered steps with their time, for the other scripts in this directory.
#
#   steps_begin NAME COUNT LOG_FILE
#   step "what happens now" command arguments...
#
# A step's output goes to LOG_FILE. If a step fails, its last lines and the path of
# the log are printed, and the script exits with the step's status.
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

# step_title TITLE: prints that the next step begins.
step_title() {
  steps_done=$((steps_done + 1))
  steps_title="$1"
  printf '[%d/%d %s] %s\n' "$steps_done" "$steps_count" "$(elapsed)" "$1"
  printf '\n== %s\n' "$1" >> "$steps_log"
}

# step_failed STATUS: prints which step failed and exits.
step_failed() {
  {
    echo
    tail -n 40 "$steps_log" | sed 's/^/  | /'
    echo
    echo "$steps_name: step $steps_done ($steps_title) failed with status $1"
    echo "$steps_name: its whole output is in $steps_log"
  } >&2
  exit "$1"
}

# steps_tick: shows how far Ninja is and the time so far. A terminal gets one line
# that is rewritten; a file or pipe gets a line a minute.
steps_tick() {
  local progress pause=60 format='      %s%s\n'
  if [[ -t 1 ]]; then
    pause=2
    format='\r      %s%s\e[K'
  fi
  # sleep must not hold our output open after the script has ended.
  while sleep "$pause" > /dev/null 2>&1; do
    progress=
    if [[ "$(tail -n 1 "$steps_log")" =~ ^\[([0-9]+)/([0-9]+)\] ]]; then
      progress="$((100 * BASH_REMATCH[1] / BASH_REMATCH[2])) % ("
      progress+="${BASH_REMATCH[1]} of ${BASH_REMATCH[2]}), "
    fi
    # shellcheck disable=SC2059
    printf "$format" "$progress" "$(elapsed)"
  done
}

steps_stop_ticker() {
  [[ -n "$steps_ticker" ]] || return 0
  kill "$steps_ticker" 2> /dev/null || true
  wait "$steps_ticker" 2> /dev/null || true
  steps_ticker=
  if [[ -t 1 ]]; then printf '\r\e[K'; fi
}

# step TITLE COMMAND...: runs the command as a step. `set -e` has no effect in a
# function that is run this way, so it must return its failures itself.
step() {
  local status=0
  step_title "$1"
  shift
  steps_tick &
  steps_ticker=$!
  "$@" >> "$steps_log" 2>&1 < /dev/null || status=$?
  steps_stop_ticker
  if ((status != 0)); then step_failed "$status"; fi
}
