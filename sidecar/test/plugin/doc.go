// Package plugin tests the Grafana app's backend against the real load
// generator: its lane, its store and its server, with a model server of the
// tests' own as the target. It holds tests alone.
package plugin
