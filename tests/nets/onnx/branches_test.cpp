// If on conditions that are known before the run.
#include <gtest/gtest.h>

#include "nets/operators/reference_operators.h"
#include "tests/nets/onnx/builder.h"

namespace laminate {
namespace {

using test::expect_contains;
using test::ModelBuilder;
using Values = std::vector<float>;

/// A graph in a node, written node by node.
class Branch {
public:
    explicit Branch(const std::string& output) { graph.add_output()->set_name(output); }
    Branch& node(const std::string& op, const std::vector<std::string>& inputs,
                 const std::string& output) {
        auto* n = graph.add_node();
        n->set_op_type(op);
        for (const std::string& i : inputs) n->add_input(i);
        n->add_output(output);
        return *this;
    }
    Branch& value(const std::string& name, float value) {
        auto* t = graph.add_initializer();
        t->set_name(name);
        t->set_data_type(test::proto::TensorProto::FLOAT);
        t->add_float_data(value);
        return *this;
    }
    Branch& choice(const std::string& condition, const std::string& output, const Branch& yes,
                   const Branch& no) {
        write_if(graph.add_node(), condition, output, yes, no);
        return *this;
    }
    static void write_if(test::proto::NodeProto* n, const std::string& condition,
                         const std::string& output, const Branch& yes, const Branch& no) {
        n->set_op_type("If");
        n->set_name("choice");
        n->add_input(condition);
        n->add_output(output);
        for (const auto& [name, branch] :
             {std::pair{"then_branch", &yes}, std::pair{"else_branch", &no}}) {
            auto* a = n->add_attribute();
            a->set_name(name);
            a->set_type(test::proto::AttributeProto::GRAPH);
            *a->mutable_g() = branch->graph;
        }
    }
    test::proto::GraphProto graph;
};

void add_if(ModelBuilder& m, const std::string& condition, const std::string& output,
            const Branch& yes, const Branch& no) {
    Branch::write_if(m.model.mutable_graph()->add_node(), condition, output, yes, no);
}

void add_truth(ModelBuilder& m, const std::string& name, bool value) {
    auto* t = m.model.mutable_graph()->add_initializer();
    t->set_name(name);
    t->set_data_type(test::proto::TensorProto::BOOL);
    t->add_int32_data(value);
}

Branch adds(const std::string& x, float summand) {
    return Branch("result").value("c", summand).node("Add", {x, "c"}, "result");
}

TEST(If, TakesTheBranchOfItsCondition) {
    for (const bool condition : {true, false}) {
        ModelBuilder m({1, 2});
        add_truth(m, "condition", condition);
        add_if(m, "condition", "chosen", adds("x", 10), adds("x", 20));
        m.node("Relu", {"chosen"}, "y");
        const Network network = m.parse();
        EXPECT_EQ(run_reference_network(network, {{1, -50}})[0],
                  (Values{condition ? 11.0f : 21.0f, 0}));
        EXPECT_EQ(network.folded.at(0),
                  "If \"choice\" replaced by the branch that its condition takes");
    }
}

TEST(If, AConditionMayComeFromShapes) {
    // PyTorch exports x.squeeze(1) as "squeeze axis 1 if it has extent 1".
    for (const int64_t extent : {1, 3}) {
        ModelBuilder m({2, extent, 2});
        m.integers("one", {1}).integers("axes", {1});
        m.node("Shape", {"x"}, "shape");
        m.node("Gather", {"shape", "one"}, "extent");
        m.node("Equal", {"extent", "one"}, "is_one");
        add_if(m, "is_one", "y", Branch("t").node("Squeeze", {"x", "axes"}, "t"),
               Branch("e").node("Identity", {"x"}, "e"));
        m.node("Neg", {"y"}, "z");
        m.model.mutable_graph()->mutable_output(0)->set_name("z");
        const Network network = m.parse();
        EXPECT_EQ(network.tensor(network.outputs[0]).dims,
                  extent == 1 ? (std::vector<int64_t>{2, 2}) : (std::vector<int64_t>{2, 3, 2}));
    }
}

TEST(If, NamesInBranchesMayHideOthers) {
    // "c" and "result" are also names outside the branch and in a second If.
    ModelBuilder m({1, 2});
    m.weights("c", {1}, {1000});
    add_truth(m, "yes", true);
    add_if(m, "yes", "first", adds("x", 1), adds("x", 2));
    m.node("Add", {"first", "c"}, "result");
    add_if(m, "yes", "second", adds("result", 3), adds("result", 4));
    m.node("Mul", {"second", "c"}, "y");
    // The second branch's own "result" hides the one outside, so it would read itself.
    expect_contains(m.error(), "needs its own result: the graph has a cycle");

    ModelBuilder kept({1, 2});
    kept.weights("c", {1}, {1000});
    add_truth(kept, "yes", true);
    add_if(kept, "yes", "first", adds("x", 1), adds("x", 2));
    kept.node("Add", {"first", "c"}, "sum");
    add_if(kept, "yes", "second", adds("sum", 3), adds("sum", 4));
    kept.node("Sub", {"second", "c"}, "y");
    EXPECT_EQ(run_reference_network(kept.parse(), {{0, 5}})[0], (Values{4, 9}));
}

TEST(If, InsideABranch) {
    for (const bool outer : {true, false}) {
        for (const bool inner : {true, false}) {
            ModelBuilder m({1, 1});
            add_truth(m, "outer", outer);
            add_truth(m, "inner", inner);
            const Branch yes = Branch("t")
                                   .value("c", 1)
                                   .node("Add", {"x", "c"}, "sum")
                                   .choice("inner", "t", adds("sum", 10), adds("sum", 20));
            add_if(m, "outer", "y", yes, adds("x", 100));
            EXPECT_EQ(run_reference_network(m.parse(), {{0}})[0], (Values{!outer  ? 100.0f
                                                                          : inner ? 11.0f
                                                                                  : 21.0f}));
        }
    }
}

TEST(If, TheOtherBranchIsNotLookedAt) {
    ModelBuilder m({1, 1});
    add_truth(m, "no", false);
    add_if(m, "no", "y", Branch("t").node("NonMaxSuppression", {"x"}, "t"), adds("x", 1));
    EXPECT_EQ(run_reference_network(m.parse(), {{2}})[0], (Values{3}));
}

TEST(If, Refused) {
    ModelBuilder live({1, 1});
    live.input("condition", {});
    add_if(live, "condition", "y", adds("x", 1), adds("x", 2));
    EXPECT_EQ(live.error(),
              "net.onnx: node \"choice\" (If): condition \"condition\" is not known before the "
              "run, expected one constant "
              "truth value");

    ModelBuilder counts({1, 1});
    add_truth(counts, "yes", true);
    Branch two = adds("x", 1);
    two.graph.add_output()->set_name("c");
    add_if(counts, "yes", "y", two, adds("x", 2));
    EXPECT_EQ(counts.error(),
              "net.onnx: node \"choice\" (If): has a branch with 2 outputs, expected 1");

    ModelBuilder nowhere({1, 1});
    add_truth(nowhere, "yes", true);
    add_if(nowhere, "yes", "y", adds("absent", 1), adds("x", 2));
    EXPECT_EQ(nowhere.error(),
              "net.onnx: node \"choice\" (If): reads \"absent\", which no node, initializer or "
              "input provides");

    ModelBuilder empty({1, 1});
    add_truth(empty, "yes", true);
    auto* node = empty.model.mutable_graph()->add_node();
    node->set_op_type("If");
    node->add_input("yes");
    node->add_output("y");
    EXPECT_EQ(empty.error(),
              "net.onnx: node writing \"y\" (If): has no then_branch or no else_branch");

    ModelBuilder inside({1, 1});
    add_truth(inside, "yes", true);
    add_if(inside, "yes", "y", Branch("t").node("NonMaxSuppression", {"x"}, "t"), adds("x", 1));
    expect_contains(inside.error(),
                    "node writing \"t\": operator NonMaxSuppression is not supported");
}

}  // namespace
}  // namespace laminate
