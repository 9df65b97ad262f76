"use strict";
// Charts: each is drawn again with tooltips in place of its still; a still stays if anything fails, and on paper.
(function () {
  const specs = JSON.parse(document.getElementById("specs").textContent);
  const plain = /^[\w.%~-]+(\/[\w.%~-]+)*\.html$/;
  async function draw(place) {
    const view = await window.vegaEmbed(place, specs[place.dataset.chart], {
      actions: false, renderer: "svg", ast: true, hover: true,
    });
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
      const fits = place.scrollWidth <= place.clientWidth + 1 && place.scrollHeight <= place.clientHeight + 1;
      if (fits) place.removeAttribute("tabindex");
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
  for (const field of document.querySelectorAll("[data-filters]")) {
    const rows = Array.from(document.getElementById(field.dataset.filters).tBodies[0].rows);
    const count = document.getElementById(field.dataset.filters + "-count");
    const texts = rows.map((row) => row.textContent.toLowerCase());
    field.addEventListener("input", function () {
      const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      rows.forEach((row, place) => {
        row.hidden = !words.every((word) => texts[place].includes(word));
        shown += row.hidden ? 0 : 1;
      });
      count.textContent = words.length ? shown + " of " + rows.length + " rows" : rows.length + " rows";
    });
  }
  if (window.vegaEmbed) drawAll();
  else ready();
})();
