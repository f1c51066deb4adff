// A test fixture with a directory that is removed at the end.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <string>

namespace laminate {

class TemporaryDirectory : public ::testing::Test {
protected:
    void SetUp() override {
        const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
        directory_ = std::filesystem::path(::testing::TempDir()) /
                     (std::string("laminate_") + info->test_suite_name() + "_" + info->name() +
                      "_" + std::to_string(::getpid()));
        std::filesystem::create_directories(directory_);
    }
    void TearDown() override { std::filesystem::remove_all(directory_); }

    [[nodiscard]] auto files() const {
        return std::distance(std::filesystem::directory_iterator(directory_), {});
    }

    std::filesystem::path directory_;
};

}  // namespace laminate
