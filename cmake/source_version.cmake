# Writes HEADER with a hash of the contents of SOURCES (a file with one path per line, relative to
# ROOT), unless it says so already:
#   cmake -DROOT=... -DSOURCES=... -DHEADER=... -P source_version.cmake
file(STRINGS "${SOURCES}" sources)
set(all "")
foreach(source ${sources})
    file(SHA256 "${ROOT}/${source}" hash)
    string(APPEND all "${source} ${hash}\n")
endforeach()
string(SHA256 version "${all}")
file(CONFIGURE OUTPUT "${HEADER}" @ONLY CONTENT [[
#pragma once

namespace laminate {

/// A hash of the sources of all rooms that code and its constants are made by.
inline constexpr const char* source_version = "@version@";

}  // namespace laminate
]])
