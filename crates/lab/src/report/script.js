// Schemes can be switched off and on; without scripts all are shown.
for (const button of document.querySelectorAll(".legend button")) {
  button.addEventListener("click", () => {
    const shown = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", shown);
    for (const mark of document.querySelectorAll("main .s" + button.dataset.s)) {
      mark.style.display = shown ? "" : "none";
    }
  });
}
