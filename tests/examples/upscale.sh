#!/bin/sh
# Runs examples/upscale.cpp with a compiled network, opened from its directory and linked into the
# program. Both write the picture that `laminate run` writes.
#   upscale.sh LAMINATE UPSCALE SOURCE CXX LIBRARY...
set -eu
laminate=$1 upscale=$2 source=$3 cxx=$4
shift 4
data=$source/examples/data
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"

"$laminate" compile "$data/fsrcnn_x2.onnx" --height 256 --width 256 -o net --quiet > /dev/null
"$laminate" run "$data/fsrcnn_x2.onnx" --input "$data/astronaut_half.png" --output expected.png \
    --quiet > /dev/null
"$upscale" net "$data/astronaut_half.png" opened.png
cmp expected.png opened.png

# CXXFLAGS are those of the libraries, which a sanitizer may need.
# shellcheck disable=SC2086
"$cxx" ${CXXFLAGS-} -std=c++20 -O1 -I"$source" -DLINKED_NETWORK=fsrcnn_x2_network \
    "$source/examples/upscale.cpp" net/libfsrcnn_x2.a "$@" -lpng -ljpeg -fopenmp -ldl -o linked
if ldd linked | grep -i halide; then
    echo "the linked program needs Halide" >&2
    exit 1
fi
./linked "$data/astronaut_half.png" linked.png
cmp expected.png linked.png

if "$upscale" net "$data/chelsea_half.png" wrong.png 2> message.txt; then
    echo "a picture of another size was accepted" >&2
    exit 1
fi
grep -q "the network was compiled for 256 x 256" message.txt
test ! -e wrong.png
