// Package pictures makes the pictures of README and docs: of a demo with one lane and of one with two, in a real
// Grafana and a real browser, by tests/browser/pictures.mjs. Its test has the build tag pictures; it tests nothing
// and takes some minutes for each demo.
package pictures
