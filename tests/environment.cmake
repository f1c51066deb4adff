# ctest reads this before it runs tests: compiled code is kept by those tests only that ask for it.
set(ENV{LAMINATE_CACHE} off)
