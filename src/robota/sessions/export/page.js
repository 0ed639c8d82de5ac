"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const tools = byId("tools"), search = byId("search"), found = byId("found"), unfold = byId("unfold");
  const steps = Array.from(document.querySelectorAll("article"));
  const OPEN_AT_MOST = 50;
  let texts = null, waiting = 0;

  const show = () => {
    const wanted = search.value.trim().toLowerCase();
    if (wanted && texts === null) texts = steps.map((step) => step.textContent.toLowerCase());
    const hits = [];
    steps.forEach((step, place) => {
      const hit = !wanted || texts[place].includes(wanted);
      step.hidden = !hit;
      if (wanted && hit) hits.push(step);
    });
    for (const section of document.querySelectorAll("section"))
      section.hidden = wanted !== "" && section.querySelector("article:not([hidden])") === null;
    found.textContent = wanted ? `${hits.length} of ${steps.length}` : "";
    for (const hit of hits.length > OPEN_AT_MOST ? [] : hits)
      for (const fold of hit.querySelectorAll("details"))
        if (fold.textContent.toLowerCase().includes(wanted)) fold.open = true;
  };

  search.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(show, 150);
  });
  unfold.addEventListener("click", () => {
    const open = unfold.textContent === "Unfold all";
    for (const fold of document.querySelectorAll("article details")) fold.open = open;
    unfold.textContent = open ? "Fold all" : "Unfold all";
  });
  tools.hidden = false;
})();
