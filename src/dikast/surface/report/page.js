"use strict";
(() => {
  const queues = [...document.querySelectorAll(".queue")];
  const shown = (queue) => [...queue.querySelectorAll(".entry")].filter((entry) => !entry.hidden);
  for (const queue of queues) {
    const form = queue.querySelector(".filters");
    const filter = () => {
      const given = new FormData(form);
      const words = String(given.get("text")).toLowerCase().split(/\s+/).filter(Boolean);
      const least = Number(given.get("gap") || 0);
      let count = 0;
      for (const entry of queue.querySelectorAll(".entry")) {
        const data = entry.dataset;
        const kept =
          words.every((word) => data.search.includes(word)) &&
          (!given.get("status") || data.status === given.get("status")) &&
          (!given.get("criterion") || data.criterion === given.get("criterion")) &&
          (least === 0 || (data.gap !== "" && Number(data.gap) >= least));
        entry.hidden = !kept;
        count += kept;
      }
      form.querySelector("output").textContent = `${count} shown`;
    };
    form.addEventListener("input", filter);
    form.addEventListener("submit", (event) => event.preventDefault());
    filter();
  }
  for (const entry of document.querySelectorAll(".entry")) {
    const picture = entry.querySelector(".pictures img");
    if (!picture) continue;
    const small = document.createElement("img");
    Object.assign(small, { src: picture.src, alt: "", loading: "lazy" });
    entry.querySelector("summary .said").after(small);
  }
  for (const table of document.querySelectorAll(".sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "descending";
        heads.forEach((each) => each.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "ascending" : "descending");
        const key = (row) => {
          const cell = row.cells[column];
          const number = Number.parseFloat(cell.dataset.n);
          return Number.isNaN(number) ? (cell.dataset.n === undefined ? cell.textContent : -Infinity) : number;
        };
        const rows = [...table.tBodies[0].rows].sort((a, b) => (key(a) > key(b)) - (key(a) < key(b)));
        table.tBodies[0].append(...(down ? rows : rows.reverse()));
      });
    });
  }
  for (const text of document.querySelectorAll(".copy pre")) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Copy";
    text.previousElementSibling.append(button);
    button.addEventListener("click", async () => {
      getSelection().selectAllChildren(text);
      let done = false;
      try {
        await navigator.clipboard.writeText(text.textContent);
        done = true;
      } catch {
        done = document.execCommand("copy");
      }
      button.textContent = done ? "Copied" : "Selected: press Ctrl+C";
    });
  }
  const open = () => {
    const entry = location.hash && document.getElementById(location.hash.slice(1));
    if (entry && entry.matches("details")) {
      entry.hidden = false;
      entry.open = true;
      entry.scrollIntoView();
    }
  };
  addEventListener("hashchange", open);
  open();
  addEventListener("beforeprint", () => document.querySelectorAll(".numbers").forEach((each) => (each.open = true)));
  addEventListener("keydown", (event) => {
    if (event.target.closest("input,select,textarea") || event.ctrlKey || event.metaKey || event.altKey) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const entries = queues.flatMap(shown);
    const at = entries.findIndex((entry) => entry.classList.contains("at"));
    const go = (index) => {
      const next = entries[Math.max(0, Math.min(entries.length - 1, index))];
      if (!next) return;
      entries.forEach((entry) => entry.classList.remove("at"));
      next.classList.add("at");
      next.scrollIntoView({ block: "nearest" });
      next.querySelector("summary").focus({ preventScroll: true });
    };
    if (event.key === "j") go(at + 1);
    else if (event.key === "k") go(at - 1);
    else if (event.key === "o" && at >= 0) entries[at].open = !entries[at].open;
    else if (event.key === "/" && queues.length) queues[0].querySelector("input[type=search]").focus();
    else return;
    event.preventDefault();
  });
})();
