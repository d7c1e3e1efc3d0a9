// Package dashboards holds the dashboards that the Grafana app brings along, and
// tests of them and of the alert rules: that every query is valid and finds data.
// There is no code in it: booth.json and gtc-demo.json are what counts.
package dashboards
