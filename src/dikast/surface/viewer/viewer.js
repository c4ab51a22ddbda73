"use strict";
(() => {
  const every = 2000;
  const live = () => document.querySelector("#live[data-live]");
  const busy = () => document.hidden || document.activeElement?.closest("#live") || document.querySelector("#live :checked");
  const again = async () => {
    try {
      if (!busy()) {
        const answer = await fetch(location.href);
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        const rows = document.querySelector("#rows");
        const now = page.querySelector("#rows");
        if (answer.ok && rows && now && !rows.contains(document.activeElement)) rows.replaceWith(document.adoptNode(now));
        const found = page.querySelector("#live");
        if (answer.ok && found) live().replaceWith(document.adoptNode(found));
      }
    } catch {
      /* the server has stopped: what is shown stays */
    }
    if (live()) setTimeout(again, every);
  };
  if (live()) setTimeout(again, every);
  addEventListener("keydown", (event) => {
    if (event.target.closest("input,select,textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
    const rel = { j: "next", k: "prev" }[event.key];
    const to = rel ? document.querySelector(`a[rel=${rel}]`) : null;
    if (to) to.click();
    else if (event.key === "/") document.querySelector("input[type=search]")?.focus();
    else return;
    event.preventDefault();
  });
})();
