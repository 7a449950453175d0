// Says at once, and also on a touch, what the browser's own titles say after a while. Without it
// nothing is lost.
(() => {
  const tip = document.getElementById("tip");
  const show = (event, text) => {
    tip.textContent = text;
    tip.hidden = false;
    const x = Math.min(event.clientX + 14, document.documentElement.clientWidth - tip.offsetWidth - 8);
    tip.style.left = Math.max(8, x) + "px";
    tip.style.top = Math.max(8, event.clientY - tip.offsetHeight - 12) + "px";
  };
  for (const title of document.querySelectorAll("svg title")) {
    const text = title.textContent;
    const mark = title.parentNode;
    title.remove();
    mark.addEventListener("pointermove", (event) => show(event, text));
    mark.addEventListener("pointerdown", (event) => show(event, text));
    mark.addEventListener("pointerleave", () => { tip.hidden = true; });
  }
  addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });
})();
