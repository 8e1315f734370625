#!/bin/sh
# Names every missing prerequisite at once, each with the command that installs it. Installs nothing, needs no root.
# usage: prerequisites.sh [PYTHON] [cuda|vulkan|none|kit]      kit: nothing has to be compiled
python=${1:-python3}
gpu=${2:-none}
missing=0

install_line() { # debian-name fedora-name arch-name alpine-name suse-name
    if command -v apt-get >/dev/null 2>&1; then echo "sudo apt-get install $1"
    elif command -v dnf >/dev/null 2>&1; then echo "sudo dnf install $2"
    elif command -v pacman >/dev/null 2>&1; then echo "sudo pacman -S $3"
    elif command -v apk >/dev/null 2>&1; then echo "sudo apk add $4"
    elif command -v zypper >/dev/null 2>&1; then echo "sudo zypper install $5"
    else echo "install the package $1 with this system's package manager"
    fi
}

lacks() { # what, how to install it
    echo "setup: missing: $1" >&2
    echo "         install it with: $2" >&2
    missing=1
}

any_of() {
    for tool in "$@"; do
        command -v "$tool" >/dev/null 2>&1 && return 0
    done
    return 1
}

if ! command -v "$python" >/dev/null 2>&1; then
    lacks "Python 3.11 or newer ($python)" "$(install_line "python3 python3-venv" python3 python python3 python311)"
elif ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    lacks "Python 3.11 or newer ($python is $("$python" -V 2>&1 | head -n 1))" \
        "$(install_line "python3.11 python3.11-venv" python3.11 python python3 python311), then: make setup PYTHON=python3.11"
elif ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
    lacks "the venv module of $python" "$(install_line python3-venv python3-libs python python3 python3-base)"
fi
any_of git || lacks "git" "$(install_line git git git git git)"
any_of make gmake || lacks "make" "$(install_line make make make make make)"
if [ "$gpu" = kit ]; then :
elif [ -n "${CXX:-}" ]; then
    any_of "${CXX%% *}" || lacks "the C++ compiler that CXX names ($CXX)" "unset CXX, or install it"
else
    any_of c++ g++ clang++ || lacks "a C++ compiler" "$(install_line "g++" gcc-c++ gcc g++ gcc-c++)"
fi
case $gpu in
    cuda) any_of nvcc || lacks "the CUDA compiler (nvcc)" "$(install_line nvidia-cuda-toolkit cuda-toolkit cuda cuda cuda), or set PATH to it" ;;
    vulkan) any_of glslc || lacks "the Vulkan shader compiler (glslc)" \
        "$(install_line "glslc libvulkan-dev" "glslc vulkan-devel" "shaderc vulkan-headers" "shaderc vulkan-headers" "shaderc vulkan-devel")" ;;
    none | kit | "") ;;
    *) lacks "a backend named '$gpu'" "make setup GPU=cuda, GPU=vulkan or GPU=none" ;;
esac
exit $missing
