package local

// FindGrafanaBeside is FindGrafana with another folder in place of that of the packages.
var FindGrafanaBeside = findGrafana

// Unpack unpacks an archive into a folder.
var Unpack = unpack
