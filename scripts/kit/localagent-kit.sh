#!/bin/sh
# The installed installer: localagent-kit upgrade KIT | verify KIT | rollback | status | uninstall [--purge]
set -eu
link=$0
while [ -L "$link" ]; do
    next=$(readlink -- "$link")
    case $next in
        /*) link=$next ;;
        *) link=$(dirname -- "$link")/$next ;;
    esac
done
here=$(CDPATH='' cd -- "$(dirname -- "$link")" && pwd -P)
exec "$here/../bin/python" -I -B "$here/install.py" "$@"
