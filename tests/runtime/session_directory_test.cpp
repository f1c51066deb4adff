// Sessions from a directory; runtime/session.cpp.
#include <fstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "runtime/laminate.h"
#include "runtime/session.h"
#include "tests/runtime/compiled_double.h"
#include "tests/support/temporary_directory.h"

namespace laminate {
namespace {

class CompiledDirectory : public TemporaryDirectory {
protected:
    void put(const std::string& manifest, const char* library) {
        write_file_atomically(directory_ / manifest_file, manifest);
        std::filesystem::copy_file(library, directory_ / "libdouble.so");
    }
    [[nodiscard]] std::string error() const {
        try {
            (void)Session::open(directory_);
        } catch (const InputError& e) {
            return e.what();
        }
        return "no error";
    }
    [[nodiscard]] std::string path(const char* file) const { return (directory_ / file).string(); }
};

TEST_F(CompiledDirectory, RunsItsSharedLibrary) {
    put(double_manifest, LAMINATE_TEST_LIBRARY_good);
    Session session = Session::open(directory_, {2});
    const std::vector<float> x{1, 2, 3, 4};
    std::vector<float> y(4);
    session.run({x.data()}, {y.data()});
    EXPECT_EQ(y, (std::vector<float>{2, 4, 6, 8}));
}

TEST_F(CompiledDirectory, RunsByTheCApi) {
    put(double_manifest, LAMINATE_TEST_LIBRARY_good);
    laminate_session* session = laminate_open(directory_.c_str(), 1);
    ASSERT_NE(session, nullptr) << laminate_last_error();
    const std::vector<float> x{1, 2, 3, 4};
    std::vector<float> y(4);
    const float* inputs[] = {x.data()};
    float* outputs[] = {y.data()};
    EXPECT_EQ(laminate_run(session, inputs, outputs), 0);
    laminate_close(session);
    EXPECT_EQ(y, (std::vector<float>{2, 4, 6, 8}));
}

TEST_F(CompiledDirectory, AnEmptyDirectoryHasNoManifest) {
    EXPECT_EQ(error(), path("manifest.json") + ": no such file");
}

TEST_F(CompiledDirectory, AMissingLibraryIsNamed) {
    write_file_atomically(directory_ / manifest_file, double_manifest);
    EXPECT_EQ(error(), path("libdouble.so") + ": no such file");
}

TEST_F(CompiledDirectory, AFileThatIsNoLibraryIsRefused) {
    write_file_atomically(directory_ / manifest_file, double_manifest);
    write_file_atomically(directory_ / "libdouble.so", "no library");
    EXPECT_EQ(error().find(path("libdouble.so") + ": cannot be loaded: "), 0u) << error();
}

TEST_F(CompiledDirectory, ALibraryOfAnotherMakeIsRefused) {
    put(double_manifest, LAMINATE_TEST_LIBRARY_without_symbol);
    EXPECT_EQ(error(),
              path("libdouble.so") +
                  ": has no symbol laminate_network, expected a library of `laminate compile`");
}

TEST_F(CompiledDirectory, ALibraryOfAnotherVersionIsRefused) {
    put(double_manifest, LAMINATE_TEST_LIBRARY_old_version);
    EXPECT_EQ(error(), path("libdouble.so") + ": is of version 0, this runtime is of version 1");
}

TEST_F(CompiledDirectory, AManifestOfAnotherCompilationIsRefused) {
    std::string other = double_manifest;
    other.replace(other.find("0000000000000000"), 16, "1111111111111111");
    put(other, LAMINATE_TEST_LIBRARY_good);
    EXPECT_EQ(error(),
              path("libdouble.so") + ": was not made together with " + path("manifest.json"));
}

// manifest.json records the library's size and hash; a changed or cut library is not even loaded.
TEST_F(CompiledDirectory, ADamagedLibraryIsRefusedBeforeLoading) {
    const auto with_identity = [](const FileIdentity& identity) {
        Manifest manifest = parse_manifest(double_manifest, "manifest");
        manifest.library_file = identity;
        return to_json(manifest);
    };
    put(double_manifest, LAMINATE_TEST_LIBRARY_good);
    const FileIdentity whole = identity_of(path("libdouble.so"));
    EXPECT_EQ(whole.bytes, static_cast<int64_t>(std::filesystem::file_size(path("libdouble.so"))));
    write_file_atomically(directory_ / manifest_file, with_identity(whole));
    EXPECT_EQ(parse_manifest(read_file(directory_ / manifest_file), "manifest").library_file,
              whole);

    std::string bytes = read_file(directory_ / "libdouble.so");
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
    write_file_atomically(directory_ / "libdouble.so", bytes);
    const FileIdentity changed = identity_of(path("libdouble.so"));
    EXPECT_EQ(error(), path("libdouble.so") +
                           ": is damaged or of another compilation: its XXH64 is " + changed.xxh64 +
                           ", expected " + whole.xxh64);

    bytes.resize(1000);
    write_file_atomically(directory_ / "libdouble.so", bytes);
    EXPECT_EQ(error(), path("libdouble.so") +
                           ": is damaged or of another compilation: 1000 bytes, expected " +
                           std::to_string(whole.bytes));
}

TEST_F(CompiledDirectory, AMachineWithoutTheInstructionsRefusesBeforeLoading) {
    std::string other = double_manifest;
    other.replace(other.find("\"cpu_features\": []"), 18, "\"cpu_features\": [\"avx4096\"]");
    write_file_atomically(directory_ / manifest_file, other);
    write_file_atomically(directory_ / "libdouble.so", "never loaded");
    EXPECT_EQ(error(),
              path("libdouble.so") + ": was compiled for host, this machine has no avx4096");
}

}  // namespace
}  // namespace laminate
