"use strict";
// Charts: each is drawn again with tooltips in place of its still; a still stays if anything fails, and on paper.
(function () {
  const specs = JSON.parse(document.getElementById("specs").textContent);
  const plain = /^[\w.%~-]+(\/[\w.%~-]+)*\.html$/;
  // A chart across the page is as wide as that; on a narrow one it carries one label.
  const AXIS = 86, NARROW = 640, NARROWEST = 90; // pixels: about what an axis takes, a narrow page, the least of bars
  function fitted(spec, room) {
    if (typeof spec.width !== "number") return spec;
    const across = spec.usermeta && spec.usermeta.across;
    if (typeof spec.height !== "number") return spec; // bars of a fixed height take no autosize: see draw
    const labels = spec.datasets.labels;
    return {
      ...spec, autosize: {type: "fit-x", contains: "padding"}, width: across ? room : Math.min(room, spec.width + AXIS),
      datasets: labels && room < NARROW ? {...spec.datasets, labels: labels.slice(0, 1)} : spec.datasets,
    };
  }
  async function draw(place) {
    const room = place.closest("section").clientWidth;
    const spec = fitted(specs[place.dataset.chart], room), options = {actions: false, renderer: "svg", ast: true, hover: true};
    let view = await window.vegaEmbed(place, spec, options);
    const over = Number(place.querySelector("svg").getAttribute("width")) - room;
    if (over > 0 && typeof spec.width === "number") {
      view.finalize();
      view = await window.vegaEmbed(place, {...spec, width: Math.max(NARROWEST, spec.width - over)}, options);
    }
    view.view.addEventListener("click", function (event, item) {
      const page = item && item.datum && item.datum.page;
      if (typeof page === "string" && plain.test(page)) window.location.href = page;
    });
    const drawn = place.querySelector("svg");
    drawn.setAttribute("role", "img");
    drawn.setAttribute("aria-label", place.dataset.alt);
    place.parentElement.classList.add("drawn");
  }
  async function drawAll() {
    for (const place of document.querySelectorAll("[data-chart]")) {
      try {
        await new Promise((done) => setTimeout(done)); // a reader may act between two charts
        await draw(place);
      } catch (error) {
        place.replaceChildren();
        console.error(error);
      }
    }
    ready();
  }
  // Only what scrolls is a stop for the keyboard.
  function ready() {
    for (const place of document.querySelectorAll(".scroll")) {
      const across = place.scrollWidth > place.clientWidth + 1;
      place.classList.toggle("more", across);
      if (!across && place.scrollHeight <= place.clientHeight + 1) place.removeAttribute("tabindex");
    }
    document.documentElement.dataset.ready = "yes";
  }
  // Tables: sorted by a head's button, filtered by words that must all occur in a row.
  function value(row, column) {
    const cell = row.cells[column];
    return cell.dataset.n === undefined ? cell.textContent.trim().toLowerCase() : Number(cell.dataset.n);
  }
  function compare(a, b) {
    if (typeof a === typeof b) return a < b ? -1 : a > b ? 1 : 0;
    return typeof a === "number" ? -1 : 1; // numbers before dashes
  }
  for (const button of document.querySelectorAll("th button")) {
    button.addEventListener("click", function () {
      const head = button.closest("th"), body = button.closest("table").tBodies[0];
      const up = head.getAttribute("aria-sort") !== "ascending";
      for (const other of head.parentElement.cells) other.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const rows = Array.from(body.rows).map((row) => [value(row, head.cellIndex), row]);
      rows.sort((a, b) => {
        const mixed = typeof a[0] !== typeof b[0];
        return mixed || up ? compare(a[0], b[0]) : compare(b[0], a[0]);
      });
      body.append(...rows.map((pair) => pair[1]));
    });
  }
  // A filter: words that must occur in a row, and comparisons of columns with numbers, as in lut < 500 accuracy >= 95%.
  const COMPARES = {
    "<": (a, b) => a < b, "<=": (a, b) => a <= b, ">": (a, b) => a > b, ">=": (a, b) => a >= b, "=": (a, b) => a === b,
  };
  const COMPARISON = /([^\s<>=]+)\s*(<=|>=|<|>|=)\s*(-?[\d.]+(?:e-?\d+)?)\s*(%?)/gi;
  function condition(text, heads) {
    const tests = [];
    const words = text.toLowerCase().replace(COMPARISON, function (whole, name, sign, number, percent) {
      const column = heads.findIndex((head) => (head.dataset.key || head.textContent.trim()).toLowerCase() === name);
      const wanted = percent ? Number(number) / 100 : Number(number);
      tests.push((row) => {
        const known = column < 0 ? undefined : row.cells[column].dataset.n;
        return known !== undefined && COMPARES[sign](Number(known), wanted);
      });
      return " ";
    }).split(/\s+/).filter(Boolean);
    const test = (row, found) => words.every((word) => found.includes(word)) && tests.every((one) => one(row));
    return words.length || tests.length ? test : null;
  }
  const filters = new Map(); // by table: shows the rows that both field and chart leave
  for (const field of document.querySelectorAll("[data-filters]")) {
    const table = document.getElementById(field.dataset.filters), rows = Array.from(table.tBodies[0].rows);
    const count = document.getElementById(field.dataset.filters + "-count");
    const texts = rows.map((row) => row.textContent.toLowerCase()), heads = Array.from(table.tHead.rows[0].cells);
    let chosen = null; // trials that a chart chose
    function show() {
      const test = condition(field.value, heads);
      let shown = 0;
      rows.forEach((row, place) => {
        const marked = chosen === null || chosen.has(row.cells[0].textContent.trim());
        row.hidden = !marked || (test !== null && !test(row, texts[place]));
        shown += row.hidden ? 0 : 1;
      });
      count.textContent = test || chosen ? shown + " of " + rows.length + " rows" : rows.length + " rows";
    }
    field.addEventListener("input", show);
    filters.set(table, (trials) => { chosen = trials; show(); });
  }
  // Parallel coordinates: a part of an axis that is dragged over keeps the trials whose lines pass through it.
  for (const place of document.querySelectorAll(".brush")) {
    const drawn = place.querySelector("svg"), ranges = new Map();
    const trials = document.querySelector("section#trials table");
    const lines = Array.from(drawn.querySelectorAll("[data-trial]"), (line) => ({
      line, at: new Map(line.getAttribute("points").split(" ").map((point) => point.split(",").map(Number))),
    }));
    const tools = document.createElement("div"), said = document.createElement("output");
    const alone = document.createElement("input"), words = document.createElement("label"), clear = button("Clear");
    tools.className = "tools";
    alone.type = "checkbox";
    words.append(alone, " the front alone");
    tools.append(words, said, clear);
    place.closest("figure").querySelector("figcaption").after(tools);
    function choose() {
      const kept = new Set();
      for (const {line, at} of lines) {
        const inside = Array.from(ranges).every(([x, [a, b]]) => at.has(x) && at.get(x) >= a && at.get(x) <= b);
        const shown = inside && (!alone.checked || line.classList.contains("best"));
        line.classList.toggle("out", !shown);
        if (shown) kept.add(line.dataset.trial);
      }
      const any = ranges.size > 0 || alone.checked;
      said.textContent = any ? kept.size + " of " + lines.length + " trials chosen" : "";
      clear.hidden = !any;
      if (trials && filters.has(trials)) filters.get(trials)(any ? kept : null);
    }
    for (const axis of drawn.querySelectorAll(".axis")) {
      const handle = axis.querySelector(".handle"), range = axis.querySelector(".range"), x = Number(axis.dataset.x);
      const height = (event) => new DOMPoint(event.clientX, event.clientY).matrixTransform(drawn.getScreenCTM().inverse()).y;
      let start = null;
      function mark(event) {
        if (start === null) return;
        const ends = [start, height(event)].sort((a, b) => a - b), wide = ends[1] - ends[0];
        range.setAttribute("y", ends[0]);
        range.setAttribute("height", wide > 3 ? wide : 0);
        if (wide > 3) ranges.set(x, ends);
        else ranges.delete(x);
        choose();
      }
      handle.addEventListener("pointerdown", (event) => {
        start = height(event);
        handle.setPointerCapture(event.pointerId);
        mark(event);
      });
      handle.addEventListener("pointermove", mark);
      handle.addEventListener("pointerup", () => { start = null; });
    }
    alone.addEventListener("change", choose);
    clear.addEventListener("click", () => {
      ranges.clear();
      alone.checked = false;
      for (const range of drawn.querySelectorAll(".range")) range.setAttribute("height", 0);
      choose();
    });
    choose();
  }
  // Commands are copied by a button.
  function button(text) {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = text;
    return made;
  }
  for (const place of document.querySelectorAll(".command")) {
    const copy = button("Copy"), code = place.querySelector("code");
    copy.setAttribute("aria-label", "Copy the command");
    copy.addEventListener("click", async function () {
      const range = document.createRange();
      range.selectNodeContents(code);
      try {
        await navigator.clipboard.writeText(code.textContent);
      } catch {
        window.getSelection().removeAllRanges();
        window.getSelection().addRange(range);
        document.execCommand("copy");
      }
      copy.textContent = "Copied";
      setTimeout(() => { copy.textContent = "Copy"; }, 1500);
    });
    (place.querySelector("pre") || code).before(copy);
  }
  if (window.vegaEmbed) drawAll();
  else ready();
})();
