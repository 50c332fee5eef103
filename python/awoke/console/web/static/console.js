// Keeps the page up to date: the server tells of a change, and the page is fetched again. Without it pages still work.
"use strict";
(() => {
  const main = () => document.querySelector("main");
  const badge = document.querySelector(".live");
  const show = (on) => {
    if (!badge || badge.dataset.state === (on ? "on" : "off")) return;
    badge.dataset.state = on ? "on" : "off";
    badge.querySelector(".word").textContent = on ? "live" : "not live";
  };

  // A person who types, selects, presses a button or has opened a form keeps the page as it is.
  let pressed = false;
  addEventListener("pointerdown", () => { pressed = true; });
  for (const name of ["pointerup", "pointercancel"]) addEventListener(name, () => setTimeout(() => { pressed = false; }));
  const busy = () => {
    const at = document.activeElement;
    return pressed || document.hidden || document.querySelector("main .act[open],[data-hits]") ||  // search.js adds hits.
      !getSelection().isCollapsed ||
      (at && main().contains(at) && /^(INPUT|SELECT|TEXTAREA)$/.test(at.tagName));
  };

  const plots = new WeakMap();
  const draw = () => {
    if (!window.uPlot) return;
    for (const figure of document.querySelectorAll("figure[data-chart]")) {
      const numbers = (name) => figure.dataset[name].split(" ").filter(Boolean).map(Number);
      const data = [numbers("at").map((at) => at / 1000), numbers("values")];
      let plot = plots.get(figure);
      const said = figure.dataset.at + figure.dataset.values;
      if (plot) { if (plot.said !== said) plot.setData(data); plot.said = said; continue; }
      const box = figure.querySelector(".spark");
      if (!box || data[0].length < 2) continue;
      const style = getComputedStyle(figure), quiet = getComputedStyle(figure.querySelector("figcaption")).color;
      const size = (n) => {
        const [step, unit] = [[1e9, " G"], [1e6, " M"], [1e3, " k"], [1, ""]].find(([least]) => n >= least) || [1, ""];
        return +(n / step).toPrecision(2) + unit;
      };
      const axis = { stroke: quiet, font: "11px system-ui", grid: { show: false }, ticks: { show: false } };
      const width = Math.floor(figure.clientWidth - parseFloat(style.paddingLeft) * 2);
      const place = document.createElement("div");
      box.before(place);
      plot = new uPlot({
        width, height: 96, legend: { show: false }, cursor: { y: false, drag: { x: false } }, padding: [8, 4, 0, 0],
        scales: { y: { range: (_, low, high) => [0, high > 0 ? high * 1.1 : 1] } },
        axes: [{ ...axis, space: 60, size: 24, values: (u, all) => all.map((at) => new Date(at * 1000).toTimeString().slice(0, 5)) }, { ...axis, size: 44, splits: (u, i, low, high) => [0, high / 2.2, high / 1.1],
          values: (u, all) => all.map(size) }],
        series: [{}, { stroke: style.color, width: 1.5, fill: style.color.replace("rgb(", "rgba(").replace(")", ", .1)"),
          points: { show: false } }],
      }, data, place);
      plot.said = said;
      plots.set(figure, plot);
      box.setAttribute("hidden", "");
    }
  };

  // The page is made like its new version by the fewest changes, so that a browser makes only those anew: focus, opened
  // parts, scrolling and layout of all else stay. Rows are the same ones if they have the same link or heading.
  const LISTS = /^(TABLE|THEAD|TBODY|TR|UL|OL|DL)$/;  // White space in them is not shown.
  const parts = (of) => [...(LISTS.test(of.nodeName) ? of.children : of.childNodes)];
  const identity = (node) => {
    const of = node.nodeName, first = /^(TR|LI)$/.test(of) && (node.querySelector("a[href]") || node.querySelector("th"));
    return `${of} ${node.id || (first && (first.getAttribute("href") || first.textContent)) || ""}`;
  };
  const patch = (old, next) => {
    if (old.isEqualNode(next)) return;
    if (old.nodeType !== Node.ELEMENT_NODE) { old.data = next.data; return; }
    for (const { name, value } of next.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    const own = plots.has(old) ? "class" : old.nodeName === "DETAILS" ? "open" : "";  // Not the server's.
    for (const { name } of [...old.attributes]) if (name !== own && !next.hasAttribute(name)) old.removeAttribute(name);
    if (plots.has(old)) patch(old.querySelector("figcaption"), next.querySelector("figcaption"));
    else arrange(old, next);
  };
  const arrange = (old, next) => {
    const wanted = parts(next), names = wanted.map(identity), left = new Map();
    for (const each of names) left.set(each, [...(left.get(each) || []), null]);
    const present = parts(old).filter((each) => {
      const places = left.get(identity(each)) || [], free = places.indexOf(null);
      if (free < 0) each.remove(); else places[free] = each;
      return free >= 0;
    });
    const placed = new Set();
    let at = 0;
    wanted.forEach((each, number) => {
      const same = left.get(names[number]).shift();
      while (placed.has(present[at])) at++;
      if (same) patch(same, each);
      if (same && same === present[at]) at++;
      else if (same && same === present[at + 1]) at += 2;  // The one before it has moved down: its turn comes.
      else old.insertBefore(same || each, present[at] || null);
      placed.add(same);
    });
  };

  let loading = false, again = false, shown = "";
  const load = async () => {
    if (busy()) return;
    if (loading) { again = true; return; }
    loading = true;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      const text = await answer.text();
      if (!answer.ok || busy() || text === shown) return;  // Most changes are of what other pages show.
      const next = new DOMParser().parseFromString(text, "text/html").querySelector("main");
      await new Promise((done) => setTimeout(done));  // The browser may answer a person between reading and showing.
      if (!next || busy()) return;
      shown = text;
      const focused = main().contains(document.activeElement) ? document.activeElement : null;
      patch(main(), next);
      if (focused && document.activeElement !== focused) {  // It was moved, or taken away.
        const link = `a[href="${CSS.escape(focused.getAttribute("href") || "")}"]`;
        (focused.isConnected ? focused : main().querySelector(link))?.focus({ preventScroll: true });
      }
      draw();
    } catch { show(false); } finally {
      loading = false;
      // Questions to the page before it is painted would compute its layout within this task.
      if (again) { again = false; requestAnimationFrame(() => setTimeout(load)); }
    }
  };

  if (document.querySelector("noscript") && document.body.dataset.live) {
    const source = new EventSource(document.body.dataset.live);
    source.addEventListener("open", () => show(true));
    source.addEventListener("error", () => show(false));
    source.addEventListener("change", () => { show(true); load(); });
    source.addEventListener("replay", () => { if (document.querySelector("[data-replay]")) load(); });
    addEventListener("pagehide", () => source.close());
    addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
  }
  document.addEventListener("visibilitychange", () => { if (!document.hidden) load(); });
  draw();
})();
