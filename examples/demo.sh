#!/bin/sh
# make demo: upscales a picture that the network never saw and shows what the fused network costs.
#   demo.sh LAMINATE DATA OUT      the program, examples/data, a directory to write
# Exit 1 when counts of the model and of the code differ, or when the quality is not that of the network's
# ONNX reference.
set -eu
laminate=$1
data=$2
out=$3
network=$data/fsrcnn_x2.onnx
expected_db=33.49  # onnxruntime on the same picture; examples/data/README.md

mkdir -p "$out"
echo "== The picture, twice as large: luma by the network, colour by bicubic interpolation"
"$laminate" run "$network" --input "$data/astronaut_half.png" --output "$out/astronaut_x2.png" \
    --compare "$data/astronaut.png" --counts --json "$out/run.json"

printf '\n== The schedule that ran\n'
"$laminate" compile "$network" --height 256 --width 256 -o "$out/fsrcnn_x2" --quiet \
    > "$out/compile.txt"
"$laminate" show "$out/fsrcnn_x2/schedule.json" --net "$network" --height 256 --width 256

printf '\n== Fused against layer by layer\n'
"$laminate" bench "$network" --height 256 --width 256 --seconds 1 --json "$out/bench.json"

psnr=$(sed -n 's/^ *"psnr_db": *\([0-9.]*\).*/\1/p' "$out/run.json")
if ! awk -v found="$psnr" -v expected="$expected_db" \
    'BEGIN { d = found - expected; exit !(found != "" && d < 0.01 && d > -0.01) }'; then
    echo "demo: PSNR is $psnr dB, expected $expected_db dB within 0.01" >&2
    exit 1
fi
printf '\n%s is the picture; %s holds the same network as libraries\n' \
    "$out/astronaut_x2.png" "$out/fsrcnn_x2"
echo 'for programs without Halide (examples/upscale.cpp).'
