# The presets `release` and `ci` compile eight sources of a target at once (CMAKE_UNITY_BUILD):
# their headers are parsed once, and the whole tree builds in half the CPU time. The sources below
# are compiled alone. Most of them name something in their anonymous namespace as a neighbour does.
# c_api.cpp goes into two libraries that are linked together, and allocations.cpp replaces operator
# new.
set(laminate_compiled_alone
    generators/kernels/winograd_map.cpp
    nets/network/network.cpp
    papers/dag_groups/explore_verb.cpp
    papers/depth_first/cost_verb.cpp
    papers/depth_first/explore_verb.cpp
    papers/depth_first/schedules.cpp
    papers/depth_first/study_verb.cpp
    papers/layer_optimum/explore_verb.cpp
    papers/spatial_fusion/explore_verb.cpp
    runtime/c_api.cpp
    runtime/media/png.cpp
    runtime/media/y4m.cpp
    scheduler/explore/explore.cpp
    scheduler/explore/group_search/halo_bound.cpp
    tests/generators/kernels/whole_map_test.cpp
    tests/generators/kernels/winograd_test.cpp
    tests/instrumentation/presence_test.cpp
    tests/instrumentation/walker_test.cpp
    tests/nets/onnx/read_test.cpp
    tests/nets/operators/reference_operators_test.cpp
    tests/papers/dag_groups/grouping_test.cpp
    tests/runtime/allocations.cpp
    tests/scheduler/explore/explore_test.cpp
    tests/scheduler/explore/fewest_accesses_test.cpp
    tests/scheduler/explore/group_search/group_search_test.cpp)
foreach(source ${laminate_compiled_alone})
    set(room "${PROJECT_SOURCE_DIR}/${source}")  # the folder above it that has a CMakeLists.txt
    while(NOT EXISTS "${room}/CMakeLists.txt")
        cmake_path(GET room PARENT_PATH room)
    endwhile()
    set_source_files_properties("${PROJECT_SOURCE_DIR}/${source}" DIRECTORY "${room}"
                                PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endforeach()
