// Runs before the page is painted, so that it never shows in the wrong scheme first.
document.documentElement.classList.add('has-script');
try {
  const theme = localStorage.getItem('theme');
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
} catch {
  // Storage may be forbidden; the system's scheme serves.
}
