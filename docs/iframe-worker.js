/* Browsers give pages on a disk no workers: there the site's search runs in a hidden frame.
   The file's name keeps the `offline` plugin from fetching a script for this from another host. */
if (location.protocol === "file:") {
  window.Worker = class {
    constructor(address) {
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.documentElement.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => setTimeout(() => this.onmessage?.({ data }));
      this.ready = new Promise((done, failed) => {
        const script = inside.document.createElement("script");
        script.src = new URL(address, location.href).href;
        script.onload = () => done(inside);
        script.onerror = failed;
        inside.document.documentElement.append(script);
      });
      this.ready.catch((error) => this.onerror?.(error));
    }
    postMessage(data) {
      this.ready.then((inside) => inside.onmessage({ data }), () => {});
    }
    terminate() {
      this.frame.remove();
    }
  };
}
