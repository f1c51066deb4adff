// ONNX models for tests, written node by node.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "nets/network/network.h"
#include "nets/onnx/onnx.h"
#include "onnx.pb.h"

namespace laminate::test {

namespace proto = laminate::onnx_file;

/// What a call threw, or "no error".
template <class Call>
std::string message_of(const Call& call) {
    try {
        call();
    } catch (const InputError& error) {
        return error.what();
    }
    return "no error";
}

inline void expect_contains(const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << "found:    " << text << "\nexpected: " << part;
    EXPECT_EQ(text.find('\n'), std::string::npos) << "more than one line: " << text;
}

/// A directory of this test process, removed at the end.
class Scratch {
public:
    Scratch()
        : path_(std::filesystem::temp_directory_path() /
                ("laminate_nets_test_" + std::to_string(::getpid()) + "_" +
                 std::to_string(count_++))) {
        std::filesystem::create_directories(path_);
    }
    ~Scratch() { std::filesystem::remove_all(path_); }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    [[nodiscard]] std::string operator/(const std::string& name) const {
        return (path_ / name).string();
    }

private:
    static inline int count_ = 0;
    std::filesystem::path path_;
};

class NodeBuilder {
public:
    explicit NodeBuilder(proto::NodeProto* node) : node_(node) {}
    NodeBuilder& integer(const char* name, int64_t value) {
        auto* a = add(name, proto::AttributeProto::INT);
        a->set_i(value);
        return *this;
    }
    NodeBuilder& integers(const char* name, const std::vector<int64_t>& values) {
        auto* a = add(name, proto::AttributeProto::INTS);
        for (const int64_t v : values) a->add_ints(v);
        return *this;
    }
    NodeBuilder& real(const char* name, float value) {
        add(name, proto::AttributeProto::FLOAT)->set_f(value);
        return *this;
    }
    NodeBuilder& text(const char* name, const std::string& value) {
        add(name, proto::AttributeProto::STRING)->set_s(value);
        return *this;
    }

private:
    proto::AttributeProto* add(const char* name, proto::AttributeProto::AttributeType type) {
        auto* a = node_->add_attribute();
        a->set_name(name);
        a->set_type(type);
        return a;
    }
    proto::NodeProto* node_;
};

/// A model whose input is "x" and whose output is "y" unless told otherwise.
class ModelBuilder {
public:
    explicit ModelBuilder(const std::vector<int64_t>& x_dims, int64_t opset = 17) {
        model.set_ir_version(8);
        model.add_opset_import()->set_version(opset);
        model.mutable_graph()->set_name("test");
        input("x", x_dims);
        model.mutable_graph()->add_output()->set_name("y");
    }

    proto::TensorShapeProto* input(const std::string& name, const std::vector<int64_t>& dims) {
        auto* info = model.mutable_graph()->add_input();
        info->set_name(name);
        auto* type = info->mutable_type()->mutable_tensor_type();
        type->set_elem_type(proto::TensorProto::FLOAT);
        for (const int64_t d : dims) type->mutable_shape()->add_dim()->set_dim_value(d);
        return type->mutable_shape();
    }

    /// Dimensions of "x": numbers stay, other texts become symbols.
    ModelBuilder& symbols(const std::vector<std::string>& dims) {
        auto* shape = model.mutable_graph()
                          ->mutable_input(0)
                          ->mutable_type()
                          ->mutable_tensor_type()
                          ->mutable_shape();
        shape->clear_dim();
        for (const std::string& d : dims) {
            if (d.find_first_not_of("0123456789") == std::string::npos) {
                shape->add_dim()->set_dim_value(std::stoll(d));
            } else {
                shape->add_dim()->set_dim_param(d);
            }
        }
        return *this;
    }

    /// FLOAT in float_data; values 1, 2, 3, ... unless given.
    ModelBuilder& weights(const std::string& name, const std::vector<int64_t>& dims,
                          std::vector<float> values = {}) {
        int64_t count = 1;
        for (const int64_t d : dims) count *= d;
        for (int64_t i = static_cast<int64_t>(values.size()); i < count; ++i)
            values.push_back(static_cast<float>(i + 1));
        auto* t = model.mutable_graph()->add_initializer();
        t->set_name(name);
        t->set_data_type(proto::TensorProto::FLOAT);
        for (const int64_t d : dims) t->add_dims(d);
        for (const float v : values) t->add_float_data(v);
        return *this;
    }

    ModelBuilder& integers(const std::string& name, const std::vector<int64_t>& values) {
        auto* t = model.mutable_graph()->add_initializer();
        t->set_name(name);
        t->set_data_type(proto::TensorProto::INT64);
        t->add_dims(static_cast<int64_t>(values.size()));
        for (const int64_t v : values) t->add_int64_data(v);
        return *this;
    }

    NodeBuilder node(const std::string& op, const std::vector<std::string>& inputs,
                     const std::string& output, const std::string& name = "") {
        auto* n = model.mutable_graph()->add_node();
        n->set_op_type(op);
        for (const std::string& i : inputs) n->add_input(i);
        n->add_output(output);
        if (!name.empty()) n->set_name(name);
        return NodeBuilder(n);
    }

    [[nodiscard]] std::string bytes() const { return model.SerializeAsString(); }
    [[nodiscard]] Network parse(const InputSizes& sizes = {}) const {
        return parse_onnx(bytes(), "net.onnx", sizes);
    }
    [[nodiscard]] std::string error(const InputSizes& sizes = {}) const {
        return message_of([&] { (void)parse(sizes); });
    }

    proto::ModelProto model;
};

}  // namespace laminate::test
