// Package dashboards holds the dashboards that the Grafana app brings along, and
// tests of them and of the alert rules: that every query is valid and finds data.
// There is no code in it: booth.json, gtc-demo.json and benchmarks.json are what counts.
// The second has the title and the uid of the demonstration that it was made for, which
// its documents, links and alert rules elsewhere name.
package dashboards
