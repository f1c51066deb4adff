#include "generators/compile/kept_code.h"

#include <gtest/gtest.h>

#include <string>

#include "base/rng.h"

namespace laminate {
namespace {

KeptCode some_code() {
    KeptCode kept;
    kept.code.scratch_bytes = 4096;
    kept.code.strips = 6;
    kept.code.strips_together = 3;
    kept.code.open_scratch_bytes = SizeFormula(SizeVariable::rows) * 4 + 64;
    kept.code.packings = {{.layer = 1, .source = Packing::Source::bias, .block = 16},
                          {.source = Packing::Source::numbers, .values = {0.5F, -0.0F}}};
    kept.objects = {"the object\nof the group", std::string("\0a kernel", 9)};
    return kept;
}

TEST(KeptCode, IsReadAsItWasWritten) {
    const KeptCode kept = some_code();
    const std::optional<KeptCode> read = parse_kept_code(to_bytes(kept.code, kept.objects));
    ASSERT_TRUE(read);
    EXPECT_EQ(read->code.scratch_bytes, 4096);
    EXPECT_EQ(read->code.strips, 6);
    EXPECT_EQ(read->code.strips_together, 3);
    EXPECT_EQ(read->code.open_scratch_bytes, kept.code.open_scratch_bytes);
    EXPECT_EQ(read->code.packings, kept.code.packings);
    EXPECT_EQ(read->objects, kept.objects);
    KeptCode of_one_size = kept;
    of_one_size.code.open_scratch_bytes.reset();
    EXPECT_FALSE(parse_kept_code(to_bytes(of_one_size.code, of_one_size.objects))->code.open_scratch_bytes);
}

TEST(KeptCode, OtherBytesAreNothing) {
    const KeptCode kept = some_code();
    const std::string bytes = to_bytes(kept.code, kept.objects);
    for (size_t length = 0; length < bytes.size(); ++length)
        EXPECT_FALSE(parse_kept_code(bytes.substr(0, length))) << length;
    EXPECT_FALSE(parse_kept_code(bytes + "x"));
    Rng rng(1);
    for (int n = 0; n < 2000; ++n) {
        std::string damaged = bytes;
        damaged[static_cast<size_t>(rng.between(0, std::ssize(bytes) - 1))] =
            static_cast<char>(rng.between(0, 255));
        (void)parse_kept_code(damaged);  // may read as other code, never beyond its end
    }
}

}  // namespace
}  // namespace laminate
