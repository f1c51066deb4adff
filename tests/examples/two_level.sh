#!/bin/sh
# Runs examples/two_level.cpp on compiled networks with hooks: what it counts and holds is what
# `laminate cost` says of the same schedule, `run --counts` agrees, and a memory one byte too small
# is refused. Opened from its directory, and linked into the program.
#   two_level.sh LAMINATE TWO_LEVEL SOURCE CXX PYTHON LIBRARY...
set -eu
laminate=$1 two_level=$2 source=$3 cxx=$4 python=$5
shift 5
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"

# Compiles a network with hooks, with further options, into the directory `net`.
compile() {
    network=$1
    shift
    "$laminate" compile "$network" "$@" --instrumented --name net -o net --quiet > /dev/null
}
# The directory `net` against the cost of its schedule, a front's point or a file.
check() {
    "$laminate" cost "$1" --schedule "$2" --json cost.json > /dev/null
    accesses=$(number accesses_elements) bytes=$((4 * $(number live_total_elements)))
    "$two_level" net "$bytes" > counted.txt
    expected="accesses $accesses elements; held at most $bytes of $bytes bytes"
    if [ "$(tail -n 1 counted.txt)" != "$expected" ]; then
        echo "$1 $2: found $(tail -n 1 counted.txt), expected $expected" >&2
        exit 1
    fi
    code=0
    "$two_level" net $((bytes - 1)) > /dev/null 2> message.txt || code=$?
    if [ $code != 4 ] || ! grep -q "bytes at once (.*), the memory has $((bytes - 1))\$" message.txt; then
        echo "$1 $2: a memory of one byte less gave exit code $code and: $(cat message.txt)" >&2
        exit 1
    fi
    "$laminate" run net --counts --quiet --json counts.json > /dev/null
    "$python" - << END
import json
counts, cost = json.load(open("counts.json"))["counts"], json.load(open("cost.json"))["counts"]
assert counts["equal"] and counts["measured"] == cost and counts["model"] == cost, (counts, cost)
END
}
number() { "$python" -c "import json; print(json.load(open('cost.json'))['$1'])"; }

# ---- points of fronts: tiles, retention along one axis or two, channel tiles, recomputation
"$laminate" explore zoo:l3net -o chain --quiet > /dev/null
for point in 0 31 77; do
    compile zoo:l3net --schedule chain#$point
    check zoo:l3net chain#$point
done
# Groups with forks and joins.
"$laminate" explore random:7 --space dag --tiles pow2 -o graph --quiet > /dev/null
compile random:7 --schedule graph#0
check random:7 graph#0

# ---- what `compile` chooses: whole maps, line buffers, strips; a chain by columns
for network in "zoo:mc-cnn?height=16&width=64" "zoo:fsrcnn?height=24&width=240"; do
    compile "$network"
    check "$network" net/schedule.json
done

# ---- linked into a program: CXXFLAGS are those of the libraries, which a sanitizer may need
# shellcheck disable=SC2086
"$cxx" ${CXXFLAGS-} -std=c++20 -O1 -I"$source" -DLINKED_NETWORK=net_network \
    "$source/examples/two_level.cpp" net/libnet.a "$@" -fopenmp -ldl -lm -o linked
./linked 100000000 > linked.txt
"$two_level" net 100000000 > opened.txt
cmp linked.txt opened.txt

# ---- without hooks
"$laminate" compile zoo:l2net -o plain --quiet > /dev/null
if "$two_level" plain 100000000 2> message.txt; then
    echo "a network without hooks was counted" >&2
    exit 1
fi
grep -q "was compiled without hooks, expected laminate compile --instrumented" message.txt
