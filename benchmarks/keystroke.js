async typed => {
  const box = document.querySelector("input[type=search]");
  const begun = performance.now();
  box.value = typed;
  box.dispatchEvent(new InputEvent("input", {bubbles: true}));
  await new Promise(painted => requestAnimationFrame(() => setTimeout(painted)));
  return performance.now() - begun;
}
