(() => {
  const box = document.getElementById("hover");
  const show = (event) => {
    const from = event.target.closest("[data-say]");
    box.hidden = !from;
    if (!from) return;
    box.textContent = from.dataset.say;
    const { width, height } = box.getBoundingClientRect();
    const x = Math.min(event.clientX + 14, innerWidth - width - 6);
    const y = event.clientY + 14 + height > innerHeight ? event.clientY - height - 10 : event.clientY + 14;
    box.style.left = Math.max(6, x) + "px";
    box.style.top = Math.max(6, y) + "px";
  };
  // The box takes the place of the browser's own, which comes late.
  document.querySelectorAll("[data-say]>title").forEach((title) => title.remove());
  document.addEventListener("pointermove", show);
  document.addEventListener("pointerdown", show);
  const root = document.documentElement;
  const dark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme:dark)").matches;
  document.getElementById("theme").addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; });
})();
