#!/bin/sh
# Installs a kit in a root file system of its own, without a network:
#   sh bench/kit_root.sh KIT KEY [OTHER_KIT] [--tests] [--debootstrap DIR [--deb FILE]]      TEST_ARGS=... for some tests
#
# DIR is a system that debootstrap made, of which nothing is changed (an overlay in memory takes what is written):
#   debootstrap --variant=minbase --include=python3,python3-venv,git,make bookworm DIR
# Without one the root is an approximation of a bare machine: this one's /usr read-only without its compilers, without
# /usr/local and without anything of /opt, /root, /home, /var and /etc but what is made here. Needs root; leaves nothing.
set -eu
if [ "${KIT_ROOT_STAGE:-}" != inside ]; then
    kit=$(readlink -f "$1") key=$2 other='' tests='' base='' deb=''
    shift 2
    while [ $# -gt 0 ]; do
        case $1 in
            --tests) tests=yes ;;
            --debootstrap) base=$(readlink -f "$2"); shift ;;
            --deb) deb=$(readlink -f "$2"); shift ;;
            *) other=$(readlink -f "$1") ;;
        esac
        shift
    done
    here=$(readlink -f "$0")
    root=$(mktemp -d /tmp/kit-root.XXXXXX)
    trap 'rmdir "$root"' EXIT
    env -i KIT_ROOT_STAGE=inside ROOT="$root" KIT="$kit" OTHER="$other" KEY="$key" TESTS="$tests" \
        BASE="$base" DEB="$deb" TEST_ARGS="${TEST_ARGS:-}" PATH=/usr/sbin:/usr/bin:/sbin:/bin \
        unshare --mount --net --pid --ipc --uts --fork --propagation private /bin/sh "$here"
    exit
fi

# --- the root --------------------------------------------------------------------------------------------------------
mount -t tmpfs -o size=4g,mode=755 kit-root "$ROOT"
cd "$ROOT"
if [ -n "$BASE" ]; then
    mkdir upper work new
    mount -t overlay -o "lowerdir=$BASE,upperdir=$ROOT/upper,workdir=$ROOT/work" kit-root new
    cd new
    mkdir -p kit other old
    chroot . useradd --uid 1000 --create-home maria
else
mkdir usr etc proc dev tmp home var opt kit other old run sys
chmod 1777 tmp
mount --bind /usr usr && mount -o remount,bind,ro usr
mkdir empty
mount --bind empty usr/local
: >nothing
for tool in usr/bin/*gcc* usr/bin/*g++* usr/bin/*clang* usr/bin/c++ usr/bin/cc usr/bin/*-as usr/bin/as usr/bin/*-ld usr/bin/ld; do
    [ ! -f "$tool" ] || mount --bind nothing "$tool"
done
for name in bin sbin lib lib32 lib64 libx32; do
    [ ! -L "/$name" ] || ln -s "$(readlink "/$name")" "$name"
done
printf 'root:x:0:0::/root:/bin/sh\nmaria:x:1000:1000::/home/maria:/bin/sh\n' >etc/passwd
printf 'root:x:0:\nmaria:x:1000:\n' >etc/group
: >etc/shadow
mkdir -p root home/maria var/lib var/cache var/tmp
cp /etc/ld.so.cache etc/ 2>/dev/null || true
[ ! -d /etc/alternatives ] || cp -a /etc/alternatives etc/
chown 1000:1000 home/maria
fi
[ -z "$DEB" ] || cp "$DEB" tmp/localagent.deb
mount --bind "$KIT" kit && mount -o remount,bind,ro kit
[ -z "$OTHER" ] || { mount --bind "$OTHER" other && mount -o remount,bind,ro other; }
mount -t proc proc proc
mount --rbind /dev dev
mount --rbind /sys sys
pivot_root . old
cd /
umount -l /old
rmdir /old
[ -c /dev/null ] || { echo "no devices" >&2; exit 9; }

# --- what is tried in it ---------------------------------------------------------------------------------------------
maria() { # a command, as a user with an empty home and no rights
    setpriv --reuid 1000 --regid 1000 --clear-groups env -i HOME=/home/maria PATH=/usr/bin:/bin sh -c "cd && $*"
}
told() { # a command, and its last lines
    maria "$*" >/tmp/told 2>&1 || { tail -n 40 /tmp/told; exit 9; }
    tail -n 12 /tmp/told
}
heading() { printf '\n== %s\n' "$*"; }

heading "no network, no compiler, no index"
python3 - <<'P'
import socket
try:
    socket.create_connection(("192.0.2.1", 9), 2)
except OSError as why:
    print("connect:", why)
P
maria 'gcc --version' && exit 9 || echo "no compiler runs"
heading "verify, install as a user"
maria "sh /kit/verify --key $KEY"
maria "sh /kit/install --key $KEY"
maria '.local/bin/localagent --version'
maria '.local/bin/localagent doctor' | grep -E 'level |llama.cpp|tasks can'
heading "demo"
source=$(ls /kit/source/*.tar.gz)
maria "mkdir checkout && tar xzf $source -C checkout --strip-components 1 && cp -R checkout/examples/ledger ."
maria '.local/bin/localagent fix --repo ledger --out ledger.diff --quiet'
maria 'cat ledger.diff'
if [ -n "$OTHER" ]; then
    heading "upgrade, rollback"
    maria '.local/bin/localagent-kit upgrade /other'
    maria '.local/bin/localagent-kit rollback'
    maria '.local/bin/localagent --version'
fi
heading "uninstall, purge"
maria '.local/bin/localagent-kit uninstall'
maria 'find . -path ./checkout -prune -o -path ./ledger -prune -o -type f -print'
maria 'sh /kit/uninstall --purge'
left=$(maria 'find .local .config .cache -path "*localagent*" 2>/dev/null' || true)
[ -z "$left" ] || { echo "left after a purge: $left"; exit 9; }
heading "install for the machine, and away again"
sh /kit/install --system --key "$KEY"
grep localagent /etc/passwd /etc/group
find /etc/localagent /var/lib/localagent /var/lib/localagent-audit /var/cache/localagent /opt/localagent -maxdepth 1 -printf '%M %u:%g %p\n'
maria '/usr/local/bin/localagent fix --repo ledger --out ledger-2.diff --quiet && cmp ledger.diff ledger-2.diff'
before_purge=$(find /opt /usr/local -mindepth 1 -path '*localagent*' | wc -l)
/usr/local/bin/localagent-kit uninstall --system --purge
grep localagent /etc/passwd /etc/group && exit 9
left=$(find /opt /etc /var/lib /var/cache /usr/local -path '*localagent*' 2>/dev/null || true)
[ -z "$left" ] || { echo "left after a purge: $left"; exit 9; }
echo "nothing is left of $before_purge files and folders"
if [ -n "$DEB" ]; then
    heading "the Debian package: installed, used, removed, purged"
    dpkg --install /tmp/localagent.deb
    find /etc/localagent /var/lib/localagent /var/cache/localagent -maxdepth 1 -printf '%M %u:%g %p\n'
    maria '/usr/bin/localagent fix --repo ledger --out ledger-3.diff --quiet && cmp ledger.diff ledger-3.diff'
    dpkg --remove localagent
    [ -f /etc/localagent/daemon.toml ] && [ ! -e /usr/lib/localagent ] || { find /usr/lib/localagent | head; exit 9; }
    dpkg --purge localagent
    find /etc/localagent /var/lib/localagent /var/cache/localagent /usr/lib/localagent 2>/dev/null && exit 9 || true
    grep localagent /etc/passwd /etc/group && exit 9 || echo "nothing is left"
fi
heading "make setup KIT=..., make demo"
told "cd checkout && make setup KIT=/kit KEY=$KEY"
told 'cd checkout && make demo'
if [ -n "$TESTS" ]; then
    heading "make test test-long"
    maria 'cd checkout && git init -q && git add -A && git -c user.name=m -c user.email=m@localhost commit -qm all'
    told "cd checkout && make test test-long PYTEST_ARGS='$TEST_ARGS'"
fi
heading "all of it went well"
