#!/bin/sh
# cmake/setup.sh waits while another apt holds a lock, and fails at once for any other reason (issue
# 26, 11). Its apt-get, id and sleep are stand-ins.
#   setup.sh SOURCE
set -eu
source=$1
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"

fail() {
    echo "setup: $1" >&2
    exit 1
}
stand_in() {
    printf '#!/bin/sh\n%s\n' "$2" > "bin/$1"
    chmod +x "bin/$1"
}

mkdir bin
stand_in dpkg-query 'exit 1'
stand_in id 'echo 0'
stand_in sleep 'true'
PATH=$directory/bin:$PATH

# Of each command the first two calls meet a lock.
stand_in apt-get '
for word in "$@"; do case $word in update | install) action=$word ;; esac; done
echo call >> calls.$action
if [ "$(wc -l < calls.$action)" -le 2 ]; then
    echo "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 1 (apt-get)" >&2
    exit 100
fi
echo "$@" >> done'
"$source/cmake/setup.sh" apt one two > said || fail "it did not wait: $(cat said)"
test "$(wc -l < calls.update)" -eq 3 || fail "update ran $(wc -l < calls.update) times"
test "$(wc -l < calls.install)" -eq 3 || fail "install ran $(wc -l < calls.install) times"
grep -q 'install -y --no-install-recommends one two$' done || fail "installed: $(cat done)"
grep -q 'waiting for another apt' said || fail "it did not say that it waits"

stand_in apt-get '
echo call >> calls.other
echo "E: Unable to locate package one" >&2
exit 100'
if "$source/cmake/setup.sh" apt one > said 2>&1; then fail "a failure was not reported"; fi
test "$(wc -l < calls.other)" -eq 1 || fail "another failure was tried again"
grep -q 'Unable to locate package one' said || fail "the reason is not shown: $(cat said)"

stand_in apt-get 'echo "E: Unable to lock directory /var/lib/apt/lists/" >&2; exit 100'
if "$source/cmake/setup.sh" apt one > said 2>&1; then fail "it waits forever"; fi
grep -q 'Unable to lock' said || fail "the lock is not named: $(cat said)"
