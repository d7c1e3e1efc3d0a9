package cluster

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// answering is a transport with one answer.
type answering string

func (a answering) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(string(a)))}, nil
}

// The snapshot of many workers lists the busiest and the idlest, sums up all, and stays small.
func TestManyWorkersAreCondensed(t *testing.T) {
	cluster := func(n int) api.Cluster {
		var samples []Sample
		for i := range n {
			labels := model.LabelSet{
				"worker_id":         model.LabelValue(strconv.FormatInt(int64(i), 16)),
				model.InstanceLabel: model.LabelValue(fmt.Sprintf("dynamo-worker-%04d:9090", i)),
			}
			gpu := model.LabelSet{"gpu": "0", "pod": "unrelated"}
			samples = append(samples,
				Sample{Name: workerInflight[0], Labels: labels, Value: float64(i % 1000)},
				Sample{Name: workerRequests[0], Labels: labels, Value: 2},
				Sample{Name: waiting[0], Labels: labels, Value: 1},
				Sample{Name: cacheUse[0], Labels: labels, Value: float64(i) / float64(n)},
				Sample{Name: gpuUtilization[0], Labels: gpu, Value: 50})
		}
		return summarize(t.Context(), samples, api.SpeculationOff)
	}
	few := cluster(mostListed)
	require.Len(t, few.Workers, mostListed)
	require.Nil(t, few.AllWorkers)

	c := cluster(2000)
	require.Equal(t, 2000, c.WorkerCount())
	near(t, 0, c.InflightMin, "of all")
	near(t, 999, c.InflightMax, "of all")
	near(t, 999*1000, c.Inflight, "of all")
	near(t, 2000, c.AllWorkers.Waiting, "of all")
	near(t, 4000, c.AllWorkers.Routed, "of all")
	require.Equal(t, &api.Spread{Min: 0, P10: 99, P50: 499, P90: 899, Max: 999}, c.AllWorkers.Inflight)
	require.InDelta(t, 0.5, c.AllWorkers.CacheUse.P50, 0.001)
	var listed []float64
	for _, w := range c.Workers {
		listed = append(listed, *w.Inflight)
	}
	slices.Sort(listed)
	require.Equal(t, []float64{0, 0, 1, 1, 2, 2, 3, 3, 996, 996, 997, 997, 998, 998, 999, 999}, listed)
	text, err := json.Marshal(c)
	require.NoError(t, err)
	require.Less(t, len(text), 10_000, "bytes of the snapshot")
}
