#!/bin/sh
# What docs/halide.md tells people who have Halide: the generator of a front's schedule built by the
# two documented commands, and the CMake project examples/halide. Either library's output is what
# `laminate run` computes.
#   halide.sh LAMINATE SOURCE CMAKE NINJA CXX PYTHON
set -eu
laminate=$1 source=$2 cmake=$3 ninja=$4 cxx=$5 python=$6
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"
HALIDE=$("$python" -c "import importlib.util as u; print(u.find_spec('halide').submodule_search_locations[0])")
"$python" -c "
import numpy
numpy.save('input.npy', numpy.random.default_rng(5).random((1, 3, 22, 22), dtype=numpy.float32))"

# ---- two commands
"$laminate" explore zoo:l3net -o F --quiet > /dev/null
"$laminate" show F#2 --halide --name l3 --constants constants > l3.cpp
"$cxx" -std=c++17 l3.cpp "$HALIDE"/lib64/libHalide_GenGen.a -I"$HALIDE"/include \
    -L"$HALIDE"/lib64 -lHalide -Wl,-rpath,"$HALIDE"/lib64 -o l3
./l3 -g l3 -e static_library,h -o . target=host

"$cxx" -std=c++17 -O1 -I. -I"$HALIDE"/include "$source/examples/halide/run_l3.cpp" l3.a -lpthread -ldl -o run_l3
./run_l3 constants input.npy output.npy
"$laminate" run zoo:l3net --schedule F#2 --input input.npy --expected output.npy --quiet

# The expectation can fail: another picture's output is refused.
"$python" -c "
import numpy
numpy.save('other.npy', numpy.load('output.npy') + 1)"
if "$laminate" run zoo:l3net --schedule F#2 --input input.npy --expected other.npy --quiet > /dev/null 2>&1; then
    echo "a wrong output was accepted" >&2
    exit 1
fi

# ---- vectors and threads change no result
./l3 -g l3 -e static_library,h -o . target=host lanes=16 threads=true
"$cxx" -std=c++17 -O1 -I. -I"$HALIDE"/include "$source/examples/halide/run_l3.cpp" l3.a -lpthread -ldl -o run_l3
./run_l3 constants input.npy vectors.npy
"$laminate" run zoo:l3net --schedule F#2 --input input.npy --expected vectors.npy --quiet

# ---- the CMake project
"$cmake" -S "$source/examples/halide" -B build -G Ninja -DCMAKE_MAKE_PROGRAM="$ninja" -DCMAKE_CXX_COMPILER="$cxx" \
    -DHalide_DIR="$HALIDE/lib64/cmake/Halide" -DLAMINATE="$laminate" > cmake.log 2>&1 || { cat cmake.log >&2; exit 1; }
"$cmake" --build build > build.log 2>&1 || { tail -40 build.log >&2; exit 1; }
build/run_l3 build/constants input.npy built.npy
"$laminate" run zoo:l3net --input input.npy --expected built.npy --quiet

# ---- a project of its own follows its schedules, a file's and a text's
mkdir project
cat > project/CMakeLists.txt << 'END'
cmake_minimum_required(VERSION 3.28)
project(schedules LANGUAGES C CXX)
find_package(Halide 21 REQUIRED COMPONENTS shared Halide)
include("${SOURCE}/cmake/LaminateHalide.cmake")
laminate_add_halide_library(of_file zoo:l3net net.schedule LAMINATE "${LAMINATE}")
laminate_add_halide_library(of_text zoo:l3net "${TEXT}" LAMINATE "${LAMINATE}")
END
tiles_of_rows() {
    text="{conv1: zo yo xo io | zi yi xi ii n m; tile z4 y20 x20 i3; X root/conv3.yo; W root/root; Y root/conv3.yo & \
        conv2: zo yo xo io | zi yi xi ii n m; tile z4 y18 x18 i4; W root/root; Y root/conv3.yo & \
        conv3: zo yo xo io | zi yi xi ii n m; tile z4 y$1 x16 i4; W root/root; Y yo/yo}"
    echo "$text" > project/net.schedule
    "$cmake" -S project -B fresh -G Ninja -DCMAKE_MAKE_PROGRAM="$ninja" -DCMAKE_CXX_COMPILER="$cxx" \
        -DHalide_DIR="$HALIDE/lib64/cmake/Halide" -DSOURCE="$source" -DLAMINATE="$laminate" -DTEXT="$text" > cmake.log
    "$ninja" -C fresh of_file_generator.cpp of_text_generator.cpp > build.log
    for target in of_file of_text; do
        grep -q "conv3_yo\", $1}" "fresh/${target}_generator.cpp" ||
            { echo "$target has another schedule" >&2; exit 1; }
    done
}
tiles_of_rows 4
tiles_of_rows 8
echo "$text" | sed 's/y8 x16/y2 x16/' > project/net.schedule # without configuring again
"$ninja" -C fresh of_file_generator.cpp of_text_generator.cpp > build.log
grep -q 'conv3_yo", 2}' fresh/of_file_generator.cpp
grep -q 'conv3_yo", 8}' fresh/of_text_generator.cpp
"$ninja" -C fresh of_file_generator.cpp of_text_generator.cpp | grep -q "no work to do"
