// Package page tests the load generator's own page in a real browser with a booth: the journeys of
// tests/browser/page. Its tests have the build tag page, since they need Chromium, Node.js, and a load generator with
// its page.
package page
