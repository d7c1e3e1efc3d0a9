package local

import (
	"testing"
	"time"
)

// FindGrafanaBeside finds a Grafana as if packages put it somewhere else.
var FindGrafanaBeside = findGrafana

// Unpack unpacks an archive into a folder.
var Unpack = unpack

// Patience makes downloads give up sooner until the test ends, and gives how long
// they wait for an answer otherwise.
func Patience(t *testing.T, answer, stalled time.Duration) (usual time.Duration) {
	usual = answersWithin
	before := stalledAfter
	answersWithin, stalledAfter = answer, stalled
	t.Cleanup(func() { answersWithin, stalledAfter = usual, before })
	return usual
}
