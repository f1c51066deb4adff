#!/bin/sh
# Installs the checkout by pip with an installed tree and without an index, then tests the result.
#   install_and_test.sh BUILD SOURCE CMAKE PYTHON
set -eu
build=$1 source=$2 cmake=$3 python=$4
"$python" -c 'import numpy, onnx, tomllib' 2> /dev/null || exit 77
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT

"$cmake" --install "$build" --prefix "$directory/tree" > /dev/null
"$python" -m pip install --quiet --disable-pip-version-check --no-index --no-deps \
    --target "$directory/site" --config-settings "install-tree=$directory/tree" "$source"
rm -rf "$directory/tree"
cd "$directory"
export PYTHONPATH="$directory/site" LAMINATE_DATA="$source/examples/data"
"$python" "$source/tests/python/package_test.py"
"$python" "$source/examples/front_in_python.py" zoo:l3net "$directory/front.svg" > said
grep -q '^fused within ' said
grep -q '</svg>' "$directory/front.svg"
