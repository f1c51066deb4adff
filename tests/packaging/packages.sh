#!/bin/sh
# Makes the .tar.gz and, if dpkg-deb exists, the .deb, as `make package` does, unpacks them and uses
# their contents: stripped, at another place, with the package's own libHalide.
#   packages.sh BUILD CPACK LAMINATE
set -eu
build=$1 cpack=$2 built=$3
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"
unset LD_LIBRARY_PATH || true

fail() {
    echo "packages: $1" >&2
    exit 1
}

generators=TGZ
if command -v dpkg-deb > /dev/null; then generators="TGZ;DEB"; fi
"$cpack" --config "$build/CPackConfig.cmake" -G "$generators" -B "$directory/packages" \
    > cpack.log 2>&1 || {
    cat cpack.log >&2
    fail "cpack fails"
}
"$built" run zoo:l2net --seed 1 --output expected.npy --quiet > /dev/null
version=$("$built" --version)

# use ROOT, which holds bin, lib and share
use() {
    test "$("$1/bin/laminate" --version)" = "$version" || fail "$1: not $version"
    ldd "$1/bin/laminate" | grep 'libHalide.so' | grep -qF "$1/" ||
        fail "libHalide is not the package's: $(ldd "$1/bin/laminate" | grep Halide)"
    "$1/bin/laminate" run zoo:l2net --seed 1 --output found.npy --quiet > /dev/null ||
        fail "$1: run fails"
    cmp expected.npy found.npy
    rm found.npy
    test -s "$1/share/man/man1/laminate.1" || fail "$1: no manual page"
}

mkdir archive
tar -xzf packages/laminate-*.tar.gz -C archive --strip-components=1
use "$directory/archive"

if test "$generators" = TGZ; then exit 0; fi
deb=$(echo packages/laminate_*.deb)
dpkg-deb --extract "$deb" deb
use "$directory/deb/usr"
(cd archive && find . ! -type d | sort) > archive.files
(cd deb/usr && find . ! -type d | sort) > deb.files
cmp archive.files deb.files || fail "the packages hold different files"
test "$(dpkg-deb --field "$deb" Package)" = laminate ||
    fail "the package is called $(dpkg-deb --field "$deb" Package)"
if command -v dpkg-shlibdeps > /dev/null; then
    dpkg-deb --field "$deb" Depends | grep -q 'libc6' ||
        fail "depends on: $(dpkg-deb --field "$deb" Depends)"
fi
