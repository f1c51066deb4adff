#include "answers/counts_report.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace laminate::cli {

namespace {

/// The printed numbers of one group, or of several combined.
struct Summary {
    Macs macs;
    Elements x_reads, w_reads, y_reads, y_writes;
    Elements x_buffer, w_buffer, intermediates, y_buffer;
    Elements live, sum;
};

Summary summary(const GroupCounts& group) {
    Summary s;
    s.macs = group.macs();
    s.x_reads = group.input_reads();
    s.w_reads = group.weight_reads();
    s.y_reads = group.output_reads;
    s.y_writes = group.output_writes;
    s.x_buffer = group.input_buffers();
    for (size_t k = 0; k < group.layers.size(); ++k) {
        const LayerCounts& layer = group.layers[k];
        s.w_buffer += layer.weight_buffer;
        (k + 1 < group.layers.size() ? s.intermediates : s.y_buffer) += layer.output_buffer;
    }
    s.live = group.live_total;
    s.sum = group.sum_total;
    return s;
}

/// Groups run one after the other: traffic and work add up, and each group reuses the memory of the
/// one before.
Summary summary(const std::vector<GroupCounts>& groups) {
    Summary all;
    for (const GroupCounts& group : groups) {
        const Summary s = summary(group);
        all.macs += s.macs;
        all.x_reads += s.x_reads;
        all.w_reads += s.w_reads;
        all.y_reads += s.y_reads;
        all.y_writes += s.y_writes;
        all.x_buffer = std::max(all.x_buffer, s.x_buffer);
        all.w_buffer = std::max(all.w_buffer, s.w_buffer);
        all.intermediates = std::max(all.intermediates, s.intermediates);
        all.y_buffer = std::max(all.y_buffer, s.y_buffer);
        all.live = std::max(all.live, s.live);
        all.sum = std::max(all.sum, s.sum);
    }
    return all;
}

/// A number of a witness: its name in tables, and its place in JSON.
struct Quantity {
    const char* name;
    const char* path;
    int64_t (*of)(const Summary&);
};
constexpr Quantity quantities[] = {
    {"MACs", "/macs", [](const Summary& s) { return s.macs.value(); }},
    {"external reads of X", "/reads/X", [](const Summary& s) { return s.x_reads.value(); }},
    {"external reads of W", "/reads/W", [](const Summary& s) { return s.w_reads.value(); }},
    {"external reads of Y", "/reads/Y", [](const Summary& s) { return s.y_reads.value(); }},
    {"external writes of Y", "/writes/Y", [](const Summary& s) { return s.y_writes.value(); }},
    {"buffer of X", "/buffer_elements/X", [](const Summary& s) { return s.x_buffer.value(); }},
    {"buffers of W", "/buffer_elements/W", [](const Summary& s) { return s.w_buffer.value(); }},
    {"buffers of intermediates", "/buffer_elements/intermediates",
     [](const Summary& s) { return s.intermediates.value(); }},
    {"buffer of Y", "/buffer_elements/Y", [](const Summary& s) { return s.y_buffer.value(); }},
    {"held at once (live)", "/buffer_elements/total",
     [](const Summary& s) { return s.live.value(); }},
    {"sum of all buffers", "/buffer_elements/sum", [](const Summary& s) { return s.sum.value(); }},
};

using Pointer = nlohmann::ordered_json::json_pointer;

nlohmann::ordered_json to_json(const Summary& s) {
    nlohmann::ordered_json json;
    for (const Quantity& quantity : quantities) json[Pointer(quantity.path)] = quantity.of(s);
    return json;
}

std::string layer_names(const GroupCounts& group) {
    if (group.layers.size() == 1) return group.layers.front().layer;
    return fmt::format("{} .. {} ({})", group.layers.front().layer, group.layers.back().layer,
                       group.layers.size());
}

}  // namespace

nlohmann::ordered_json group_json(const GroupCounts& group) { return to_json(summary(group)); }

nlohmann::ordered_json counts_json(const std::vector<GroupCounts>& groups) {
    nlohmann::ordered_json all = to_json(summary(groups));
    all["groups"] = nlohmann::ordered_json::array();
    for (const GroupCounts& group : groups) all["groups"].push_back(group_json(group));
    return all;
}

std::string counts_table(const std::vector<GroupCounts>& groups) {
    Table table({{"group"},
                 {"MACs", Align::right},
                 {"X reads", Align::right},
                 {"W reads", Align::right},
                 {"Y reads", Align::right},
                 {"Y writes", Align::right},
                 {"held (live)", Align::right},
                 {"held (sum)", Align::right}});
    const auto add = [&](const std::string& name, const Summary& s) {
        table.add({name, grouped(s.macs.value()), grouped(s.x_reads.value()),
                   grouped(s.w_reads.value()), grouped(s.y_reads.value()),
                   grouped(s.y_writes.value()), grouped(s.live.value()), grouped(s.sum.value())});
    };
    for (const GroupCounts& group : groups) add(layer_names(group), summary(group));
    table.add_rule();
    add("network", summary(groups));
    return table.text();
}

std::string side_by_side(const std::vector<Witness>& witnesses) {
    std::vector<Table::Column> columns{{"elements"}};
    std::vector<Summary> sums;
    for (const Witness& witness : witnesses) {
        columns.push_back({witness.name, Align::right});
        sums.push_back(summary(witness.groups));
    }
    columns.push_back({""});
    Table table(columns);
    for (const Quantity& quantity : quantities) {
        std::vector<std::string> row{quantity.name};
        bool equal = true;
        for (const Summary& s : sums) {
            row.push_back(grouped(quantity.of(s)));
            equal = equal && quantity.of(s) == quantity.of(sums.front());
        }
        row.push_back(equal ? "equal" : "DIFFERENT");
        table.add(row);
    }
    return table.text();
}

std::vector<NamedCount> named_counts(const nlohmann::ordered_json& counts) {
    std::vector<NamedCount> named;
    for (const Quantity& quantity : quantities)
        named.push_back({quantity.name, counts.at(Pointer(quantity.path)).get<int64_t>()});
    return named;
}

namespace {

/// Sums over the groups of a schedule.
struct AllDone {
    Macs macs_scheduled, macs_done;
    ElementsDone x_reads, w_reads, y_reads, y_writes, computed;
    Bytes scratch;
};

AllDone all_done(const std::vector<DoneCounts>& groups) {
    AllDone all;
    for (const DoneCounts& group : groups) {
        all.macs_scheduled += group.scheduled();
        all.macs_done += group.done();
        all.x_reads += group.input_reads();
        all.w_reads += group.weight_reads();
        all.y_reads += group.output_reads;
        all.y_writes += group.output_writes;
        all.computed += group.computed();
        all.scratch = std::max(all.scratch, group.scratch);
    }
    return all;
}

/// A number of the code that runs: its name in tables, and its place in JSON.
struct DoneQuantity {
    const char* name;
    const char* path;
    ElementsDone (*of)(const AllDone&);
};
constexpr DoneQuantity done_quantities[] = {
    {"multiplications", "/macs",
     [](const AllDone& all) {
         return ElementsDone{Elements(all.macs_scheduled.value()), Elements(all.macs_done.value())};
     }},
    {"external reads of X", "/reads/X", [](const AllDone& all) { return all.x_reads; }},
    {"external reads of W", "/reads/W", [](const AllDone& all) { return all.w_reads; }},
    {"external reads of Y", "/reads/Y", [](const AllDone& all) { return all.y_reads; }},
    {"external writes of Y", "/writes/Y", [](const AllDone& all) { return all.y_writes; }},
    {"computed", "/computed", [](const AllDone& all) { return all.computed; }},
};

nlohmann::ordered_json layer_json(Macs macs, Elements weights, Elements computed) {
    return {{"macs", macs.value()},
            {"reads", {{"W", weights.value()}}},
            {"computed", computed.value()}};
}

}  // namespace

nlohmann::ordered_json done_json(const std::vector<DoneCounts>& groups) {
    const AllDone all = all_done(groups);
    nlohmann::ordered_json scheduled, done;
    for (const DoneQuantity& quantity : done_quantities) {
        scheduled[Pointer(quantity.path)] = quantity.of(all).scheduled.value();
        done[Pointer(quantity.path)] = quantity.of(all).done.value();
    }
    auto layers = nlohmann::ordered_json::array();
    for (const DoneCounts& group : groups) {
        for (const NestDone& nest : group.nests) {
            layers.push_back(
                {{"layer", nest.layer},
                 {"scheduled",
                  layer_json(nest.scheduled, nest.weights.scheduled, nest.computed.scheduled)},
                 {"done", layer_json(nest.done, nest.weights.done, nest.computed.done)}});
        }
    }
    return {{"scheduled", std::move(scheduled)},
            {"done", std::move(done)},
            {"scratch_bytes", all.scratch.value()},
            {"layers", std::move(layers)}};
}

std::string done_by_layer(const std::vector<DoneCounts>& groups) {
    Table table({{"the code that runs"},
                 {"multiplications scheduled", Align::right},
                 {"done", Align::right},
                 {"done / scheduled", Align::right}});
    const auto add = [&](const std::string& name, Macs scheduled, Macs done) {
        table.add({name, grouped(scheduled.value()), grouped(done.value()),
                   scheduled == Macs{}
                       ? ""
                       : fmt::format("{:.3f}", static_cast<double>(done.value()) /
                                                   static_cast<double>(scheduled.value()))});
    };
    Macs scheduled, done;
    for (const DoneCounts& group : groups) {
        for (const NestDone& nest : group.nests) add(nest.layer, nest.scheduled, nest.done);
        scheduled += group.scheduled();
        done += group.done();
    }
    table.add_rule();
    add("network", scheduled, done);
    return table.text();
}

std::string done_table(const std::vector<DoneCounts>& model, const std::vector<DoneCounts>& code) {
    Table table(
        {{"elements"}, {"scheduled", Align::right}, {"done", Align::right}, {"model = code"}});
    const AllDone predicted = all_done(model), counted = all_done(code);
    const auto cell = [](Elements of_model, Elements of_code) {
        if (of_model == of_code) return grouped(of_model.value());
        return grouped(of_model.value()) + " | " + grouped(of_code.value());
    };
    for (const DoneQuantity& quantity : done_quantities) {
        const ElementsDone a = quantity.of(predicted), b = quantity.of(counted);
        table.add({quantity.name, cell(a.scheduled, b.scheduled), cell(a.done, b.done),
                   a == b ? "equal" : "DIFFERENT"});
    }
    return table.text();
}

}  // namespace laminate::cli
