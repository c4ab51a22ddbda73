"use strict";
(() => {
  const TOO_SOON = 400; // ms from when a question appears: what is pressed or clicked so soon was meant for the last one
  let sent = false;
  let since = performance.now();
  addEventListener("submit", (event) => {
    if (sent || performance.now() - since < TOO_SOON) event.preventDefault();
    else sent = true;
  });
  addEventListener("pageshow", (event) => {
    if (!event.persisted) return; // else the page is back from the browser's memory
    sent = false;
    since = performance.now();
  });

  const renewed = async () => {
    try {
      const page = new DOMParser().parseFromString(await (await fetch(location)).text(), "text/html");
      const found = page.querySelector("[data-live]");
      const shown = document.querySelector("[data-live]");
      if (found && found.innerHTML !== shown.innerHTML) shown.innerHTML = found.innerHTML;
    } catch {
      // the server is away: the figures stay as they were
    }
  };
  if (document.querySelector("[data-live]")) setInterval(renewed, 5000);

  const words = [...document.querySelectorAll("[data-words] input")];
  const step = (event) => {
    const at = words.indexOf(event.target);
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (at < 0 || !by) return false;
    const next = words[at + by];
    if (event.shiftKey) event.target.checked = true;
    if (next) {
      next.focus();
      if (event.shiftKey) next.checked = true;
    }
    return true;
  };

  const field = document.querySelector("[data-boxes]");
  const canvases = [];
  let now = -1; // the box that the arrows move
  const boxes = () =>
    field.value.split("\n").map((line) => line.trim().split(/[\s,]+/).map(Number)).filter((box) => box.length === 5);
  const kept = (all) => {
    field.value = all.map((box) => box.map((each) => Math.round(each * 10) / 10).join(" ")).join("\n");
    draw();
  };
  const draw = () => {
    for (const each of canvases) each.querySelectorAll("i").forEach((old) => old.remove());
    boxes().forEach(([picture, left, top, width, height], number) => {
      const mark = document.createElement("i");
      mark.className = number === now ? "now" : "";
      Object.assign(mark.style, { left: left + "%", top: top + "%", width: width + "%", height: height + "%" });
      canvases[picture - 1]?.append(mark);
    });
  };
  const held = (value, low, high) => Math.min(Math.max(value, low), high);
  const moved = (event) => {
    const all = boxes();
    const by = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[event.key];
    if (event.key === "b" && canvases.length) {
      const here = canvases.indexOf(document.activeElement);
      now = all.length;
      kept([...all, [Math.max(here, 0) + 1, 40, 40, 20, 20]]);
    } else if (now >= 0 && now < all.length && (event.key === "Delete" || event.key === "Backspace")) {
      all.splice(now, 1);
      now = all.length - 1;
      kept(all);
    } else if (now >= 0 && now < all.length && by) {
      const box = all[now];
      const first = event.shiftKey ? 3 : 1;
      for (const axis of [0, 1]) {
        const room = event.shiftKey ? 100 - box[1 + axis] : 100 - box[3 + axis];
        box[first + axis] = held(box[first + axis] + by[axis], event.shiftKey ? 1 : 0, room);
      }
      kept(all);
    } else return false;
    return true;
  };
  const share = (event, canvas) => {
    const frame = canvas.getBoundingClientRect();
    return [
      held(((event.clientX - frame.left) / frame.width) * 100, 0, 100),
      held(((event.clientY - frame.top) / frame.height) * 100, 0, 100),
    ];
  };
  if (field) {
    document.querySelectorAll("main a > img").forEach((picture, number) => {
      const canvas = document.createElement("span");
      canvas.dataset.canvas = "";
      canvas.tabIndex = 0;
      canvas.setAttribute("role", "group");
      canvas.setAttribute("aria-label", `Picture ${number + 1}: press b for a new box`);
      picture.draggable = false;
      picture.alt = picture.alt.replace(", opens in full size", "");
      picture.parentElement.replaceWith(canvas);
      canvas.append(picture);
      canvases.push(canvas);
      let from = null;
      canvas.addEventListener("pointerdown", (event) => {
        from = share(event, canvas);
        canvas.setPointerCapture(event.pointerId);
      });
      canvas.addEventListener("pointerup", (event) => {
        if (!from) return;
        const to = share(event, canvas);
        const [left, top] = [Math.min(from[0], to[0]), Math.min(from[1], to[1])];
        const [width, height] = [Math.abs(from[0] - to[0]), Math.abs(from[1] - to[1])];
        from = null;
        if (width < 1 || height < 1) return;
        now = boxes().length;
        kept([...boxes(), [number + 1, left, top, width, height]]);
      });
    });
    field.addEventListener("input", draw);
    draw();
  }

  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input:not([type=checkbox]),textarea,video")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (step(event) || (field && moved(event))) {
      event.preventDefault();
      return;
    }
    if (event.repeat || (event.key === "Enter" && event.target.closest("a,button"))) return;
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
