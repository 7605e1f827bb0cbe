// Before the first paint, so that a chosen theme does not flash. A file of its own: inline scripts are refused.
try {
  const theme = localStorage.getItem('lango-theme')
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme
} catch {
  // Storage may be closed to the page; the system's theme serves.
}
