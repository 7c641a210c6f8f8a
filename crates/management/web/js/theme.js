// Sets the colours before anything is painted: a classic script, because modules come later.
try {
  const theme = JSON.parse(localStorage.getItem("leveret.theme"));
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // Without storage, or with something else in it, the browser's choice stands.
}
