// Package dashboards holds the dashboards that the Grafana app brings along, and
// tests of them and of the alert rules: that every query is valid and finds data.
// The files are written by the command in generate, which declares their panels.
// gtc-demo.json has the title and the uid of the demonstration that it was made for,
// which its documents, links and alert rules elsewhere name.
package dashboards

//go:generate go run ./generate
