"use strict";
// Draws the page from the data in #data; report_page.h says what that holds.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
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
  const trimmed = (value) => String(Number(value.toPrecision(3)));
  function withSuffix(value, base, suffixes) {
    let step = 0;
    while (value >= base * (1 - 5e-4) && step + 1 < suffixes.length) { value /= base; ++step; }
    return trimmed(value) + suffixes[step];
  }
  const counts = (n) => withSuffix(n, 1000, ["", " k", " M", " G", " T", " P"]);
  const bytes = (n) => withSuffix(n, 1024, [" B", " KiB", " MiB", " GiB", " TiB"]);
  const memory = (elements) => bytes(elements * data.bytes_per_element);

  // ---------------------------------------------------------------------------------------------------------- axes

  const measures = {
    accesses: {of: (p) => p.accesses, name: "external accesses", brief: "accesses", unit: "elements", text: counts, binary: false},
    bytes: {of: (p) => p.bytes, name: data.memory_name, brief: "memory", unit: "bytes", text: bytes, binary: true},
    macs: {of: (p) => p.macs, name: "multiply-accumulates", brief: "MACs", unit: "MACs", text: counts, binary: false},
  };

  /** Values at which a logarithmic axis is marked: as fine as still gives at most `most` marks. */
  function logTicks(low, high, binary, most) {
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
      if (ticks.length <= most) best = ticks;
    }
    return best.length >= 3 ? best : linearTicks(low, high, 6, binary);
  }
  function linearTicks(low, high, wanted, binary) {
    const rough = (high - low) / wanted;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = binary ? 2 ** Math.ceil(Math.log2(rough)) : power * [1, 2, 5, 10].find((m) => rough <= power * m);
    const ticks = [];
    for (let n = Math.ceil(low / step); n * step <= high; ++n) ticks.push(n * step);
    return ticks;
  }
  function logAxis(values, from, to) {
    const least = Math.max(1, Math.min(...values)), most = Math.max(1, Math.max(...values));
    const margin = most === least ? 1.5 : Math.max((most / least) ** 0.06, 1.002);
    const low = least / margin, high = most * margin;
    const at = (v) => from + (Math.log(Math.max(1, v)) - Math.log(low)) / (Math.log(high) - Math.log(low)) * (to - from);
    return {at, low, high};
  }

  // -------------------------------------------------------------------------------------------------------- colours

  const stops = [[38, 70, 150], [32, 130, 150], [70, 150, 70], [205, 145, 20], [190, 45, 40]];
  function mix(part) {
    const place = Math.min(1, Math.max(0, part)) * (stops.length - 1);
    const n = Math.min(stops.length - 2, Math.floor(place));
    return `rgb(${stops[n].map((c, i) => Math.round(c + (stops[n + 1][i] - c) * (place - n))).join(",")})`;
  }
  const allMacs = data.points.map((p) => p.macs);
  const leastMacs = Math.min(...allMacs), mostMacs = Math.max(...allMacs);
  const colour = (p) =>
    mostMacs > leastMacs ? mix(Math.log(p.macs / leastMacs) / Math.log(mostMacs / leastMacs)) : mix(0);
  const kinds = {X: "#2f6db3", W: "#d08a1d", Y: "#3f9150", A: "#8a6bb8"};
  const kindOf = (name) => kinds[name[0]];
  function shade(name, n) {  // buffers of one kind next to each other differ
    const c = kindOf(name).match(/\w\w/g).map((h) => parseInt(h, 16));
    const light = [0.25, 0.5, 0.38, 0.62][n % 4];
    return `rgb(${c.map((v) => Math.round(v + (255 - v) * light)).join(",")})`;
  }
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
    return `${p.file}: ${grouped(p.accesses)} accesses, ${bytes(p.bytes)}, ${grouped(p.macs)} MACs` +
      (p.bound ? `, ${(p.accesses / p.bound).toFixed(3)} times the lower bound` : "");
  }
  function scatter(xKey, yKey, wide) {
    const x = measures[xKey], y = measures[yKey];
    const width = wide ? 490 : 370, height = 350, left = 62, right = 14, top = 26, bottom = 46;
    const figure = html("figure", "", element("plots"));
    html("figcaption", "", figure, `${y.brief} against ${x.brief}`);
    const root = svg("svg", {viewBox: `0 0 ${width} ${height}`, width, height, role: "img",
                             "aria-label": `${y.name} against ${x.name}, ${data.points.length} schedules`}, figure);
    const shows = xKey === "bytes" && yKey === "accesses";
    const bounds = shows ? data.points.filter((p) => p.bound) : [];
    const stairs = shows ? data.bounds.filter((b) => b.accesses > 0) : [];
    const across = logAxis(data.points.map(x.of), left, width - right);
    const up = logAxis(data.points.map(y.of).concat(bounds.map((p) => p.bound), stairs.map((b) => b.accesses)), height - bottom, top);
    for (const tick of logTicks(across.low, across.high, x.binary, width / 55)) {
      const at = across.at(tick).toFixed(1);
      svg("path", {class: "grid", d: `M${at} ${top}V${height - bottom}`}, root);
      svg("text", {x: at, y: height - bottom + 16, "text-anchor": "middle"}, root, x.text(tick));
    }
    for (const tick of logTicks(up.low, up.high, y.binary, height / 36)) {
      const at = up.at(tick);
      svg("path", {class: "grid", d: `M${left} ${at.toFixed(1)}H${width - right}`}, root);
      svg("text", {x: left - 6, y: (at + 4).toFixed(1), "text-anchor": "end"}, root, y.text(tick));
    }
    svg("path", {class: "axis", d: `M${left} ${top}V${height - bottom}H${width - right}`}, root);
    svg("text", {class: "label", x: (left + width - right) / 2, y: height - 8, "text-anchor": "middle"}, root,
        `${x.name} (${x.unit})`);
    svg("text", {class: "label", x: 4, y: 14}, root, `${y.name} (${y.unit})`);
    if (stairs.length > 0) {  // up to each memory, at least so many accesses
      const inside = (at) => Math.min(width - right, Math.max(left, at)).toFixed(1);
      const d = stairs.map((b) => `V${up.at(b.accesses).toFixed(1)}H${inside(across.at(b.bytes))}`).join("");
      const path = svg("path", {class: "space-bound", d: `M${left} ${up.at(stairs[0].accesses).toFixed(1)}${d}`}, root);
      svg("title", {}, path, "no schedule of the space, also of what was not looked at, moves less in this much memory");
    }
    if (bounds.length > 0) {
      const line = bounds.slice().sort((a, b) => a.bytes - b.bytes);
      const d = line.map((p, n) => `${n ? "L" : "M"}${across.at(p.bytes).toFixed(1)} ${up.at(p.bound).toFixed(1)}`);
      const path = svg("path", {class: "bound", d: d.join("")}, root);
      svg("title", {}, path, "proven lower bound on the accesses in this much memory");
    }
    for (const p of data.points) {
      const dot = svg("circle", {class: "point", cx: across.at(x.of(p)).toFixed(1), cy: up.at(y.of(p)).toFixed(1),
                                 r: data.points.length > 400 ? 3 : 4.5, fill: colour(p)}, root);
      svg("title", {}, dot, describe(p));
      dot.addEventListener("click", () => select(p.n));
    }
    const ring = svg("circle", {class: "ring", r: 8, cx: -20, cy: -20}, root);
    rings.push((p) => {
      ring.setAttribute("cx", across.at(x.of(p)));
      ring.setAttribute("cy", up.at(y.of(p)));
    });
  }

  function colourBar() {
    const parent = element("colours");
    if (data.points.some((p) => p.bound))
      html("p", "hint", parent, "Dashed: what any schedule must move in this much memory, proven.");
    if (data.bounds.length > 0)
      html("p", "hint", parent, "Dotted: what any schedule of the space must move, also of the part that was not looked at, proven.");
    if (mostMacs === leastMacs) {
      html("p", "hint", parent, `Every schedule does ${grouped(mostMacs)} MACs.`);
      return;
    }
    const root = svg("svg", {viewBox: "0 0 490 40", width: 490, height: 40, role: "img", "aria-label": "colours: MACs"}, parent);
    svg("text", {x: 62, y: 14}, root, "colour: MACs");
    for (let n = 0; n < 60; ++n) svg("rect", {x: 160 + n * 4, y: 4, width: 4.5, height: 12, fill: mix(n / 59)}, root);
    svg("text", {x: 160, y: 32}, root, counts(leastMacs));
    svg("text", {x: 400, y: 32, "text-anchor": "end"}, root, counts(mostMacs));
  }

  function pointTable() {
    const table = html("table", "", element("table"));
    const head = html("tr", "", html("thead", "", table));
    const hasBounds = data.points.some((p) => p.bound);
    for (const title of ["schedule", "external accesses", data.memory_name, "MACs", "groups"]) html("th", "", head, title);
    if (hasBounds) html("th", "", head, "÷ lower bound");
    const body = html("tbody", "", table);
    for (const p of data.points) {
      const row = html("tr", "", body);
      row.dataset.point = p.n;
      row.tabIndex = 0;
      for (const cell of [p.file, grouped(p.accesses), bytes(p.bytes), grouped(p.macs), p.groups]) html("td", "", row, cell);
      if (hasBounds) html("td", "", row, p.bound ? (p.accesses / p.bound).toFixed(3) : "");
      row.addEventListener("click", () => select(p.n));
      row.addEventListener("keydown", (event) => { if (event.key === "Enter") select(p.n); });
    }
  }

  // ------------------------------------------------------------------------------------------------- one schedule

  function card(title, value, unit) {
    const box = html("div", "card", element("numbers"));
    html("span", "unit", box, title);
    html("b", "", box, value);
    html("span", "unit", box, unit);
  }

  function select(n) {
    const p = data.points[n];
    for (const place of rings) place(p);
    for (const row of document.querySelectorAll("tr[data-point]")) row.classList.toggle("chosen", Number(row.dataset.point) === n);
    element("point-heading").textContent = `Schedule ${p.file}`;
    element("numbers").replaceChildren();
    card("external accesses", counts(p.accesses), `${grouped(p.accesses)} elements`);
    card(data.memory_name, bytes(p.bytes), `${grouped(p.bytes)} bytes`);
    card("multiply-accumulates", counts(p.macs), `${grouped(p.macs)} MACs`);
    card("groups", String(p.groups), "of layers executed together");
    if (p.bound) card("above the lower bound", `${(p.accesses / p.bound).toFixed(3)} ×`, `bound ${grouped(p.bound)} elements`);
    const detail = element("detail");
    detail.replaceChildren();
    if (p.detail === undefined) {
      html("p", "hint", detail, `This page holds the inside of ${data.details.length} of the ${data.points.length} schedules. ` +
        `This one is in ${p.file}; laminate show prints its loop nest.`);
      return;
    }
    showGroups(detail, data.details[p.detail].map((g) => data.groups[g]));
  }

  function showGroups(parent, groups) {
    html("h3", "", parent, "Memory over time");
    html("p", "hint", parent, "What each group keeps in memory while it runs; time in MACs, groups in the order in which they run. " +
      "Where loops turn faster than can be drawn, their trips are folded onto one another. Click a group to look inside.");
    const timeline = html("figure", "", parent);
    html("h3", "", parent, "External traffic by group");
    const traffic = html("figure", "", parent);
    const inside = html("div", "", parent);
    const picks = [];
    const pick = (n) => {
      for (const [at, mark] of picks) mark.classList.toggle("chosen", at === n);
      inside.replaceChildren();
      showGroup(inside, groups[n], n, groups.length);
    };
    drawTimeline(timeline, groups, picks, pick);
    drawTraffic(traffic, groups, picks, pick);
    pick(groups.reduce((best, g, n) => g.live > groups[best].live ? n : best, 0));
  }

  /** MACs of each step: those of its phase, evenly; phases without MACs get a sliver so that they can be seen. */
  function stepWidths(group) {
    const times = group.phases.map(() => 0);
    for (const step of group.steps) ++times[step];
    const total = group.phases.reduce((sum, phase) => sum + phase.macs, 0);
    return group.phases.map((phase, n) => Math.max(phase.macs, total / 200, 1) / times[n]);
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
    const width = 1240, height = 250, margins = [70, 16, 14, 40], [left, right, , bottom] = margins;
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
    svg("text", {x: width - right, y: (up(highest) - 3).toFixed(1), "text-anchor": "end"}, root, `largest: ${memory(highest)}`);
    svg("path", {class: "axis", d: `M${left} ${margins[2]}V${height - bottom}H${width - right}`}, root);
    svg("text", {class: "label", x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle"}, root,
        "group, as wide as its MACs");
  }

  function drawTraffic(figure, groups, picks, pick) {
    keys(figure, [["X: inputs", kinds.X], ["W: weights", kinds.W], ["Y: outputs", kinds.Y]]);
    const row = 20, width = 1240, left = 250, right = 130, height = groups.length * row + 8;
    const root = svg("svg", {viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": "traffic by group"}, figure);
    root.setAttribute("id", "traffic");
    const most = Math.max(1, ...groups.map((g) => g.accesses));
    groups.forEach((group, n) => {
      const y = n * row + 4;
      const layers = group.layers.length > 1 ? `${group.layers[0]} … ${group.layers.at(-1)}` : group.layers[0];
      svg("text", {x: left - 8, y: y + 13, "text-anchor": "end"}, root, `${n + 1}  ${layers.length > 34 ? layers.slice(0, 33) + "…" : layers}`);
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
      const mark = svg("rect", {class: "pick", x: 0, y, width, height: row}, root);
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
    keys(figure, names.map((name) => [name, fills.get(name)]));
    const width = 1240, height = 240, margins = [70, 16, 10, 40], [left, right, top, bottom] = margins;
    const {root, up} = frame(figure, "memory of this group over time", width, height, margins, Math.max(1, group.live) * 1.06);
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
      const path = svg("path", {d, fill: fills.get(name), stroke: "#fff", "stroke-width": .4}, root);
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
    svg("text", {class: "label", x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle"}, root,
        `time (MACs); the outermost ${group.unfolded} loops of ${group.layers.at(-1)} are drawn trip by trip`);

    html("h3", "", parent, "Its traffic by tensor");
    const table = html("table", "", parent);
    const head = html("tr", "", html("thead", "", table));
    for (const title of ["tensor", "reads", "writes", "elements of the tensor", "times"]) html("th", "", head, title);
    const body = html("tbody", "", table);
    for (const t of group.traffic) {
      const line = html("tr", "", body);
      for (const cell of [t.name, grouped(t.reads), grouped(t.writes), grouped(t.elements), ((t.reads + t.writes) / t.elements).toFixed(2)])
        html("td", "", line, cell);
    }
    html("h3", "", parent, "Its loop nest");
    html("pre", "", parent, group.nest);
  }

  // ---------------------------------------------------------------------------------------------------------- start

  element("about").textContent = data.about;
  scatter("bytes", "accesses", true);
  scatter("macs", "accesses", false);
  scatter("bytes", "macs", false);
  colourBar();
  pointTable();
  select(0);
})();
