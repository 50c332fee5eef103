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
    return pressed || document.hidden || document.querySelector("main .act[open]") || !getSelection().isCollapsed ||
      (at && main().contains(at) && /^(INPUT|SELECT|TEXTAREA)$/.test(at.tagName));
  };

  const plots = new WeakMap();
  const draw = () => {
    if (!window.uPlot) return;
    for (const figure of document.querySelectorAll("figure[data-chart]")) {
      const numbers = (name) => figure.dataset[name].split(" ").filter(Boolean).map(Number);
      const data = [numbers("at").map((at) => at / 1000), numbers("values")];
      let plot = plots.get(figure);
      if (plot && plot.root.isConnected) { plot.setData(data); continue; }
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
      plots.set(figure, plot);
      box.setAttribute("hidden", "");
    }
  };

  const kept = (element) => element.id || (element.querySelector("summary") || element).textContent.trim();
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
      if (!next) return;
      shown = text;
      const opened = new Set([...main().querySelectorAll("details[open]")].map(kept));
      for (const each of next.querySelectorAll("details")) if (opened.has(kept(each))) each.open = true;
      const old = [...main().querySelectorAll("figure[data-chart]")];
      [...next.querySelectorAll("figure[data-chart]")].forEach((figure, at) => {
        if (!old[at] || !plots.get(old[at])) return;
        Object.assign(old[at].dataset, figure.dataset);
        old[at].querySelector("figcaption").replaceWith(figure.querySelector("figcaption"));
        figure.replaceWith(old[at]);
      });
      const focus = document.activeElement && main().contains(document.activeElement) &&
        document.activeElement.getAttribute("href");
      const scrolled = [...main().querySelectorAll(".scroll,pre")].map((each) => [each.scrollLeft, each.scrollTop]);
      main().replaceChildren(...next.childNodes);
      [...main().querySelectorAll(".scroll,pre")].forEach((each, at) => {
        if (scrolled[at]) [each.scrollLeft, each.scrollTop] = scrolled[at];
      });
      if (focus) main().querySelector(`a[href="${CSS.escape(focus)}"]`)?.focus({ preventScroll: true });
      draw();
    } catch { show(false); } finally {
      loading = false;
      if (again) { again = false; load(); }
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
