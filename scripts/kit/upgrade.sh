#!/bin/sh
# Verifies this kit, then does what its name says; needs sh and python3 (or PYTHON=...). usage: sh upgrade --key KEY [--system]
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
exec "${PYTHON:-python3}" -I -B "$here/program/install.py" upgrade "$here" "$@"
