#!/bin/sh
# Installs into a prefix, moves it, and uses it as a stranger would: the program runs with its own
# libHalide, a CMake project finds the package, compiles a network while it builds and needs no
# Halide, and the shell completes.
#   install.sh BUILD SOURCE CMAKE CXX
set -eu
build=$1 source=$2 cmake=$3 cxx=$4
data=$source/examples/data
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"
unset LD_LIBRARY_PATH || true

fail() {
    echo "install: $1" >&2
    exit 1
}

"$cmake" --install "$build" --prefix "$directory/first" > install.log
mv first "moved here"
prefix="$directory/moved here"
laminate="$prefix/bin/laminate"

# ---- the program
"$laminate" --version | grep -q '^laminate [0-9]' || fail "no version"
ldd "$laminate" | grep 'libHalide.so' | grep -qF "$prefix/" ||
    fail "libHalide is not the installed one: $(ldd "$laminate" | grep Halide)"
"$laminate" run "$data/fsrcnn_x2.onnx" --input "$data/astronaut_half.png" --output expected.png \
    --quiet > /dev/null

# ---- manual page and completion
page="$prefix/share/man/man1/laminate.1"
grep -q '^\.SS laminate explore' "$page" || fail "no explore in the manual page"
if command -v groff > /dev/null; then
    groff -man -Tascii -ww -rHY=0 "$page" > page.txt 2> page.warnings
    test ! -s page.warnings || fail "manual page: $(head -1 page.warnings)"
    tr -s ' \n' ' ' < page.txt | grep -q 'no more MACs than layer by layer' ||
        fail "an option's text is not in the manual page"
fi
complete() {
    bash -c '
        . "$0/share/bash-completion/completions/laminate"
        compopt() { :; }
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        _laminate
        printf "%s\n" "${COMPREPLY[@]}"' "$prefix" "$@"
}
test "$(complete laminate expl)" = explore || fail "completion of a verb: $(complete laminate expl)"
test "$(complete laminate explore --max-d)" = --max-depth || fail "completion of an option"
test "$(complete laminate explore --footprint su)" = sum ||
    fail "completion of a value: $(complete laminate explore --footprint su)"
test "$(complete laminate zoo ex)" = export || fail "completion of the second verb"
if command -v zsh > /dev/null; then zsh -n "$prefix/share/zsh/site-functions/_laminate"; fi

# ---- the package
mkdir project
cp "$source/examples/upscale.cpp" project/
cat > project/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.28)
project(User CXX)
find_package(laminate 0.1 REQUIRED COMPONENTS media)
laminate_add_network(doubler "${NETWORK}" --height=256 --width=256)
add_executable(upscale upscale.cpp)
target_compile_features(upscale PRIVATE cxx_std_20)
target_compile_definitions(upscale PRIVATE LINKED_NETWORK=doubler_network)
target_link_libraries(upscale PRIVATE doubler Laminate::media)
add_executable(opener upscale.cpp)
target_compile_features(opener PRIVATE cxx_std_20)
target_link_libraries(opener PRIVATE Laminate::runtime Laminate::media)
file(WRITE "${CMAKE_CURRENT_BINARY_DIR}/api.c"
     "#include \"runtime/laminate.h\"\n"
     "int main(void) { return laminate_open(\"nowhere\", 1) != 0; }\n")
enable_language(C)
add_executable(shared_api "${CMAKE_CURRENT_BINARY_DIR}/api.c")
target_link_libraries(shared_api PRIVATE Laminate::shared)
END
"$cmake" -S project -B project/build -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$prefix" \
    -DCMAKE_CXX_COMPILER="$cxx" -DNETWORK="$data/fsrcnn_x2.onnx" > configure.log
"$cmake" --build project/build > build.log || {
    cat build.log >&2
    fail "the user's project does not build"
}
if ldd project/build/upscale | grep -i halide; then fail "the user's program needs Halide"; fi
if grep -rqF "$source" "$prefix/lib/cmake" "$prefix"/lib/*/cmake 2> /dev/null; then
    fail "the package names the checkout"
fi
project/build/upscale "$data/astronaut_half.png" linked.png > /dev/null
cmp expected.png linked.png
project/build/opener project/build/doubler "$data/astronaut_half.png" opened.png > /dev/null
cmp expected.png opened.png
project/build/shared_api || fail "the C API of the shared library"
