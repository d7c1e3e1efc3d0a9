// Package page holds the load generator's own page in a real browser against
// a booth: the journeys of tests/browser/page. Its tests have the build tag page,
// since they need a Chromium, Node.js, and the page in the load generator.
package page
