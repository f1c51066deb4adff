#include "cli/halide.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "answers/counts_report.h"
#include "answers/output.h"
#include "base/error.h"
#include "generators/halide/text.h"
#include "instrumentation/halide_witness.h"
#include "runtime/media/npy.h"
#include "scheduler/counts/two_level/two_level.h"

namespace laminate::cli {

namespace {

void append_lines(std::vector<std::string>& lines, const std::string& text) {
    size_t begin = 0;
    while (begin < text.size()) {
        const size_t end = std::min(text.find('\n', begin), text.size());
        lines.push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
}

/// A nest per line, as the schedule's text has them, cut between words at `width`.
std::vector<std::string> schedule_lines(const GroupSchedule& group, size_t width = 95) {
    std::vector<std::string> lines;
    std::string rest = to_text(group);
    while (!rest.empty()) {
        const size_t nest = rest.find(" & ");
        size_t end = nest == std::string::npos ? rest.size() : nest + 2;
        if (end > width) end = rest.rfind(' ', width);
        lines.push_back((lines.empty() ? "" : " ") + rest.substr(0, end));
        rest.erase(0, std::min(rest.size(), end + 1));
    }
    return lines;
}

std::string moved_line(const GroupCounts& counts) {
    return fmt::format(
        "Elements: {} reads of inputs, {} of weights, {} of partial sums, {} writes; "
        "{} MACs;",
        grouped(counts.input_reads().value()), grouped(counts.weight_reads().value()),
        grouped(counts.output_reads.value()), grouped(counts.output_writes.value()),
        grouped(counts.macs().value()));
}

/// Groups of more MACs are counted, not executed.
constexpr Macs most_executed{100'000'000};

/// Lines on what Halide does instead of the schedule. Throws InputError where its output is wrong.
std::string closest_counts(const Network& network, const GroupSchedule& group,
                           const GroupCounts& model) {
    const bool is_executed = model.macs() <= most_executed;
    const HalideMeasurement halide =
        measure_halide(network, group, 1, is_executed ? CountMode::execute : CountMode::count_only);
    if (!halide.refused.empty()) return "and Halide refuses the nearest form: " + halide.refused;
    if (!halide.wrong_result.empty())
        throw InputError("Halide computes a wrong result from the nearest form: " +
                         halide.wrong_result);
    return side_by_side({{"schedule", {model}}, {"Halide", {halide.counts}}}) +
           (is_executed ? "Its output on random values is that of the reference operators.\n"
                        : "Too many MACs to execute it here; its output was not compared.\n");
}

/// Shapes have the fastest dimension last, as NumPy has it.
void save_constants(const Network& network, const GroupSchedule& group,
                    const HalideProgram& program, const std::string& directory) {
    std::filesystem::create_directories(directory);
    for (const HalideInput& input : program.inputs) {
        if (input.values == HalideInput::Values::activations) continue;
        save_npy({{input.extents.rbegin(), input.extents.rend()},
                  halide_constants(network, group, input)},
                 std::filesystem::path(directory) / (input.param.name() + ".npy"));
    }
}

}  // namespace

std::string halide_file(const Network& network, const Schedule& schedule,
                        const HalideFileOptions& options) {
    std::vector<HalideGenerator> generators;
    std::string reasons;
    const size_t groups = schedule.groups().size();
    for (size_t g = 0; g < groups; ++g) {
        const GroupSchedule& group = schedule.groups()[g];
        HalideGenerator generator{
            halide_program(network, group),
            halide_identifier(options.name.empty() ? network.name : options.name),
            {}};
        if (groups > 1) generator.name += fmt::format("_{}", g + 1);
        std::vector<std::string>& comment = generator.comment;
        comment = schedule_lines(group);
        const GroupCounts model = two_level_counts(network, group);
        comment.push_back(moved_line(model));
        comment.push_back(
            fmt::format("{} elements of internal memory.", grouped(model.live_total.value())));
        if (!generator.program.exclusions.empty()) {
            comment.emplace_back("");
            comment.emplace_back("Halide's inference does not execute this schedule exactly:");
            for (const HalideExclusion& exclusion : generator.program.exclusions) {
                comment.push_back("  " + exclusion.text);
                reasons += (reasons.empty() ? " " : "; ") + exclusion.text;
            }
            if (options.closest) {
                append_lines(comment, closest_counts(network, group, model));
            }
        }
        if (!options.constants.empty())
            save_constants(network, group, generator.program, options.constants);
        generators.push_back(std::move(generator));
    }
    if (!reasons.empty() && !options.closest) {
        throw InputError(
            "Halide's inference does not execute this schedule exactly; --closest writes "
            "the nearest that it does:" +
            reasons);
    }
    return halide_generator_file(
        generators,
        {fmt::format("{}, written by `laminate show --halide`.", network.name),
         "Copies into internal memory are Funcs of their own: in_ of inputs, w_ of weights."});
}

HalideVerdict halide_verdict(const Network& network, const GroupSchedule& group,
                             const GroupCounts& model, uint64_t seed, CountMode mode) {
    HalideVerdict verdict;
    try {
        const HalideMeasurement halide = measure_halide(network, group, seed, mode);
        verdict.exclusions = halide.exclusions;
        verdict.failure = halide.refused.empty() ? halide.wrong_result : halide.refused;
        if (halide.refused.empty()) {
            verdict.counts = halide.counts;
            verdict.difference = difference(model, "model", halide.counts, "Halide");
        }
    } catch (const InputError& error) {
        verdict.no_form = error.what();
    }
    return verdict;
}

void HalideSummary::add(const HalideVerdict& verdict, const GroupCounts& model) {
    const bool is_equal = verdict.failure.empty() && verdict.difference.empty();
    if (verdict.is_inside()) {
        ++inside_;
        equal_ += is_equal ? 1 : 0;
        return;
    }
    ++outside_;
    std::set<std::string> reasons;
    if (!verdict.no_form.empty()) reasons.insert("no form as Halide Funcs");
    for (const HalideExclusion& exclusion : verdict.exclusions)
        reasons.insert(to_text(exclusion.reason));
    for (const std::string& reason : reasons) {
        Outside& outside = reasons_[reason];
        ++outside.groups;
        if (!verdict.counts) {
            outside.refused += verdict.no_form.empty() ? 1 : 0;
            continue;
        }
        outside.equal += is_equal ? 1 : 0;
        outside.most =
            std::max(outside.most, static_cast<double>(verdict.counts->accesses().value()) /
                                       static_cast<double>(model.accesses().value()));
    }
}

std::string HalideSummary::text() const {
    std::string text = fmt::format(
        "Halide's own inference: {} of {} different groups inside its class, {} of them equal",
        inside_, inside_ + outside_, equal_);
    for (const auto& [reason, outside] : reasons_) {
        text += fmt::format("\n  {} outside: {}", outside.groups, reason);
        if (outside.equal > 0) text += fmt::format("; {} equal all the same", outside.equal);
        if (outside.refused > 0) text += fmt::format("; {} refused", outside.refused);
        if (outside.most > 1)
            text += fmt::format("; up to {:.2f} times the accesses", outside.most);
    }
    return text;
}

nlohmann::ordered_json HalideSummary::json() const {
    auto outside = nlohmann::ordered_json::array();
    for (const auto& [reason, groups] : reasons_) {
        outside.push_back({{"reason", reason},
                           {"groups", groups.groups},
                           {"equal", groups.equal},
                           {"refused", groups.refused},
                           {"most_accesses_over_schedule", groups.most}});
    }
    return {{"inside", inside_}, {"equal", equal_}, {"outside", outside_}, {"reasons", outside}};
}

}  // namespace laminate::cli
