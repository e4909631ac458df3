"use strict";
// The Gantt charts: one canvas a run, all on one clock. Everything in view is drawn again for each frame.

const {colors, runs} = JSON.parse(document.getElementById("data").textContent);  // times are since the first submission
const LEFT = 52, TOP = 6, BOTTOM = 24;  // pixels around a chart, for its axes
const CLOSEST = 1;  // seconds: the shortest time that fills a chart
const UNITS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200,
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].map(days => 86400 * days)];  // seconds
// What the machine's clock showed at the first submission, seconds since 1970, where all runs say the same; else null
const origin = new Set(runs.map(run => run.clock)).size === 1 ? runs[0].clock : null;
const HOST_STEPS = Array.from({length: 20}, (_, power) => 2 ** power);

const whole = {
  begin: 0,
  end: Math.max(...runs.map(run => Math.max(...ends(run)))) || 1,
  low: 0,
  high: Math.max(...runs.map(run => run.hosts)),
};
const view = {...whole};  // seconds and hosts that are seen, in all charts
let colour = "job";
let pointed = null;  // {time, id} under the pointer
let drag = null;  // where a drag was last
let asked = false;  // whether a frame is to come

function ends(run) {
  return run.start.map((start, job) => start + run.runtime[job]);
}

// ------------------------------------------------------------------------------------------------ drawing

const charts = runs.map(run => {
  const title = document.createElement("h3");
  title.textContent = run.name;
  const canvas = document.createElement("canvas");
  canvas.tabIndex = 0;
  canvas.setAttribute("aria-label", `Gantt chart of ${run.name}: ${run.id.length} jobs on ${run.hosts} hosts`);
  document.getElementById("charts").append(title, canvas);
  const longest = Math.max(...run.start.map((start, job) => start - run.submit[job]));
  const index = new Map(run.id.map((id, job) => [id, job]));
  return {run, canvas, end: ends(run), longest, index};
});

function redraw() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => {
    asked = false;
    const began = performance.now();
    charts.forEach(draw);
    document.body.dataset.frame = (performance.now() - began).toFixed(1);
    document.getElementById("range").textContent =
      `${moment(view.begin)} to ${moment(view.end)}, hosts ${Math.ceil(view.low)} to ${Math.floor(view.high) - 1}`;
  });
}

function place(canvas) {
  const width = canvas.clientWidth - LEFT - 8, height = canvas.clientHeight - TOP - BOTTOM;
  return {width, height, x: width / (view.end - view.begin), y: height / (view.high - view.low)};
}

function draw(chart) {
  const {canvas} = chart, ratio = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(canvas.clientWidth * ratio)) canvas.width = Math.round(canvas.clientWidth * ratio);
  if (canvas.height !== Math.round(canvas.clientHeight * ratio)) canvas.height = Math.round(canvas.clientHeight * ratio);
  const pen = canvas.getContext("2d"), box = place(canvas);
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, canvas.clientWidth, canvas.clientHeight);
  drawAxes(pen, box);
  pen.save();
  pen.beginPath();
  pen.rect(LEFT, TOP, box.width, box.height);
  pen.clip();
  drawJobs(pen, box, chart);
  drawPointed(pen, box, chart);
  pen.restore();
}

function drawJobs(pen, box, {run, end, longest}) {
  const {span, start} = run;
  for (let at = 0; at < span.length; at += 3) {
    const job = span[at];
    if (start[job] > view.end) break;  // spans are in order of start
    if (end[job] < view.begin || span[at + 2] + 1 < view.low || span[at + 1] > view.high) continue;
    pen.fillStyle = colour === "job" ? colors[run.color[job]] : heat(run, job, longest);
    fill(pen, box, start[job], end[job], span[at + 1], span[at + 2]);
  }
}

function fill(pen, box, begin, end, first, last) {
  const width = (end - begin) * box.x, height = (last + 1 - first) * box.y;
  const gap = width > 5 && box.y > 5 ? 1 : 0;
  pen.fillRect(LEFT + (begin - view.begin) * box.x, TOP + (first - view.low) * box.y,
    Math.max(width - gap, 0.4), Math.max(height - gap, 0.4));
}

function heat(run, job, longest) {
  const share = Math.log1p(run.start[job] - run.submit[job]) / (Math.log1p(longest) || 1);
  return `hsl(${50 - 50 * share} 85% ${82 - 47 * share}%)`;
}

function drawPointed(pen, box, {run, end, index}) {
  if (pointed === null) return;
  const job = index.get(pointed.id);
  if (job !== undefined) {
    pen.fillStyle = "#000";
    for (let at = 0; at < run.span.length; at += 3) {
      if (run.span[at] === job) fill(pen, box, run.start[job], end[job], run.span[at + 1], run.span[at + 2]);
    }
  }
  pen.fillStyle = "#0006";
  pen.fillRect(LEFT + (pointed.time - view.begin) * box.x, TOP, 1, box.height);
}

function drawAxes(pen, box) {
  pen.font = "11px system-ui, sans-serif";
  pen.fillStyle = "#555";
  pen.strokeStyle = "#e8e8e8";
  pen.strokeRect(LEFT + 0.5, TOP + 0.5, box.width, box.height);
  pen.textAlign = "center";
  const step = timeStep(box);
  const ahead = origin === null ? 0 : origin % 86400;  // so that ticks are at midnights and full hours
  for (let time = Math.ceil((view.begin + ahead) / step) * step - ahead; time <= view.end; time += step) {
    const x = LEFT + (time - view.begin) * box.x;
    pen.fillRect(x, TOP + box.height, 1, 4);
    pen.fillText(tick(time, step), x, TOP + box.height + 16);
  }
  pen.textAlign = "right";
  const hosts = HOST_STEPS.find(step => step * box.y >= 28) || HOST_STEPS.at(-1);
  for (let host = Math.ceil(view.low / hosts) * hosts; host < view.high; host += hosts) {
    pen.fillText(String(host), LEFT - 6, TOP + (host + 0.5 - view.low) * box.y + 4);
  }
  pen.save();
  pen.translate(11, TOP + box.height / 2);
  pen.rotate(-Math.PI / 2);
  pen.textAlign = "center";
  pen.fillText("host", 0, 0);
  pen.restore();
}

function timeStep(box) {
  const least = 90 / box.x;  // seconds between ticks that leave room for their texts
  return STEPS.find(step => step >= least) || 86400 * Math.ceil(least / 86400);  // never more ticks than have room
}

function tick(time, step) {
  if (origin !== null) {
    const text = date(time);
    if (step % 86400 === 0) return text.slice(0, 10);
    return text.slice(11, 16) === "00:00" ? text.slice(0, 10) : text.slice(11, step % 60 ? 19 : 16);
  }
  if (step % 86400 === 0) return `${Math.round(time / 86400)} d`;
  const days = Math.floor(time / 86400), clock = new Date(1000 * (time % 86400)).toISOString();
  return (days ? `${days} d ` : "") + clock.slice(11, step % 60 ? 19 : 16);
}

function date(time) {
  return new Date(1000 * (origin + time)).toISOString().replace("T", " ");
}

function moment(time) {
  return origin === null ? duration(time) : date(time).slice(0, 16);
}

// ---------------------------------------------------------------------------------------- moving and pointing

function zoom(factor, time, host, axis) {
  if (axis === "hosts") {
    const height = Math.min(whole.high, Math.max(1, (view.high - view.low) * factor));
    view.low = host - (host - view.low) * height / (view.high - view.low);
    view.high = view.low + height;
  } else {
    const width = Math.min(whole.end, Math.max(CLOSEST, (view.end - view.begin) * factor));
    view.begin = time - (time - view.begin) * width / (view.end - view.begin);
    view.end = view.begin + width;
  }
  move(0, 0);
}

function move(seconds, hosts) {
  const right = Math.min(Math.max(seconds, -view.begin), whole.end - view.end);
  const down = Math.min(Math.max(hosts, -view.low), whole.high - view.high);
  view.begin += right;
  view.end += right;
  view.low += down;
  view.high += down;
  redraw();
}

function showAll() {
  Object.assign(view, whole);
  redraw();
}

function under(chart, event) {
  const box = place(chart.canvas), frame = chart.canvas.getBoundingClientRect();
  return {
    time: view.begin + (event.clientX - frame.left - LEFT) / box.x,
    host: view.low + (event.clientY - frame.top - TOP) / box.y,
  };
}

function jobAt({run, end}, {time, host}) {
  const row = Math.floor(host);
  for (let at = 0; at < run.span.length; at += 3) {
    const job = run.span[at];
    if (run.start[job] > time) break;
    if (end[job] > time && run.span[at + 1] <= row && row <= run.span[at + 2]) return job;
  }
  return null;
}

function point(chart, event) {
  const spot = under(chart, event), job = jobAt(chart, spot), tip = document.getElementById("tip");
  pointed = {time: spot.time, id: job === null ? null : chart.run.id[job]};
  tip.hidden = job === null;
  if (job !== null) {
    tip.textContent = describe(chart.run, job);
    tip.style.left = `${Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8)}px`;
    tip.style.top = `${Math.min(event.clientY + 14, window.innerHeight - tip.offsetHeight - 8)}px`;
  }
  redraw();
}

function describe(run, job) {
  const walltime = run.walltime[job] === null ? "none" : duration(run.walltime[job]);
  return [
    `job ${run.id[job]}`,
    `size      ${run.size[job]} hosts`,
    `wait      ${duration(run.start[job] - run.submit[job])}`,
    `walltime  ${walltime}`,
    `ran       ${duration(run.runtime[job])}, from ${moment(run.start[job])}`,
  ].join("\n");
}

function duration(seconds) {
  const sign = seconds < 0 ? "-" : "", whole = Math.abs(seconds);
  if (whole < 60) return `${sign}${Number(whole.toFixed(whole < 10 ? 1 : 0))} s`;
  const at = UNITS.findIndex(([unit]) => whole >= unit);
  const [unit, name] = UNITS[at], [next, nextName] = UNITS[at + 1];
  const smaller = Math.round(whole % unit / next);
  if (smaller * next === unit) return `${sign}${Math.floor(whole / unit) + 1} ${name}`;
  return `${sign}${Math.floor(whole / unit)} ${name}${smaller ? ` ${smaller} ${nextName}` : ""}`;
}

for (const chart of charts) {
  const {canvas} = chart;
  canvas.addEventListener("wheel", event => {
    event.preventDefault();
    const spot = under(chart, event), turned = event.deltaY || event.deltaX;  // with Shift some browsers turn sideways
    zoom(turned > 0 ? 1.25 : 0.8, spot.time, spot.host, event.shiftKey ? "hosts" : "time");
  }, {passive: false});
  canvas.addEventListener("pointerdown", event => {
    canvas.setPointerCapture(event.pointerId);
    drag = {x: event.clientX, y: event.clientY};
  });
  canvas.addEventListener("pointermove", event => {
    if (drag !== null) {
      const box = place(canvas);
      move((drag.x - event.clientX) / box.x, (drag.y - event.clientY) / box.y);
      drag = {x: event.clientX, y: event.clientY};
    }
    point(chart, event);
  });
  for (const over of ["pointerup", "pointercancel"]) canvas.addEventListener(over, () => { drag = null; });
  canvas.addEventListener("pointerleave", () => {
    pointed = null;
    document.getElementById("tip").hidden = true;
    redraw();
  });
  canvas.addEventListener("dblclick", showAll);
  canvas.addEventListener("keydown", press);
}

function press(event) {
  const time = (view.end - view.begin) / 10, hosts = (view.high - view.low) / 10;
  const keys = {
    ArrowLeft: () => move(-time, 0), ArrowRight: () => move(time, 0),
    ArrowUp: () => move(0, -hosts), ArrowDown: () => move(0, hosts),
    "+": () => zoomMiddle(0.8), "=": () => zoomMiddle(0.8), "-": () => zoomMiddle(1.25), 0: showAll,
  };
  if (keys[event.key] === undefined) return;
  event.preventDefault();
  keys[event.key]();
}

function zoomMiddle(factor) {
  zoom(factor, (view.begin + view.end) / 2, (view.low + view.high) / 2, "time");
}

document.getElementById("closer").addEventListener("click", () => zoomMiddle(0.5));
document.getElementById("wider").addEventListener("click", () => zoomMiddle(2));
document.getElementById("whole").addEventListener("click", showAll);
document.getElementById("colour").addEventListener("change", event => { colour = event.target.value; redraw(); });
window.addEventListener("resize", redraw);
redraw();
