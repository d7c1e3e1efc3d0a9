package sweep

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"kvbooth/sidecar/api"
)

// A span keeps the largest queue time of each worker, if all workers are listed.
func TestCausesHaveQueueOfEachWorker(t *testing.T) {
	at := func(inflight float64, queues ...float64) second {
		c := api.Cluster{InflightMax: &inflight}
		for i := range queues {
			c.Workers = append(c.Workers, api.Worker{
				ID: string(rune('a' + i)), QueueSeconds: &queues[i], Inflight: new(inflight - float64(i)),
			})
		}
		return readCluster(time.Time{}, c)
	}
	c := sum([]second{at(58, .03, .03, .02), at(71, 1.36, .03, .03), at(64, .9, 1.48, .02)})
	assert.InDeltaSlice(t, []float64{1.48, 1.36, .03, 71, (57. + 70 + 63) / 3},
		[]float64{*c.QueueLargest, *c.QueueSecond, *c.QueueLeast, *c.InflightLargest, *c.InflightMean}, 1e-9)

	some := readCluster(time.Time{}, api.Cluster{
		Workers: []api.Worker{{ID: "a", QueueSeconds: new(1.)}}, AllWorkers: &api.AllWorkers{},
	})
	c = sum([]second{some})
	assert.Equal(t, []any{1., (*float64)(nil)}, []any{*c.QueueLargest, c.QueueSecond})
}
