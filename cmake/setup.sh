#!/bin/sh
# Brings a Debian machine to where Laminate builds. The Makefile calls it and keeps the stamps that make a second call free.
#   cmake/setup.sh apt PACKAGE...            installs the Debian packages that are missing (root), or says how to
#   cmake/setup.sh venv DIR REQUIREMENTS     pinned wheels into a virtual environment, made when it is not there
set -eu

missing_packages() {
    for package in "$@"; do
        status=$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null || true)
        [ "$status" = "install ok installed" ] || printf ' %s' "$package"
    done
}

install_packages() {
    if ! command -v dpkg-query >/dev/null 2>&1; then
        echo "setup: this is not a Debian system; taking for granted that these are there: $*" >&2
        return 0
    fi
    missing=$(missing_packages "$@")
    [ -n "$missing" ] || return 0
    if [ "$(id -u)" -ne 0 ]; then
        echo "setup: packages are missing; run as root: apt-get install --no-install-recommends$missing" >&2
        exit 1
    fi
    echo "setup: installing$missing"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    # shellcheck disable=SC2086  # a list of names
    apt-get install -y -qq --no-install-recommends $missing
}

make_venv() {
    directory=$1
    requirements=$2
    if [ ! -x "$directory/bin/pip" ]; then
        python=python3
        if ! python3 -c 'import ensurepip' 2>/dev/null; then
            # Debian keeps ensurepip in a package of its own, for its own python3 only.
            install_packages python3-venv
            [ ! -x /usr/bin/python3 ] || python=/usr/bin/python3
        fi
        rm -rf "$directory"
        "$python" -m venv "$directory"
    fi
    "$directory/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps -r "$requirements"
}

action=$1
shift
case $action in
    apt) install_packages "$@" ;;
    venv) make_venv "$@" ;;
    *) echo "setup: unknown action \"$action\"; expected apt or venv" >&2; exit 2 ;;
esac
