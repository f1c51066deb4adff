// A plan as an ordinary schedule (docs/counting.md), so that it can be compiled, run and counted:
// its external accesses are the plan's exact volumes.
//
// A stack is a group whose sink walks over its output in tiles, rows of tiles outermost; every
// layer computes in the tile's body what is new, and every map is kept from the first tile to the
// last (store level root, compute level the sink's xo): retention in y and x, so that no pixel is
// computed twice. That is the walk of the tile classes, ragged tiles included.
//
//   {conv1: zo yo xo io | ...; X root/conv2.xo; W root/root; Y root/conv2.xo & conv2: yo xo zo io |
//   ...; tile y4 x6; W root/root; Y ...}
//
// Buffers of a schedule are boxes: where the paper keeps K - S rows over the whole map and a tile's
// columns, ours keeps all rows of the tile over the whole map. So live_total of the schedule may
// exceed the plan's footprint.
#pragma once

#include "nets/network/network.h"
#include "papers/spatial_fusion/fusion_search.h"
#include "scheduler/schedule/schedule.h"

namespace laminate::spatial_fusion {

[[nodiscard]] GroupSchedule fusion_group(const Network& network, const PlannedStack& stack);
[[nodiscard]] Schedule fusion_schedule(const Network& network, const FusionPlan& plan);

}  // namespace laminate::spatial_fusion
