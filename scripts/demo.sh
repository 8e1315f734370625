#!/bin/sh
# Repairs copies of examples in a temporary folder and shows every stage, the patch, and what its acceptance rests on.
# usage: demo.sh EXAMPLE...      Its records go to the temporary folder too; nothing is left behind.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
agent=$here/.venv/bin/localagent
scratch=$(mktemp -d "${TMPDIR:-/tmp}/localagent-demo.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
export XDG_STATE_HOME="$scratch/state"
GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
export GIT_CONFIG_GLOBAL GIT_CONFIG_NOSYSTEM

heading() { printf '\n== %s\n' "$*"; }

repair() { # example
    repo=$scratch/$1
    cp -R "$here/examples/$1" "$repo"
    find "$repo" -name __pycache__ -type d -prune -exec rm -rf {} +
    git -C "$repo" init -q
    git -C "$repo" -c user.name=demo -c user.email=demo@localhost add -A
    git -C "$repo" -c user.name=demo -c user.email=demo@localhost commit -q -m "As it was handed to us"

    heading "$1: localagent fix --repo $repo"
    "$agent" fix --repo "$repo" --out "$scratch/$1.diff" --report "$scratch/$1.json"

    heading "$1: the patch"
    cat "$scratch/$1.diff"

    heading "$1: why it is believed (localagent show)"
    (cd "$repo" && "$agent" show)

    heading "$1: git takes the patch, and the tests say"
    git -C "$repo" apply "$scratch/$1.diff"
    git -C "$repo" diff --stat
    "$agent" fix --repo "$repo" --out "$scratch/$1-again.diff"
}

for example in "$@"; do
    repair "$example"
done
