package local

// FindGrafanaBeside finds a Grafana as if packages put it somewhere else.
var FindGrafanaBeside = findGrafana
