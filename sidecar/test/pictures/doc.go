// Package pictures makes the pictures of README and docs: of a demo with two lanes, in a real
// Grafana and a real browser, by tests/browser/pictures.mjs. Its test has the build tag
// pictures; it tests nothing and takes about 40 minutes, most of them for a trial.
package pictures
