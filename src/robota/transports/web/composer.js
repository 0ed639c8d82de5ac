// Where prompts are written: completion behind `/` and `@`, images, what waits, and Stop.

import { $, button, el, icon } from "./dom.js";
import { exact, oneLine } from "./text.js";

const LARGEST = 8_000_000;
const PICTURES = /^image\/(png|jpeg|gif|webp)$/;

const readImage = (file) =>
  new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });

export class Composer {
  constructor({ submit, stop, steer, cancelQueue, commands, files, fail }) {
    Object.assign(this, { submit, stop, steer, commands, files, fail });
    this.input = $("prompt");
    this.images = [];
    this.list = $("completions");
    this.options = [];
    this.chosen = -1;
    this.input.addEventListener("input", () => (this.grow(), this.complete()));
    this.input.addEventListener("keydown", (event) => this.press(event));
    this.input.addEventListener("blur", () => setTimeout(() => this.close(), 150));
    this.input.addEventListener("paste", (event) => this.take(event.clipboardData, event));
    const zone = document.body;
    zone.addEventListener("dragover", (event) => event.dataTransfer?.types.includes("Files") && (event.preventDefault(), zone.classList.add("dropping")));
    zone.addEventListener("dragleave", (event) => event.relatedTarget || zone.classList.remove("dropping"));
    zone.addEventListener("drop", (event) => (zone.classList.remove("dropping"), this.take(event.dataTransfer, event)));
    $("send").addEventListener("click", () => (this.running && !this.filled ? stop() : this.send()));
    $("stop").addEventListener("click", () => stop());
    $("cancel-queue").addEventListener("click", () => cancelQueue());
    this.grow();
  }

  get filled() {
    return Boolean(this.input.value.trim() || this.images.length);
  }

  grow() {
    this.input.style.height = "auto";
    this.input.style.height = `${Math.min(this.input.scrollHeight, 8 * 23 + 20)}px`;
    $("send").disabled = !this.filled;
  }

  async send(steering = false) {
    const text = this.input.value;
    if (!this.filled || this.sending) return;
    const images = this.images;
    this.sending = true;
    this.close();
    try {
      await (steering && this.running ? this.steer(text) : this.submit(text, images.map(({ mediaType, data }) => ({ mediaType, data }))));
      if (this.input.value === text) this.input.value = "";
      this.images = [];
      this.showImages();
    } catch (error) {
      this.fail(error);
    } finally {
      this.sending = false;
      this.grow();
    }
  }

  press(event) {
    if (event.isComposing) return;
    const { key } = event;
    const listed = !this.list.hidden;
    if (listed && (key === "ArrowDown" || key === "ArrowUp")) {
      event.preventDefault();
      this.choose((this.chosen + (key === "ArrowDown" ? 1 : -1) + this.options.length) % this.options.length);
    } else if (listed && (key === "Tab" || (key === "Enter" && !event.shiftKey && this.chosen >= 0))) {
      event.preventDefault();
      this.accept(this.options[Math.max(0, this.chosen)]);
    } else if (listed && key === "Escape") {
      event.preventDefault();
      event.stopPropagation();
      this.close();
    } else if (key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      this.send(event.ctrlKey || event.metaKey);
    }
  }

  // --- images -------------------------------------------------------------------------------------------

  async take(given, event) {
    const files = [...(given?.files || [])].filter((file) => PICTURES.test(file.type));
    if (!files.length) return;
    event.preventDefault();
    for (const file of files) {
      if (file.size > LARGEST) this.fail(new Error(`${file.name} is larger than ${LARGEST / 1e6} MB.`));
      else {
        const url = await readImage(file);
        this.images.push({ mediaType: file.type, data: url.slice(url.indexOf(",") + 1), url, name: file.name });
      }
    }
    this.showImages();
  }

  showImages() {
    const drop = (image) => ((this.images = this.images.filter((each) => each !== image)), this.showImages());
    $("attached").replaceChildren(...this.images.map((image) => el("li", el("img", { src: image.url, alt: image.name || "image" }), button("no", `Remove ${image.name || "image"}`, () => drop(image)))));
    this.grow();
  }

  // --- completion ---------------------------------------------------------------------------------------

  async complete() {
    const before = this.input.value.slice(0, this.input.selectionStart);
    const found = /^\/([\w:-]*)$/.exec(before) || /(?:^|\s)@([^\s@]*)$/.exec(before);
    if (!found) return this.close();
    const asked = (this.asked = before);
    const slash = before.startsWith("/") && found.index === 0 && !found[0].includes("@");
    const given = slash ? await this.commands() : await this.files(found[1]);
    if (this.asked !== asked || document.activeElement !== this.input) return;
    const word = found[1].toLowerCase();
    const fits = slash ? given.filter(({ name }) => name.toLowerCase().includes(word)).sort((a, b) => b.name.startsWith(word) - a.name.startsWith(word)) : given;
    this.offer(fits.slice(0, 8).map((each) => (slash ? { text: `/${each.name} `, label: `/${each.name}`, note: each.description, size: found[1].length + 1 } : { text: `@${each.path} `, label: each.path, note: "", size: found[1].length + 1 })));
  }

  offer(options) {
    if (!options.length) return this.close();
    this.options = options;
    this.list.replaceChildren(
      ...options.map((option, at) =>
        el("li", { role: "option", id: `option-${at}`, onmousedown: (event) => (event.preventDefault(), this.accept(option)) }, el("span.label", exact(option.label)), el("span.note", oneLine(option.note, 120))),
      ),
    );
    this.list.hidden = false;
    this.input.setAttribute("aria-expanded", "true");
    this.choose(0);
  }

  choose(at) {
    this.chosen = at;
    [...this.list.children].forEach((item, index) => item.setAttribute("aria-selected", String(index === at)));
    this.list.children[at]?.scrollIntoView({ block: "nearest" });
    this.input.setAttribute("aria-activedescendant", `option-${at}`);
  }

  accept(option) {
    const at = this.input.selectionStart;
    this.input.setRangeText(option.text, at - option.size, at, "end");
    this.close();
    this.grow();
  }

  close() {
    this.asked = null;
    this.list.hidden = true;
    this.chosen = -1;
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
  }

  // --- what goes on -------------------------------------------------------------------------------------

  show({ running, queued, doing, frozen }) {
    this.running = running;
    $("stop").hidden = !running || frozen;
    $("send").hidden = running && !this.filled;
    $("send").replaceChildren(icon("send"));
    $("ghost").hidden = !queued;
    if (queued) $("ghost-words").textContent = exact(queued).slice(0, 300);
    $("doing").textContent = doing;
    $("doing").hidden = !doing;
    this.input.placeholder = frozen ? "Looking back: press End for now" : running ? "Write the next prompt; Ctrl-Enter tells the model right now" : "Ask for a change, / for commands, @ for files";
  }
}
