"use strict";
(() => {
  let sent = false;
  addEventListener("submit", (event) => {
    if (sent) event.preventDefault();
    sent = true;
  });
  addEventListener("pageshow", () => (sent = false));
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    if (event.target.closest("input")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    for (const each of document.querySelectorAll("[data-key]"))
      if (each.dataset.key === event.key.toLowerCase()) {
        event.preventDefault();
        each.click();
        return;
      }
    const focus = document.querySelector(`[data-focus="${CSS.escape(event.key)}"]`);
    if (focus) {
      event.preventDefault();
      focus.focus();
    }
  });
})();
