#!/bin/sh
# Works on what is installed, not on this kit. usage: sh uninstall [--system] [--purge]
case $0 in
    */*) here=${0%/*} ;;
    *) here=. ;;
esac
here=$(CDPATH='' cd -- "$here" && pwd -P) || exit 1
"${PYTHON:-python3}" -I -B "$here/program/install.py" --done 84 uninstall "$@"
case $? in
    84) exit 0 ;;
    [1-9]*)
        exit
        ;;
esac
echo "sh uninstall: this kit was altered, and nothing of it was verified: fetch it again" >&2
exit 1
