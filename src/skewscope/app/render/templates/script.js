(function () {
  "use strict";
  var tip = document.getElementById("tip");
  function place(x, y) {
    var w = tip.offsetWidth, h = tip.offsetHeight;
    tip.style.left = Math.max(6, Math.min(x + 12, innerWidth - w - 6)) + "px";
    tip.style.top = (y + h + 24 > innerHeight ? y - h - 10 : y + 16) + "px";
  }
  function target(e) { return e.target.closest ? e.target.closest("[data-tip]") : null; }
  document.addEventListener("pointermove", function (e) {
    var t = target(e);
    tip.classList.toggle("on", !!t);
    if (t) { tip.textContent = t.getAttribute("data-tip"); place(e.clientX, e.clientY); }
  });
  document.addEventListener("focusin", function (e) {
    var t = target(e);
    if (!t) { tip.classList.remove("on"); return; }
    var r = t.getBoundingClientRect();
    tip.textContent = t.getAttribute("data-tip"); tip.classList.add("on"); place(r.left, r.bottom);
  });
  document.addEventListener("keydown", function (e) { if (e.key === "Escape") tip.classList.remove("on"); });
  document.addEventListener("click", function (e) {
    var b = e.target.closest ? e.target.closest("[data-copy]") : null;
    if (!b || !navigator.clipboard) return;
    navigator.clipboard.writeText(b.getAttribute("data-copy")).then(function () {
      b.classList.add("done");
      document.getElementById("live").textContent = "Copied: " + b.getAttribute("data-copy");
      setTimeout(function () { b.classList.remove("done"); }, 1200);
    }, function () {});
  });
})();
