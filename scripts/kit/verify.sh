#!/bin/sh
# Says whether this kit is what KEY signed; needs sh and python3 (or PYTHON=...). usage: sh verify --key KEY
case $0 in
    */*) here=${0%/*} ;;
    *) here=. ;;
esac
here=$(CDPATH='' cd -- "$here" && pwd -P) || exit 1
"${PYTHON:-python3}" -I -B "$here/program/install.py" --done 84 verify "$here" "$@"
case $? in
    84) exit 0 ;;
    [1-9]*)
        exit
        ;;
esac
echo "sh verify: this kit was altered, and nothing of it was verified: fetch it again" >&2
exit 1
