"use strict";
(() => {
  const list = document.getElementById("list");
  const cases = Array.from(list.children);
  const form = document.getElementById("filter");
  const search = document.getElementById("search");
  const shown = document.getElementById("shown");
  const texts = cases.map((c) => c.firstElementChild.textContent.toLowerCase());
  // What is not yet shown lies in the page as inert text.
  const fill = (c) => {
    const late = c.querySelector(":scope > script");
    if (!late) return;
    const body = document.createElement("div");
    body.className = "body";
    body.innerHTML = late.textContent;
    late.replaceWith(body);
  };
  list.addEventListener("toggle", (e) => { if (e.target.open && e.target.parentNode === list) fill(e.target); }, true);
  const apply = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const on = new Set(Array.from(form.querySelectorAll("input:checked"), (box) => box.name));
    let count = 0;
    cases.forEach((c, i) => {
      const fits = on.has(c.classList[1]) && words.every((w) => texts[i].includes(w));
      c.hidden = !fits;
      if (fits) count += 1;
    });
    shown.textContent = count === cases.length ? `${count} cases` : `${count} of ${cases.length} cases`;
  };
  form.hidden = false;
  form.addEventListener("input", apply);
  form.addEventListener("submit", (e) => e.preventDefault());
  const open = (c) => {
    if (!c || c.parentNode !== list) return;
    c.hidden = false;
    fill(c);
    c.open = true;
    c.scrollIntoView({ block: "start" });
    c.firstElementChild.focus({ preventScroll: true });
  };
  const byHash = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    open(target);
    for (let d = target.closest("details:not(.case)"); d; d = d.parentElement.closest("details")) d.open = true;
  };
  addEventListener("hashchange", byHash);
  // A link to where the page already is changes no hash.
  document.addEventListener("click", (e) => {
    const link = e.target.closest("a[href^='#']");
    if (link && link.hash === location.hash) byHash();
  });
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    if (e.target.matches("input")) {
      if (e.key === "Escape" && e.target === search) { search.value = ""; apply(); search.blur(); }
      return;
    }
    if (e.key === "/") { e.preventDefault(); search.focus(); return; }
    if (e.key !== "n" && e.key !== "p") return;
    const failed = cases.filter((c) => !c.hidden && c.classList.contains("failed"));
    const current = failed.indexOf(document.activeElement.closest(".case"));
    const next = e.key === "n" ? current + 1 : (current < 0 ? failed.length : current) - 1;
    if (failed[next]) open(failed[next]);
  });
  apply();
  byHash();
})();
