// Package dashboards holds the dashboards that the Grafana app brings along, and
// tests of them and of the alert rules: that every query is valid and finds data.
// There is no code in it: booth.json, gtc-demo.json and benchmarks.json are what counts.
// The second is called “KV-cache-aware routing” on the screens; file and uid are still
// those of the demonstration it was made for, so that links and alert rules elsewhere go
// on working.
package dashboards
