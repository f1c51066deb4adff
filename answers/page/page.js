"use strict";
// Draws the page from the data in #data; report_page.h says what that holds.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  // Steps come as runs of one phase: most groups are one layer.
  for (const group of data.groups) group.steps = group.steps.flatMap(([phase, times]) => Array(times).fill(phase));
  const element = (id) => document.getElementById(id);

  // ------------------------------------------------------------------------------------------------- small helpers

  const svgName = "http://www.w3.org/2000/svg";
  function svg(name, attributes, parent, text) {
    const node = document.createElementNS(svgName, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== undefined) node.textContent = text;
    if (parent) parent.append(node);
    return node;
  }
  function html(name, className, parent, text) {
    const node = document.createElement(name);
    if (className) node.className = className;
    if (text !== undefined) node.textContent = text;
    if (parent) parent.append(node);
    return node;
  }
  const grouped = (n) => Math.round(n).toLocaleString("en-US");
  const trimmed = (value, digits = 3) => (value >= 999.5 && value < 1e6 ? grouped(value) : String(Number(value.toPrecision(digits))));
  function withSuffix(value, base, suffixes, digits = 3) {
    let step = 0;
    while (value >= base * (1 - 5 * 10 ** -(digits + 1)) && step + 1 < suffixes.length) { value /= base; ++step; }
    return String(Number(value.toPrecision(Math.max(digits, value >= 1000 ? 4 : 0)))) + suffixes[step];
  }
  const counts = (n, digits) => withSuffix(n, 1000, ["", " k", " M", " G", " T", " P"], digits);
  const bytes = (n, digits) => withSuffix(n, 1024, [" B", " KiB", " MiB", " GiB", " TiB"], digits);
  const memory = (elements) => bytes(elements * data.bytes_per_element);
  const milliseconds = (ms) => `${trimmed(ms)} ms`;
  /** "1/85 of", "0.73 of", "2.1 times": how much of `whole` a part is. */
  const share = (part, whole) => {
    const ratio = part / whole;
    return ratio < 0.5 ? `1/${trimmed(whole / part)} of` : ratio < 0.995 ? `${ratio.toFixed(2)} of` : ratio < 1.005 ? "as much as" : `${trimmed(ratio)} times`;
  };
  const speed = (ms, other) => (ms <= other ? `${trimmed(other / ms)} times as fast` : `${trimmed(ms / other)} times slower`);
  const versusLayers = (ms, layers) => `${speed(ms, layers)} ${ms <= layers ? "as" : "than"} layer by layer`;
  const shortened = (text, most) => (text.length > most ? text.slice(0, most - 1) + "…" : text);
  /** Drawings are as wide as the page, so that their texts keep their size on a phone. */
  const paperWidth = 720;
  let isPrinting = false;
  const pageWidth = () => (isPrinting ? paperWidth : Math.min(1320, Math.max(300, document.querySelector("main").clientWidth)));

  // ---------------------------------------------------------------------------------------------------------- axes

  const measures = {
    accesses: {of: (p) => p.accesses, name: "external accesses", brief: "accesses", unit: "elements", text: counts, binary: false},
    bytes: {of: (p) => p.bytes, name: data.memory_name, brief: "memory", unit: "bytes", text: bytes, binary: true},
    macs: {of: (p) => p.macs, name: "multiply-accumulates", brief: "MACs", unit: "MACs", text: counts, binary: false},
    energy: {of: (p) => p.energy_pj, name: `energy on ${data.machine}`, brief: "energy", unit: "nJ", text: (pj, digits) => counts(pj / 1000, digits), binary: false},
    time: {of: (p) => p.time_ms && p.time_ms * 1000, name: "time", brief: "time", unit: "ms", text: (us, digits) => trimmed(us / 1000, digits), binary: false},
    measured: {of: (p) => p.timed && p.timed.fused.median_ms * 1000, name: "measured time", brief: "time", unit: "ms", text: (us, digits) => trimmed(us / 1000, digits), binary: false},
  };

  /** Values at which a logarithmic axis is marked: as fine as `fits`, which gets a list of them, allows. */
  function logTicks(low, high, binary, fits) {
    const base = binary ? 1024 : 10;
    const mantissas = binary
      ? [[1], [1, 32], [1, 4, 16, 64, 256], [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]]
      : [[1], [1, 3], [1, 2, 5], [1, 1.5, 2, 3, 4, 5, 7]];
    let best = [];
    for (const set of mantissas) {
      const ticks = [];
      for (let unit = base ** Math.floor(Math.log(low) / Math.log(base)); unit <= high; unit *= base) {
        for (const m of set) if (unit * m >= low && unit * m <= high) ticks.push(unit * m);
      }
      if (fits(ticks)) best = ticks;
    }
    for (let apart = 2; best.length < 2 && apart < 8; ++apart) {  // of very many decades
      const ticks = [];
      for (let unit = 1; unit <= high; unit *= base ** apart) if (unit >= low) ticks.push(unit);
      if (fits(ticks)) best = ticks;
    }
    for (let wanted = 6; best.length < 3 && wanted > 1; --wanted) {
      const ticks = linearTicks(low, high, wanted, binary);
      if (ticks.length > best.length && fits(ticks)) best = ticks;
    }
    return best;
  }
  /** Texts that differ: with more digits where three are the same for neighbours. */
  function tickTexts(ticks, text) {
    for (let digits = 3; ; ++digits) {
      const texts = ticks.map((tick) => text(tick, digits));
      if (digits > 8 || new Set(texts).size === texts.length) return texts;
    }
  }
  const ruler = document.createElement("canvas").getContext("2d");
  function textWidth(text) {
    ruler.font = '11.5px system-ui, "Segoe UI", "DejaVu Sans", sans-serif';
    return ruler.measureText(text).width;
  }
  /** The text, shortened to so many places. */
  function fitted(text, most) {
    let length = text.length;
    while (length > 1 && textWidth(shortened(text, length)) > most) --length;
    return shortened(text, length);
  }
  /** Marks of an axis with their texts, which have room beside one another (across) or below (up). */
  function marksOf(axis, measure, isAcross) {
    const marked = (ticks) => tickTexts(ticks, measure.text).map((text, n) => ({text, tick: ticks[n], at: axis.at(ticks[n])}));
    const room = (mark) => (isAcross ? textWidth(mark.text) + 10 : 26);
    const fits = (ticks) => marked(ticks).every((mark, n, all) => n === 0 || Math.abs(mark.at - all[n - 1].at) >= (room(mark) + room(all[n - 1])) / 2);
    return marked(logTicks(axis.low, axis.high, measure.binary, fits));
  }
  function linearTicks(low, high, wanted, binary) {
    const rough = (high - low) / wanted;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = binary ? 2 ** Math.ceil(Math.log2(rough)) : power * [1, 2, 5, 10].find((m) => rough <= power * m);
    const ticks = [];
    for (let n = Math.ceil(low / step); n * step <= high; ++n) ticks.push(n * step);
    return ticks;
  }
  /** Of the values; `reached` are below them and get at most a quarter of the axis, for a bound must not squash the data. */
  function logAxis(values, from, to, reached = []) {
    const most = Math.max(1, ...values), data = Math.max(1, Math.min(...values));
    const least = Math.max(1, Math.min(data, Math.max(Math.min(...reached, data), data / Math.max(2, most / data) ** 0.33)));
    const margin = most === least ? 1.5 : Math.max((most / least) ** 0.06, 1.002);
    const low = least / margin, high = most * margin;
    const at = (v) => from + (Math.log(Math.max(1, v)) - Math.log(low)) / (Math.log(high) - Math.log(low)) * (to - from);
    return {at, low, high};
  }

  /** The same layers, each alone, as a point. */
  const alone = data.layer_by_layer && {name: "layer by layer", ...data.layer_by_layer};

  // -------------------------------------------------------------------------------------------------------- colours

  // From dark to light, so that they keep their order in grey. On a dark page the darkest quarter would not be seen.
  const darkPage = matchMedia("(prefers-color-scheme: dark)");
  const stops = [[52, 30, 98], [49, 84, 150], [38, 138, 141], [96, 190, 98], [240, 214, 80]];
  function mix(part) {
    const least = darkPage.matches && !isPrinting ? 0.25 : 0;
    const place = (least + (1 - least) * Math.min(1, Math.max(0, part))) * (stops.length - 1);
    const n = Math.min(stops.length - 2, Math.floor(place));
    return `rgb(${stops[n].map((c, i) => Math.round(c + (stops[n + 1][i] - c) * (place - n))).join(",")})`;
  }
  const allMacs = data.points.map((p) => p.macs);
  const leastMacs = Math.min(...allMacs), mostMacs = Math.max(...allMacs);
  const colour = (p) =>
    mostMacs > leastMacs ? mix(Math.log(p.macs / leastMacs) / Math.log(mostMacs / leastMacs)) : mix(0);
  const kinds = {X: "var(--i)", W: "var(--w)", Y: "var(--o)", A: "var(--mac)"};
  const kindOf = (name) => kinds[name[0]];
  /** Buffers of one kind that lie on one another differ, in grey too. Those of activations are striped, which tells them
   *  from weights in any light. */
  const shade = (name, n) => `color-mix(in srgb, ${kindOf(name)} ${[100, 55, 80, 40][n % 4]}%, white)`;
  const isStriped = (name) => name[0] === "A";
  const stripes = (fill) => `repeating-linear-gradient(135deg, ${fill} 0 3px, var(--paper) 3px 4.5px)`;
  function keys(parent, entries) {
    const line = html("div", "", parent);
    for (const [name, fill] of entries) {
      const key = html("span", "key", line);
      html("i", "", key).style.background = fill;
      key.append(name);
    }
  }

  // ----------------------------------------------------------------------------------------------- the front, 3 views

  const rings = [];
  function describe(p) {
    return `${p.name}: ${grouped(p.accesses)} accesses, ${bytes(p.bytes)}, ${grouped(p.macs)} MACs` +
      (p.bound ? `, ${(p.accesses / p.bound).toFixed(3)} times the lower bound` : "") +
      (p.energy_pj ? `, ${grouped(p.energy_pj / 1000)} nJ` : "") + (p.time_ms ? `, ${milliseconds(p.time_ms)} predicted` : "") + (p.timed ? `, ${milliseconds(p.timed.fused.median_ms)} measured` : "");
  }
  /** The points that are best as x grows: each has less y than all before it. */
  function stairsOf(points, x, y) {
    const stairs = [];
    for (const p of points.slice().sort((a, b) => x.of(a) - x.of(b) || y.of(a) - y.of(b)))
      if (stairs.length === 0 || y.of(p) < y.of(stairs.at(-1))) stairs.push(p);
    return stairs;
  }
  /** What x buys, as a line of steps to the right edge of the drawing. */
  function drawStairs(root, points, [x, across], [y, up], right, className, title) {
    const d = stairsOf(points, x, y).map((p, n) => `${n ? "H" : "M"}${across.at(x.of(p)).toFixed(1)}${n ? "V" : " "}${up.at(y.of(p)).toFixed(1)}`);
    svg("title", {}, svg("path", {class: className, d: `${d.join("")}H${right}`}, root), title);
  }
  /** Predicted times as steps and dots; beside them what was measured, joined to its prediction. */
  function drawTimes(root, points, [x, across], up, right) {
    const {time, measured} = measures;
    drawStairs(root, points, [x, across], [time, up], right, "stairs", "the least time predicted in this much memory");
    const timed = points.filter((p) => measured.of(p) !== undefined);
    if (timed.length === 0) return;
    drawStairs(root, timed, [x, across], [measured, up], right, "stairs measured", "the least time measured in this much memory");
    for (const p of timed) {
      const at = across.at(x.of(p)).toFixed(1), to = up.at(measured.of(p)).toFixed(1);
      svg("path", {class: "off", d: `M${at} ${up.at(time.of(p)).toFixed(1)}V${to}`}, root);
      const dot = svg("circle", {class: "measured-point", cx: at, cy: to, r: 4}, root);
      svg("title", {}, dot, describe(p));
      dot.addEventListener("click", () => select(p.n));
    }
  }
  /** A drawing of the front, as wide as `across` of them leave room for. */
  function scatter(xKey, yKey, perRow) {
    const x = measures[xKey], y = measures[yKey], page = pageWidth();
    const width = page > 700 ? Math.floor((page - 13 * (perRow - 1)) / perRow) : page;
    const height = 350, left = 62, right = 14, top = 26, bottom = 46;
    const points = data.points.filter((p) => x.of(p) !== undefined && y.of(p) !== undefined);
    const figure = html("figure", "", element("plots"));
    html("figcaption", "", figure, `${y.brief} against ${x.brief}`);
    const root = svg("svg", {viewBox: `0 0 ${width} ${height}`, width, height, role: "img", tabindex: 0, class: "plot",
                             "aria-label": `${y.name} against ${x.name}, ${points.length} schedules; arrow keys choose the next one`}, figure);
    const frame = `plot-${xKey}-${yKey}`, inner = {x: left, y: top, width: width - left - right, height: height - top - bottom};
    svg("rect", inner, svg("clipPath", {id: frame}, root));
    const shows = xKey === "bytes" && yKey === "accesses";
    const bounds = shows ? data.points.filter((p) => p.bound) : [];
    const stairs = shows ? data.bounds.filter((b) => b.accesses > 0) : [];
    const showsTimes = xKey === "bytes" && yKey === "time";
    const beside = showsTimes ? points.map(measures.measured.of).filter((us) => us !== undefined) : [];
    const alones = alone && x.of(alone) && y.of(alone) ? [alone] : [];
    const across = logAxis(points.concat(alones).map(x.of), left, width - right);
    const up = logAxis(points.concat(alones).map(y.of).concat(beside), height - bottom, top,
                       bounds.map((p) => p.bound).concat(stairs.map((b) => b.accesses)));
    for (const {text, at} of marksOf(across, x, true)) {
      svg("path", {class: "grid", d: `M${at.toFixed(1)} ${top}V${height - bottom}`}, root);
      // The texts at the ends stay inside the drawing.
      const half = textWidth(text) / 2 + 1;
      svg("text", {x: Math.min(width - half, Math.max(half, at)).toFixed(1), y: height - bottom + 16, "text-anchor": "middle"}, root, text);
    }
    for (const {text, at} of marksOf(up, y, false)) {
      svg("path", {class: "grid", d: `M${left} ${at.toFixed(1)}H${width - right}`}, root);
      svg("text", {x: left - 6, y: (at + 4).toFixed(1), "text-anchor": "end"}, root, text);
    }
    svg("path", {class: "axis", d: `M${left} ${top}V${height - bottom}H${width - right}`}, root);
    svg("text", {class: "label", x: (left + width - right) / 2, y: height - 8, "text-anchor": "middle"}, root,
        `${x.name} (${x.unit})`);
    svg("text", {class: "label", x: 4, y: 14}, root, `${y.name} (${y.unit})`);
    drawBounds(svg("g", {"clip-path": `url(#${frame})`}, root), bounds, stairs, across, up, [left, width - right]);
    if (showsTimes) drawTimes(root, points, [x, across], up, width - right);
    for (const p of points) {
      const dot = svg("circle", {class: "point", cx: across.at(x.of(p)).toFixed(1), cy: up.at(y.of(p)).toFixed(1),
                                 r: data.points.length > 400 ? 3 : 4.5, fill: colour(p)}, root);
      svg("title", {}, dot, describe(p));
      dot.addEventListener("click", () => select(p.n));
    }
    for (const p of alones) {
      const mark = diamond(root, across.at(x.of(p)), up.at(y.of(p)));
      svg("title", {}, mark, describe(p));
    }
    const ring = svg("circle", {class: "ring", r: 8, cx: -20, cy: -20}, root);
    rings.push((p) => {
      const shown = points.includes(p);
      ring.setAttribute("cx", shown ? across.at(x.of(p)) : -20);
      ring.setAttribute("cy", shown ? up.at(y.of(p)) : -20);
    });
    root.addEventListener("keydown", (event) => {
      const step = {ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1}[event.key];
      if (step === undefined) return;
      event.preventDefault();
      select(Math.min(data.points.length - 1, Math.max(0, chosen + step)));
    });
  }
  const diamond = (root, x, y) => svg("path", {class: "alone-point", d: `M${x.toFixed(1)} ${(y - 7).toFixed(1)}l6.5 7l-6.5 7l-6.5 -7Z`}, root);
  /** What no schedule goes below; what lies outside of the frame is cut off. */
  function drawBounds(root, bounds, stairs, across, up, [left, right]) {
    if (stairs.length > 0) {  // up to each memory, at least so many accesses
      const inside = (at) => Math.min(right, Math.max(left, at)).toFixed(1);
      const d = stairs.map((b) => `V${up.at(b.accesses).toFixed(1)}H${inside(across.at(b.bytes))}`).join("");
      const path = svg("path", {class: "space-bound", d: `M${left} ${up.at(stairs[0].accesses).toFixed(1)}${d}`}, root);
      svg("title", {}, path, "no schedule of the space, also of what was not looked at, moves less in this much memory");
    }
    if (bounds.length > 1) {
      const line = bounds.slice().sort((a, b) => a.bytes - b.bytes);
      const d = line.map((p, n) => `${n ? "L" : "M"}${across.at(p.bytes).toFixed(1)} ${up.at(p.bound).toFixed(1)}`);
      const path = svg("path", {class: "bound", d: d.join("")}, root);
      svg("title", {}, path, "proven lower bound on the accesses in this much memory");
    }
  }

  function colourBar() {
    const parent = element("colours");
    parent.replaceChildren();
    if (data.points.length === 1) return;
    const hint = html("p", "hint", parent, "Logarithmic axes. Point at a dot for its numbers; click it, or press an arrow key in a drawing, to see the schedule below. ");
    if (alone) {
      const key = html("span", "key", hint);
      diamond(svg("svg", {viewBox: "0 0 16 16", "aria-hidden": "true"}, key), 8, 8);
      key.append(`layer by layer: ${counts(alone.accesses)} accesses, ${bytes(alone.bytes)}, ${counts(alone.macs)} MACs${alone.time_ms ? `, ${milliseconds(alone.time_ms)} predicted` : ""}`);
    }
    if (data.points.filter((p) => p.bound).length > 1)
      html("p", "hint", parent, "Dashed: what any schedule must move in this much memory, proven. Where it is far below the schedules, it leaves the drawing.");
    if (data.bounds.length > 0)
      html("p", "hint", parent, "Dotted: what any schedule of the space must move, also of the part that was not looked at, proven.");
    if (data.points.some((p) => p.time_ms)) {
      const measured = data.points.some((p) => p.timed) ? " Rings and the dashed steps: measured, joined to their predictions." : "";
      html("p", "hint", parent, `Steps: the least time predicted in this much memory.${measured}`);
    }
    if (mostMacs === leastMacs) {
      html("p", "hint", parent, `Every schedule does ${grouped(mostMacs)} MACs.`);
      return;
    }
    const root = svg("svg", {viewBox: "0 0 340 40", width: 340, height: 40, role: "img", "aria-label": "colours: MACs"}, parent);
    svg("text", {x: 4, y: 14}, root, "colour: MACs");
    for (let n = 0; n < 60; ++n) svg("rect", {x: 90 + n * 4, y: 4, width: 4.5, height: 12, fill: mix(n / 59)}, root);
    svg("text", {x: 90, y: 32}, root, counts(leastMacs));
    svg("text", {x: 330, y: 32, "text-anchor": "end"}, root, counts(mostMacs));
  }

  /** Columns of a schedule: what its row of the table shows, and what its line in a file holds. */
  const columns = [
    {title: "schedule", key: "schedule", of: (p) => p.name, text: (v) => v},
    {title: "external accesses", key: "accesses_elements", of: (p) => p.accesses, text: grouped},
    {title: data.memory_name, key: "memory_bytes", of: (p) => p.bytes, text: bytes},
    {title: "MACs", key: "macs", of: (p) => p.macs, text: grouped},
    {title: "groups", key: "groups", of: (p) => p.groups, text: String},
    {title: "÷ lower bound", key: "achieved_over_bound", of: (p) => p.bound && p.accesses / p.bound, text: (v) => v.toFixed(3)},
    {title: `nJ on ${data.machine}`, key: "energy_pj", of: (p) => p.energy_pj, text: (v) => grouped(v / 1000)},
    {title: "predicted", key: "time_ms", of: (p) => p.time_ms, text: milliseconds},
    {title: "counted", key: "counts_equal", of: (p) => p.counted && p.counted.equal, text: (v) => (v ? "= model" : "DIFFERENT")},
    {title: "measured", key: "median_ms", of: (p) => p.timed && p.timed.fused.median_ms, text: milliseconds},
    {title: "layer by layer", key: "layer_by_layer_median_ms", of: (p) => p.timed && p.timed.layer_by_layer && p.timed.layer_by_layer.median_ms, text: milliseconds},
  ].filter((column) => data.points.some((p) => column.of(p) !== undefined));

  function row(parent, cells, name = "td") {
    const line = html("tr", "", parent);
    for (const cell of cells) html(name, cell === "DIFFERENT" ? "differs" : "", line, cell);
    return line;
  }

  function pointTable() {
    const table = html("table", "", element("table"));
    row(html("thead", "", table), columns.map((column) => column.title), "th");
    const body = html("tbody", "", table);
    for (const p of data.points) {
      const line = row(body, columns.map((column) => (column.of(p) === undefined ? "" : column.text(column.of(p)))));
      line.dataset.point = p.n;
      line.tabIndex = 0;
      line.addEventListener("click", () => select(p.n));
      line.addEventListener("keydown", (event) => { if (event.key === "Enter") select(p.n); });
    }
  }

  // ------------------------------------------------------------------------------------------- what is shown, as files

  const csvCell = (value) => (value === undefined ? "" : /[",\n]/.test(value) ? `"${String(value).replaceAll('"', '""')}"` : String(value));
  const csv = (lines) => lines.map((line) => line.map(csvCell).join(",") + "\n").join("");
  /** Calls of `line` for each group of each schedule whose inside is here. */
  function linesOfGroups(line) {
    for (const p of data.points) {
      if (p.detail === undefined) continue;
      data.details[p.detail].groups.forEach((g, n) => line(p, data.groups[g], n + 1));
    }
  }
  const files = {
    "schedules.csv": () => csv([columns.map((c) => c.key), ...data.points.map((p) => columns.map((c) => c.of(p)))]),
    "traffic.csv": () => {
      const lines = [["schedule", "group", "tensor", "reads_elements", "writes_elements", "tensor_elements"]];
      linesOfGroups((p, group, n) => group.traffic.forEach((t) => lines.push([p.name, n, t.name, t.reads, t.writes, t.elements])));
      return csv(lines);
    },
    "memory.csv": () => {
      const lines = [["schedule", "group", "step", "layer", "macs", "live_elements", "buffers"]];
      linesOfGroups((p, group, n) => {
        const macs = stepWidths(group, 0);
        group.steps.forEach((step, at) => {
          const phase = group.phases[step];
          lines.push([p.name, n, at, phase.layer, Math.round(macs[step]), phase.live, phase.buffers.map(([name, size]) => `${name}=${size}`).join(" ")]);
        });
      });
      return csv(lines);
    },
    "measured.csv": () => {
      const lines = [["schedule", "quantity", "witness", "elements"]];
      for (const p of data.points)
        for (const [name, ...values] of p.counted ? p.counted.rows : [])
          values.forEach((value, n) => lines.push([p.name, name, p.counted.witnesses[n], value]));
      return csv(lines);
    },
    "report.json": () => JSON.stringify(data),
  };
  function fileButtons() {
    for (const [name, content] of Object.entries(files)) {
      if (name === "measured.csv" && !data.points.some((p) => p.counted)) continue;
      html("button", "", element("files"), name).addEventListener("click", () => {
        const link = document.createElement("a");
        link.download = name;
        link.href = URL.createObjectURL(new Blob([content()], {type: name.endsWith("json") ? "application/json" : "text/csv"}));
        link.click();
        setTimeout(() => URL.revokeObjectURL(link.href), 10000);
      });
    }
  }

  // ------------------------------------------------------------------------------------------------- one schedule

  function card(title, value, unit, parent = element("numbers")) {
    const box = html("div", "card", parent);
    html("span", "unit", box, title);
    html("b", "", box, value);
    html("span", "unit", box, unit);
  }

  function summary() {
    const parent = element("summary"), points = data.points;
    const least = (of) => points.reduce((best, p) => (of(p) < of(best) ? p : best));
    const fewest = least((p) => p.accesses), smallest = least((p) => p.bytes);
    if (points.length > 1) {
      card("fewest accesses", counts(fewest.accesses), `with ${bytes(fewest.bytes)}, ${fewest.name}`, parent);
      card("least memory", bytes(smallest.bytes), `with ${counts(smallest.accesses)} accesses, ${smallest.name}`, parent);
    }
    if (points.some((p) => p.energy_pj)) {
      const cheapest = least((p) => p.energy_pj);
      card(`least energy on ${data.machine}`, `${grouped(cheapest.energy_pj / 1000)} nJ`, cheapest.name, parent);
    }
    if (points.some((p) => p.time_ms)) {
      const fastest = least((p) => p.time_ms);
      card("least time predicted", milliseconds(fastest.time_ms), `with ${bytes(fastest.bytes)}, ${fastest.name}`, parent);
    }
    const counted = points.filter((p) => p.counted), timed = points.filter((p) => p.timed);
    if (counted.length > 0) {
      const equal = counted.filter((p) => p.counted.equal).length;
      card("counted as predicted", `${equal} of ${counted.length}`, "schedules, in generated code", parent);
    }
    if (timed.length > 0) {
      const fastest = timed.reduce((best, p) => (p.timed.fused.median_ms < best.timed.fused.median_ms ? p : best));
      const layers = fastest.timed.layer_by_layer;
      const compared = layers ? versusLayers(fastest.timed.fused.median_ms, layers.median_ms) : "layer by layer left out";
      card("fastest measured", milliseconds(fastest.timed.fused.median_ms), `${compared}, ${fastest.name}`, parent);
    }
  }

  /** The schedule that a user would take: the fastest, of those that are measured if any are; without times the one of
   *  fewest accesses that does at most a quarter more work than layer by layer, as the planner's schedules do, or else
   *  the one of least work. */
  const mostWork = 1.25;
  function recommended() {
    const least = (points, ...keys) => points.reduce((best, p) => {
      const key = keys.find((of) => of(p) !== of(best));
      return key && key(p) < key(best) ? p : best;
    });
    const timed = data.points.filter((p) => p.timed), predicted = data.points.filter((p) => p.time_ms);
    if (timed.length > 0) return least(timed, (p) => p.timed.fused.median_ms, (p) => p.bytes);
    if (predicted.length > 0) return least(predicted, (p) => p.time_ms, (p) => p.bytes);
    const frugal = data.points.filter((p) => p.macs <= mostWork * (alone ? alone.macs : leastMacs));
    if (frugal.length > 0) return least(frugal, (p) => p.accesses, (p) => p.bytes, (p) => p.macs);
    return least(data.points, (p) => p.macs, (p) => p.accesses, (p) => p.bytes);
  }
  function headline(p) {
    if (data.headline) return `${data.headline}.`;
    if (!alone) return "";
    const work = p.macs / alone.macs;
    const layers = p.timed && p.timed.layer_by_layer;
    return `Schedule ${p.name} moves ${share(p.accesses, alone.accesses)} what layer by layer moves, in ${bytes(p.bytes)}, ` +
      (work < 1.005 ? (work > 0.995 ? "at the same work" : `at ${work.toFixed(2)} of the work`) : `at ${trimmed(work)} times the work`) +
      (p.time_ms && alone.time_ms ? `; predicted ${speed(p.time_ms, alone.time_ms)}` : "") +
      (layers ? `; measured ${speed(p.timed.fused.median_ms, layers.median_ms)}` : "") + ".";
  }

  let chosen, chosenGroup;
  /** `group`: to look inside of; else the one that holds most. */
  function select(n, group) {
    chosen = n;
    chosenGroup = group;
    const p = data.points[n];
    for (const place of rings) place(p);
    for (const row of document.querySelectorAll("tr[data-point]")) row.classList.toggle("chosen", Number(row.dataset.point) === n);
    element("point-heading").textContent = `Schedule ${p.name}`;
    element("numbers").replaceChildren();
    const besides = (part, whole) => (alone ? `; ${share(part, whole)} layer by layer` : "");
    card("external accesses", counts(p.accesses), `${grouped(p.accesses)} elements${besides(p.accesses, alone?.accesses)}`);
    card(data.memory_name, bytes(p.bytes), `${grouped(p.bytes)} bytes`);
    card("multiply-accumulates", counts(p.macs), `${grouped(p.macs)} MACs${besides(p.macs, alone?.macs)}`);
    card("groups", String(p.groups), alone ? `of ${alone.groups} layers, executed together` : "of layers executed together");
    if (p.bound) card("accesses by the lower bound", `${(p.accesses / p.bound).toFixed(3)} ×`, `bound ${grouped(p.bound)} elements`);
    if (p.energy_pj) card(`energy on ${data.machine}`, `${grouped(p.energy_pj / 1000)} nJ`, "counts times the machine's table");
    if (p.time_ms) card("time", milliseconds(p.time_ms), "predicted" + (p.timed ? `; ${milliseconds(p.timed.fused.median_ms)} measured` : ""));
    const detail = element("detail");
    detail.replaceChildren();
    if (p.counted) showCounted(detail, p.counted);
    if (p.timed) showTimed(detail, p.timed);
    if (p.detail === undefined) {
      html("p", "hint", detail, `This page holds the inside of ${data.details.length} of the ${data.points.length} schedules. ` +
        `The loop nest of this one: laminate show DIR${p.name}, DIR being the directory of this page.`);
      return;
    }
    const {groups, graph} = data.details[p.detail];
    showGroups(detail, groups.map((g) => data.groups[g]), data.graphs[graph]);
  }

  // ---------------------------------------------------------------------------------- predicted beside measured

  const witnessNames = {model: "predicted (model)", walker: "interpreter", measured: "generated code"};
  function showCounted(parent, counted) {
    html("h3", "", parent, "Predicted beside measured: counts");
    const table = html("table", "", parent);
    row(html("thead", "", table), ["elements", ...counted.witnesses.map((name) => witnessNames[name]), ""], "th");
    const body = html("tbody", "", table);
    for (const [name, ...values] of counted.rows)
      row(body, [name, ...values.map(grouped), values.every((v) => v === values[0]) ? "equal" : "DIFFERENT"]);
    if (!counted.equal && counted.rows.every(([, ...values]) => values.every((v) => v === values[0])))
      html("p", "differs", parent, "The counts of the whole schedule agree, those of a group or its result do not.");
    html("p", "hint", parent, `From ${data.sources[counted.source].file}.`);
  }
  function showTimed(parent, timed) {
    html("h3", "", parent, "Measured: time");
    const table = html("table", "", parent);
    row(html("thead", "", table), ["", "groups", "median", "least", "spread", "GFLOP/s", "of peak", "arena", "peak memory"], "th");
    const body = html("tbody", "", table);
    for (const [name, t] of [["this schedule", timed.fused], ["layer by layer", timed.layer_by_layer]]) {
      if (!t) continue;
      row(body, [name, t.groups, milliseconds(t.median_ms), milliseconds(t.min_ms), `${(100 * t.spread).toFixed(1)} %`, t.gflops.toFixed(1),
                 `${(100 * t.of_peak).toFixed(0)} %`, bytes(t.arena_bytes), t.peak_rss_bytes === undefined ? "" : bytes(t.peak_rss_bytes)]);
    }
    const source = data.sources[timed.source];
    const layers = timed.layer_by_layer;
    const compared = layers ? `Measured ${versusLayers(timed.fused.median_ms, layers.median_ms)}` : timed.left_out;
    html("p", "hint", parent, compared +
      `${source.made_by ? `, on ${source.made_by.cpu}` : ""}${source.threads ? `, ${source.threads} thread${source.threads > 1 ? "s" : ""}` : ""}; from ${source.file}.`);
  }
  function showSources() {
    if (!data.sources) return;
    element("measured").hidden = false;
    const table = element("sources");
    row(html("thead", "", table), ["file", "by", "schedules", "CPU", "cores", "target", "laminate", "Halide"], "th");
    const body = html("tbody", "", table);
    for (const s of data.sources) {
      const by = s.made_by || {};
      row(body, [s.file, `laminate ${s.verb}`, s.schedules, by.cpu || "", by.cores || "", by.host_target || "", by.laminate || "", by.halide || ""]);
    }
  }

  // ------------------------------------------------------------------------------------------------- groups, as a graph

  /** The network from top to bottom in the order in which it runs, a row per layer, a box per group. */
  function drawGraph(figure, groups, graph, picks, pick) {
    const {inputs, layers} = data.network;
    const space = 24, lane = 16, left = 14, top = 8;
    const page = pageWidth(), wide = page > 700;
    const lanes = Math.max(...graph.lanes) + 1, texts = left + lanes * lane + 12;
    const x = (row) => left + lane / 2 + graph.lanes[row] * lane, y = (row) => top + space / 2 + row * space;
    const columns = wide ? [texts, texts + 260, texts + 400, texts + 530] : [texts, 0, texts + 130, 0];
    const right = columns[wide ? 3 : 2] + (wide ? 90 : 110);
    const width = Math.max(page - 20, right + (wide ? 260 : 70)), height = 2 * top + graph.rows.length * space;
    const root = svg("svg", {viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `${groups.length} groups on the network's graph`}, figure);
    const rowOf = new Map(graph.rows.map((id, row) => [id, row]));
    const groupOf = new Map();
    const ids = new Map(layers.map((layer, id) => [layer.name, id]));
    groups.forEach((group, n) => group.layers.forEach((name) => groupOf.set(ids.get(name), n)));
    groups.forEach((group, n) => {
      const rows = group.layers.map((name) => rowOf.get(ids.get(name)));
      const first = Math.min(...rows), last = Math.max(...rows);
      const place = {x: 3, y: y(first) - space / 2 + 2, width: width - 6, height: (last - first + 1) * space - 4, rx: 6};
      svg("rect", {class: "box", ...place}, root);
      svg("text", {class: "label", x: width - 12, y: y(first) + 4, "text-anchor": "end"}, root,
          wide ? `group ${n + 1}: ${counts(group.accesses)} accesses, ${memory(group.live)}` : `${n + 1}: ${memory(group.live)}`);
      group.place = place;
    });
    const found = new Map((data.found_groups || []).flatMap((names, n) => names.map((name) => [name, n + 1])));
    if (found.size > 0 && wide)
      svg("text", {class: "label", x: columns[3] + 90, y: y(0) + 4}, root, "group found");
    // Lines before dots; what crosses a box goes through external memory.
    graph.rows.forEach((id, to) => {
      if (id < 0) return;
      for (const from of layers[id].reads) {
        const begin = rowOf.get(from), inside = groupOf.has(id) && groupOf.get(from) === groupOf.get(id);
        const bend = x(begin) === x(to) ? `V${y(to)}` : `V${y(to - 1)}C${x(begin)} ${y(to) - space / 3} ${x(to)} ${y(to - 1) + space / 3} ${x(to)} ${y(to)}`;
        svg("path", {class: inside ? "on-chip" : "through", d: `M${x(begin)} ${y(begin)}${bend}`}, root);
      }
    });
    graph.rows.forEach((id, at) => {
      const what = id < 0 ? {...inputs[-1 - id], does: "input", macs: 0} : layers[id];
      svg("circle", {class: id >= 0 && groupOf.has(id) ? "layer" : "alone", cx: x(at), cy: y(at), r: 4.2}, root);
      const text = (column, words, anchor) => { if (columns[column] > 0) svg("text", {x: columns[column] + (anchor ? 70 : 0), y: y(at) + 4, "text-anchor": anchor || "start", class: column ? "soft" : ""}, root, words); };
      text(0, shortened(what.name, wide ? 36 : 18) + (what.is_output ? " → output" : ""));
      text(1, shortened(what.does, 20));
      text(2, what.dims);
      if (what.macs > 0) text(3, `${counts(what.macs)}`, "end");
      if (wide && id >= 0 && found.has(what.name)) svg("text", {x: columns[3] + 90, y: y(at) + 4}, root, found.get(what.name));
    });
    groups.forEach((group, n) => {
      const mark = svg("rect", {class: "pick", ...group.place}, root);
      svg("title", {}, mark, `group ${n + 1}: ${group.layers.join(", ")}; ${grouped(group.accesses)} accesses, ${memory(group.live)}, ${grouped(group.macs)} MACs`);
      mark.addEventListener("click", () => pick(n));
      picks.push([n, mark]);
    });
    if (isPrinting) cutIntoPieces(root, width, height, 30 * space);
  }

  /** A drawing does not break between pages of paper: pieces of it do. */
  function cutIntoPieces(whole, width, height, most) {
    for (let top = 0; top < height; top += most) {
      const piece = whole.cloneNode(true), rows = Math.min(most, height - top);
      for (const [name, value] of Object.entries({viewBox: `0 ${top} ${width} ${rows}`, height: rows})) piece.setAttribute(name, value);
      whole.before(piece);
    }
    whole.remove();
  }

  function showGroups(parent, groups, graph) {
    html("h3", "", parent, "Groups on the network");
    html("p", "hint", parent, "Layers from top to bottom in the order in which they run. A box is a group: thin lines inside it are tensors of which only parts exist at a time, " +
      "on chip; thick lines go through external memory. A layer without a box runs on its own, uncounted. Click a group to look inside." +
      (data.found_groups ? ` The search found ${data.found_groups.length} groups, numbered at each layer; a group of a schedule has one output, so the schedule has ${groups.length}.` : ""));
    const network = html("figure", "", parent);
    network.id = "graph";
    network.tabIndex = 0;
    html("h3", "", parent, "Memory over time");
    html("p", "hint", parent, "What each group keeps in memory while it runs; time in MACs, groups in the order in which they run. " +
      "Where loops turn faster than can be drawn, their trips are folded onto one another. Click a group to look inside.");
    const timeline = html("figure", "", parent);
    html("h3", "", parent, "External traffic by group");
    const traffic = html("figure", "", parent);
    const inside = html("div", "", parent);
    const picks = [];
    const pick = (n) => {
      chosenGroup = n;
      for (const [at, mark] of picks) mark.classList.toggle("chosen", at === n);
      inside.replaceChildren();
      showGroup(inside, groups[n], n, groups.length);
    };
    drawGraph(network, groups, graph, picks, pick);
    drawTimeline(timeline, groups, picks, pick);
    drawTraffic(traffic, groups, picks, pick);
    pick(chosenGroup ?? groups.reduce((best, g, n) => g.live > groups[best].live ? n : best, 0));
  }

  /** MACs of each step: those of its phase, evenly; phases without MACs get a sliver so that they can be seen. */
  function stepWidths(group, sliver = 1) {
    const times = group.phases.map(() => 0);
    for (const step of group.steps) ++times[step];
    const total = group.phases.reduce((sum, phase) => sum + phase.macs, 0);
    return group.phases.map((phase, n) => Math.max(phase.macs, sliver * Math.max(total / 200, 1)) / times[n]);
  }
  const groupWidth = (group) => {
    const widths = stepWidths(group);
    return group.steps.reduce((sum, step) => sum + widths[step], 0);
  };

  function frame(figure, label, width, height, margins, highest) {
    const [left, right, top, bottom] = margins;
    const root = svg("svg", {viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label}, figure);
    const up = (elements) => height - bottom - elements / highest * (height - bottom - top);
    for (const tick of linearTicks(0, highest * data.bytes_per_element, 4, true)) {
      const at = up(tick / data.bytes_per_element);
      svg("path", {class: "grid", d: `M${left} ${at.toFixed(1)}H${width - right}`}, root);
      svg("text", {x: left - 6, y: (at + 4).toFixed(1), "text-anchor": "end"}, root, bytes(tick));
    }
    return {root, up};
  }

  function drawTimeline(figure, groups, picks, pick) {
    const width = pageWidth(), height = 260, margins = [70, 16, 24, 40], [left, right, , bottom] = margins;
    const highest = Math.max(1, ...groups.map((g) => g.live));
    const {root, up} = frame(figure, "memory over time", width, height, margins, highest * 1.06);
    root.setAttribute("id", "timeline");
    const total = groups.reduce((sum, g) => sum + groupWidth(g), 0);
    const scale = (width - left - right) / total;
    let at = left;
    groups.forEach((group, n) => {
      const begin = at, widths = stepWidths(group);
      let d = `M${begin.toFixed(2)} ${up(0)}`;
      for (const step of group.steps) {
        d += `V${up(group.phases[step].live).toFixed(1)}`;
        at += widths[step] * scale;
        d += `H${at.toFixed(2)}`;
      }
      svg("path", {class: "live", d: `${d}V${up(0)}Z`}, root);
      svg("path", {class: "edge", d: `M${at.toFixed(2)} ${margins[2]}V${height - bottom + 4}`}, root);
      const mark = svg("rect", {class: "pick", x: begin.toFixed(2), y: margins[2], width: Math.max(1, at - begin).toFixed(2),
                                height: height - bottom - margins[2]}, root);
      svg("title", {}, mark, `group ${n + 1}: ${group.layers.join(", ")}; ${memory(group.live)}, ${grouped(group.macs)} MACs`);
      mark.addEventListener("click", () => pick(n));
      picks.push([n, mark]);
      if (at - begin > 26) svg("text", {x: (begin + at) / 2, y: height - bottom + 15, "text-anchor": "middle"}, root, n + 1);
    });
    svg("path", {class: "limit", d: `M${left} ${up(highest).toFixed(1)}H${width - right}`}, root);
    svg("text", {x: width - right, y: margins[2] - 8, "text-anchor": "end"}, root, `dashed: the largest, ${memory(highest)}`);
    svg("path", {class: "axis", d: `M${left} ${margins[2]}V${height - bottom}H${width - right}`}, root);
    svg("text", {class: "label", x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle"}, root,
        "group, as wide as its MACs");
  }

  function drawTraffic(figure, groups, picks, pick) {
    keys(figure, [["X: inputs", kinds.X], ["W: weights", kinds.W], ["Y: outputs", kinds.Y]]);
    const row = 20, width = pageWidth(), left = width > 700 ? 250 : 120, right = 130, height = groups.length * row + 8;
    const root = svg("svg", {viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": "traffic by group"}, figure);
    root.setAttribute("id", "traffic");
    const most = Math.max(1, ...groups.map((g) => g.accesses));
    groups.forEach((group, n) => {
      const y = n * row + 4;
      const layers = group.layers.length > 1 ? `${group.layers[0]} … ${group.layers.at(-1)}` : group.layers[0];
      svg("text", {x: left - 8, y: y + 13, "text-anchor": "end"}, root, fitted(`${n + 1}  ${layers}`, left - 10));
      let x = left;
      for (const kind of ["X", "W", "Y"]) {
        const sum = group.traffic.filter((t) => t.name[0] === kind).reduce((s, t) => s + t.reads + t.writes, 0);
        const w = sum / most * (width - left - right);
        if (w > 0) {
          const bar = svg("rect", {x: x.toFixed(2), y: y + 2, width: w.toFixed(2), height: row - 6, fill: kinds[kind]}, root);
          svg("title", {}, bar, `group ${n + 1}, ${kind}: ${grouped(sum)} elements`);
        }
        x += w;
      }
      svg("text", {x: x + 6, y: y + 13}, root, counts(group.accesses) + (group.least ? `  (${(group.accesses / group.least).toFixed(2)}×)` : ""));
      const mark = svg("rect", {class: "pick", x: 0, y, width, height: row, tabindex: 0, role: "button", "aria-label": `look inside group ${n + 1}`}, root);
      mark.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        pick(n);
      });
      svg("title", {}, mark, `group ${n + 1}: ${grouped(group.accesses)} elements; every tensor once would be ${grouped(group.least)}`);
      mark.addEventListener("click", () => pick(n));
      picks.push([n, mark]);
    });
    html("p", "hint", figure, "Elements. In parentheses: times the elements of the group's inputs, weights and outputs, each moved once.");
  }

  function showGroup(parent, group, n, count) {
    html("h3", "", parent, `Inside group ${n + 1} of ${count}: ${group.layers.join(", ")}`);
    html("p", "hint", parent, `${memory(group.live)} at most (${grouped(group.live)} elements), ${grouped(group.accesses)} accesses, ` +
      `${grouped(group.macs)} MACs. Buffers one on the other while the group runs, each from beginning to end of its store level.`);
    const names = [];
    for (const phase of group.phases) for (const [name] of phase.buffers) if (!names.includes(name)) names.push(name);
    const fills = new Map(names.map((name) => [name, shade(name, names.filter((o) => o[0] === name[0]).indexOf(name))]));
    const figure = html("figure", "", parent);
    keys(figure, names.map((name) => [name, isStriped(name) ? stripes(fills.get(name)) : fills.get(name)]));
    const width = pageWidth(), height = 240, margins = [70, 16, 10, 40], [left, right, top, bottom] = margins;
    const {root, up} = frame(figure, "memory of this group over time", width, height, margins, Math.max(1, group.live) * 1.06);
    const pattern = svg("pattern", {id: "stripes", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)"}, root);
    svg("path", {class: "stripe", d: "M1 0V6"}, pattern);
    const widths = stepWidths(group), scale = (width - left - right) / groupWidth(group);
    let at = left;
    const cells = group.steps.map((step) => { const x = at; at += widths[step] * scale; return [step, x, at]; });
    // One path per buffer: neighbouring steps in which it lies at the same height are one rectangle.
    for (const name of names) {
      let d = "", open = null;
      const close = () => {
        if (open) d += `M${open.x.toFixed(2)} ${open.low}H${open.end.toFixed(2)}V${open.high}H${open.x.toFixed(2)}Z`;
        open = null;
      };
      for (const [step, begin, end] of cells) {
        let below = 0, size = 0, found = false;
        for (const [other, elements] of group.phases[step].buffers) {
          if (other === name) { size = elements; found = true; break; }
          below += elements;
        }
        const low = up(below).toFixed(1), high = up(below + size).toFixed(1);
        if (open && (!found || open.low !== low || open.high !== high)) close();
        if (!found) continue;
        if (open) open.end = end;
        else open = {x: begin, end, low, high};
      }
      close();
      const path = svg("path", {d, fill: fills.get(name), class: "buffer"}, root);
      if (isStriped(name)) svg("path", {d, fill: "url(#stripes)", "pointer-events": "none"}, root);
      svg("title", {}, path, `${name}: ${memory(group.phases.flatMap((p) => p.buffers).find(([o]) => o === name)[1])}`);
    }
    svg("path", {class: "axis", d: `M${left} ${top}V${height - bottom}H${width - right}`}, root);
    if (cells.length <= 60) {
      for (const [step, begin, end] of cells) {
        svg("path", {class: "edge", d: `M${end.toFixed(2)} ${height - bottom}v4`}, root);
        const name = group.phases[step].layer;
        if (end - begin > name.length * 6 + 6)
          svg("text", {x: (begin + end) / 2, y: height - bottom + 15, "text-anchor": "middle"}, root, name);
      }
    }
    svg("text", {class: "label", x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle"}, root, "time (MACs)");
    const loops = group.unfolded === 1 ? "outermost loop" : `outermost ${group.unfolded} loops`;
    html("p", "hint", figure, group.unfolded === 0
      ? "Every loop turns too often to be drawn trip by trip: their trips are folded onto one another."
      : `The ${loops} of ${group.layers.at(-1)} ${group.unfolded === 1 ? "is" : "are"} drawn trip by trip.`);

    html("h3", "", parent, "Its traffic by tensor");
    const table = html("table", "", parent);
    row(html("thead", "", table), ["tensor", "reads", "writes", "elements of the tensor", "times"], "th");
    const body = html("tbody", "", table);
    for (const t of group.traffic) row(body, [t.name, grouped(t.reads), grouped(t.writes), grouped(t.elements), ((t.reads + t.writes) / t.elements).toFixed(2)]);
    html("h3", "", parent, "Its loop nest");
    html("pre", "", parent, group.nest);
  }

  // ---------------------------------------------------------------------------------------------------------- start

  /** One schedule is compared in a table, several in drawings. */
  function drawFront() {
    rings.length = 0;
    element("plots").replaceChildren();
    if (data.points.length === 1) return showOne(element("plots"), data.points[0]);
    const isTimed = data.points.some((p) => p.time_ms), plots = [];
    if (isTimed) plots.push(["bytes", "time"]);
    plots.push(["bytes", "accesses"], ["macs", "accesses"], ["bytes", "macs"]);
    if (data.points.some((p) => p.energy_pj)) plots.push(["bytes", "energy"]);
    if (!isTimed && data.points.filter((p) => p.timed).length > 1) plots.push(["accesses", "measured"]);
    for (const [x, y] of plots) scatter(x, y, plots.length === 4 ? 2 : 3);
  }
  function showOne(parent, p) {
    const table = html("table", "", parent), rows = alone ? [["this schedule", p], ["layer by layer", alone]] : [["this schedule", p]];
    row(html("thead", "", table), ["", "external accesses", data.memory_name, "MACs", "groups", ...(p.time_ms ? ["predicted"] : [])], "th");
    const body = html("tbody", "", table);
    for (const [name, q] of rows)
      row(body, [name, grouped(q.accesses), bytes(q.bytes), grouped(q.macs), q.groups, ...(q.time_ms ? [milliseconds(q.time_ms)] : [])]);
    if (alone) html("p", "hint", parent, `As the two-level model counts: this schedule moves ${share(p.accesses, alone.accesses)} what its layers move one by one.`);
  }
  /** Tables that the model of the schedules has found. */
  function showFindings() {
    for (const finding of data.findings || []) {
      const parent = html("section", "", element("findings"));
      html("h2", "", parent, finding.title);
      html("p", "hint", parent, finding.text);
      const figure = html("figure", "", parent);
      figure.tabIndex = 0;
      const table = html("table", "", figure);
      const marked = (line) => [...line.children].forEach((cell, n) => cell.classList.toggle("number", finding.columns[n].is_number));
      marked(row(html("thead", "", table), finding.columns.map((column) => column.title), "th"));
      const body = html("tbody", "", table);
      for (const cells of finding.rows) marked(row(body, cells));
    }
  }

  element("about").textContent = data.about;
  element("made-by").textContent = `Made by laminate ${data.version}.`;
  const first = recommended();
  element("headline").textContent = headline(first);
  showFindings();
  summary();
  drawFront();
  colourBar();
  fileButtons();
  pointTable();
  showSources();
  select(first.n);
  const drawn = () => `${pageWidth()} ${isPrinting} ${darkPage.matches}`;
  let drawnFor = drawn();
  function redraw() {
    if (drawn() === drawnFor) return;
    drawnFor = drawn();
    drawFront();
    colourBar();
    select(chosen, chosenGroup);
  }
  addEventListener("resize", redraw);
  darkPage.addEventListener("change", redraw);
  addEventListener("beforeprint", () => { isPrinting = true; redraw(); });
  addEventListener("afterprint", () => { isPrinting = false; redraw(); });
})();
