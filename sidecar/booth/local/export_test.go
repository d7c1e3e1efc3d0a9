package local

// FindGrafanaBeside finds a Grafana as if packages put it somewhere else.
var FindGrafanaBeside = findGrafana

// Unpack unpacks an archive into a folder.
var Unpack = unpack
