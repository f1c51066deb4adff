// Manifest of the library that compiled_double.cpp makes: y = 2 x on four elements.
#pragma once

inline constexpr const char* double_manifest = R"({
"schema": "laminate.manifest", "version": 1, "network": "double",
"network_hash": "0000000000000000", "library": "double", "target": "host",
"halide_version": "21.0.0", "cpu_features": [],
"tensors": [{"name": "x", "dims": [1, 1, 2, 2]}, {"name": "y", "dims": [1, 1, 2, 2]}],
"inputs": [0], "outputs": [1],
"steps": [{"kind": "group", "group": 0, "name": "double", "layers": ["double"], "schedule": "{}",
"inputs": [0], "outputs": [1], "constants_offset_elements": 0, "constants_count_elements": 1,
"scratch_bytes": 0, "strips": 2}]})";
