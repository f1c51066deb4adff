#!/bin/sh
# Brings a Debian machine to where Laminate builds. The Makefile calls it and keeps stamps, so that
# a second call is free.
#   cmake/setup.sh apt PACKAGE...
#       installs the Debian packages that are missing (as root), or says how to
#   cmake/setup.sh venv DIR REQUIREMENTS
#       installs pinned wheels into a virtual environment, which it makes if needed
set -eu

missing_packages() {
    for package in "$@"; do
        status=$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null || true)
        [ "$status" = "install ok installed" ] || printf ' %s' "$package"
    done
}

# apt-get, which waits while another apt is at work. apt itself waits for dpkg's lock only
# (DPkg::Lock::Timeout), not for those of its lists and archives.
patient_apt_get() {
    waited=0
    until said=$(LC_ALL=C apt-get -qq -o DPkg::Lock::Timeout=600 "$@" 2>&1); do
        case $said in
            *"ould not get lock"* | *"nable to lock"*) ;;
            *) waited=600 ;;
        esac
        if [ "$waited" -ge 600 ]; then
            printf '%s\n' "$said" >&2
            return 1
        fi
        [ "$waited" -ne 0 ] || echo "setup: waiting for another apt"
        waited=$((waited + 5))
        sleep 5
    done
}

install_packages() {
    if ! command -v dpkg-query >/dev/null 2>&1; then
        echo "setup: this is not a Debian system; assuming that these are installed: $*" >&2
        return 0
    fi
    missing=$(missing_packages "$@")
    [ -n "$missing" ] || return 0
    if [ "$(id -u)" -ne 0 ]; then
        echo "setup: packages are missing; run as root:" \
            "apt-get install --no-install-recommends$missing" >&2
        exit 1
    fi
    echo "setup: installing$missing"
    export DEBIAN_FRONTEND=noninteractive
    patient_apt_get update
    # shellcheck disable=SC2086  # a list of names
    patient_apt_get install -y --no-install-recommends $missing
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
    "$directory/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps \
        -r "$requirements"
}

action=$1
shift
case $action in
    apt) install_packages "$@" ;;
    venv) make_venv "$@" ;;
    *) echo "setup: unknown action \"$action\"; expected apt or venv" >&2; exit 2 ;;
esac
