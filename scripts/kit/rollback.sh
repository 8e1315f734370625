#!/bin/sh
# Works on what is installed, not on this kit. usage: sh rollback [--system]
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
exec "${PYTHON:-python3}" -I -B "$here/program/install.py" rollback "$@"
