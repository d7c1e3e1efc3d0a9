// Package grafana holds the Grafana app against a real Grafana in a real
// browser: the programs of the booth with Grafana around them, all on loopback, and
// the journeys of tests/browser through them, among them those of the load
// generator's own page. Its tests have the build tag grafana, since they need a
// Grafana, a Chromium and Node.js, and the app in dist.
package grafana
