#!/usr/bin/env bash
# The step of the action: arguments from TARGET, SUITES, ARGUMENTS, SHARD and REPORTS; the exit code is idemproof's.
set -uo pipefail

arguments=(run --reports "${REPORTS:-reports}")
if [ -n "${TARGET:-}" ]; then arguments+=(--target "$TARGET"); fi
if [ -n "${SHARD:-}" ]; then arguments+=(--shard "$SHARD"); fi
while IFS= read -r argument; do
  if [ -n "$argument" ]; then arguments+=("$argument"); fi
done <<<"${ARGUMENTS:-}"
read -r -a suites <<<"${SUITES:-}"

status=0
idemproof "${arguments[@]}" ${suites[@]+"${suites[@]}"} || status=$?
echo "exit-code=$status" >>"${GITHUB_OUTPUT:-/dev/null}"
exit "$status"
