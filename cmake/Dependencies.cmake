# Packages that more than one room or test uses. A room finds what only it needs.
find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(nlohmann_json REQUIRED)
find_package(fmt REQUIRED)
