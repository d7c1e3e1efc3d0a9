// Package grafana tests the Grafana app with a real Grafana in a real browser: the programs of the booth with
// Grafana, all on loopback, and the journeys of tests/browser, among them those of the load generator's own page. Its
// tests have the build tag grafana, since they need Grafana, Chromium, Node.js, and the app in dist.
package grafana
