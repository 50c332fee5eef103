// Shows the hits of a search as they come. Text of messages is only ever set as text.
"use strict";
(() => {
  const progress = document.getElementById("progress"), stop = document.getElementById("cancel");
  if (!progress || !progress.dataset.hits) return;
  const body = document.querySelector("main table tbody"), source = new EventSource(progress.dataset.hits);
  const end = (text) => { source.close(); stop.hidden = true; progress.textContent = text; };
  const cell = (row, text, tag = "td") => {
    const made = document.createElement(tag);
    made.textContent = text;
    row.append(made);
    return made;
  };
  const content = (of) => (of.form === "none" ? "none" : (of.text || "").slice(0, 160));
  const add = (hit) => {
    const row = document.createElement("tr"), place = cell(row, "", "th"), link = document.createElement("a");
    place.scope = "row";
    link.href = `${progress.dataset.message}${hit.partition}/${hit.offset}`;
    link.textContent = `${hit.partition}:${hit.offset}`;
    place.append(link);
    cell(row, hit.timestamp_ms === null ? "–" : new Date(hit.timestamp_ms).toISOString().slice(0, 19).replace("T", " ")).className = "nowrap";
    cell(row, content(hit.key)).className = "wide";
    cell(row, content(hit.value)).className = "wide";
    body.append(row);
  };
  const ends = {
    end: "All were searched.", hits: "It ended at the most hits.", limit: "It ended at the most messages.",
    time: "It ended at its time limit.", cancelled: "It was stopped.",
  };
  let said = "";
  stop.hidden = false;
  stop.addEventListener("click", () => end(`${said} Stopped.`));
  source.addEventListener("step", (event) => {
    const step = JSON.parse(event.data);
    if (step.error) return end(step.error);
    step.hits.forEach(add);
    said = `${step.found} hits among ${step.scanned} of ${step.total} messages.`;
    progress.textContent = said;
    if (step.over_because) end(`${said} ${ends[step.over_because] || step.over_because}`);
  });
  source.addEventListener("over", () => end(said));
  source.onerror = () => end(`${said} The connection was lost.`);
})();
