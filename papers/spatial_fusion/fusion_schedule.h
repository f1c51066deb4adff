// A plan as an ordinary schedule (docs/counting.md), which can be compiled, run and counted. Its
// external accesses are the plan's exact volumes.
//
// A stack becomes a group whose sink walks over its output in tiles, rows of tiles outermost. Every
// layer computes what is new in the body of a tile. Every map is kept from the first tile to the
// last (store level root, compute level the sink's xo): retention in y and x, so no pixel is
// computed twice. This is the walk of the tile classes, ragged tiles included.
//
//   {conv1: zo yo xo io | ...; X root/conv2.xo; W root/root; Y root/conv2.xo & conv2: yo xo zo io |
//   ...; tile y4 x6; W root/root; Y ...}
//
// Buffers of a schedule are boxes. The paper keeps K - S rows over the whole map and the columns of
// a tile; a schedule keeps all rows of the tile over the whole map. So live_total of the schedule
// may exceed the plan's footprint.
#pragma once

#include "nets/network/network.h"
#include "papers/spatial_fusion/fusion_search.h"
#include "scheduler/schedule/schedule.h"

namespace laminate::spatial_fusion {

[[nodiscard]] GroupSchedule fusion_group(const Network& network, const PlannedStack& stack);
[[nodiscard]] Schedule fusion_schedule(const Network& network, const FusionPlan& plan);

}  // namespace laminate::spatial_fusion
