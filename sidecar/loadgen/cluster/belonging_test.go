package cluster

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// Labels identify the worker that a series belongs to, whichever page has it, and each worker counts once.
func TestSeriesOfSeveralWorkersOnOnePage(t *testing.T) {
	series := func(labels string, running int) string {
		return fmt.Sprintf("vllm:num_requests_running{%s} %d 1790000000000\nvllm:num_requests_waiting{%[1]s} 1\n", labels,
			running)
	}
	federated := series(`instance="10.0.0.1:8000",pod="a",job="vllm"`, 2) + series(`instance="10.0.0.2:8000",pod="b",`+
		`job="vllm"`, 3) + series(`instance="10.0.0.3:8000",pod="c",job="vllm"`, 4)
	pods := series(`pod="a"`, 2) + series(`pod="b"`, 3)
	routed := "process_start_time_seconds 9\n" + series(`server="http://10.0.0.1:8000"`, 3) +
		series(`server="http://10.0.0.2:8000/v1"`, 4)
	named := series(`server="http://engine-1:8000"`, 3) + series(`server="http://engine-2:8000"`, 4)
	three := "10.0.0.1:8000 10.0.0.2:8000 10.0.0.3:8000"
	two := "10.0.0.1:8000 10.0.0.2:8000"
	first, second := enginePage(3, 21.5), enginePage(4, 31.5)
	both := func(relay string) scene {
		return scene{"frontend:8000": relay, "10.0.0.1:8000": first, "10.0.0.2:8000": second}
	}
	for name, tt := range map[string]struct {
		pages   scene
		workers string
		total   float64
	}{
		"federated":                    {scene{"frontend:8000": federated}, three, 9},
		"federated, on a further page": {scene{"prom:9090": federated}, three, 9},
		"a gateway that names pods":    {scene{"frontend:8000": pods}, "a b", 5},
		"a router that names servers":  {scene{"frontend:8000": routed}, two, 7},
		"the router and its engines":   {both(routed), two, 7},
		"the router and one engine":    {scene{"frontend:8000": routed, "10.0.0.1:8000": first}, two, 7},
		"engines with other addresses": {both(named), two, 7},
		"federated beside an own page": {scene{"frontend:8000": federated, "10.0.0.2:8000": series("", 3)}, three, 9},
		"a label with the own address": {
			scene{"10.0.0.1:8000": series(`instance="10.0.0.1:8000"`, 2), "10.0.0.2:8000": first}, two, 5,
		},
		"pods and their pages by address": {both(pods), two, 7},
	} {
		t.Run(name, func(t *testing.T) {
			ids := func(c api.Cluster) string {
				var all []string
				for _, w := range c.Workers {
					all = append(all, w.ID)
				}
				slices.Sort(all)
				return strings.Join(all, " ")
			}
			c := watched(t, api.SpeculationOff, tt.pages)
			require.Equal(t, tt.workers, ids(c))
			near(t, tt.total, c.Inflight, "in flight")
			for scrape, label := range map[string]model.LabelName{"renamed": "exported_", "honored": ""} {
				if label == "" && (strings.Contains(name, "pods and") || strings.Contains(name, "own page")) {
					continue // only the pods are left, and nothing says which page is whose
				}
				var all scraped
				for host, page := range tt.pages {
					all = append(all, scraped{{labels("j", host), rename(page, string(label))}}...)
				}
				c = summarize(t.Context(), query(t, "", all), api.SpeculationOff)
				near(t, tt.total, c.Inflight, "Prometheus, labels "+scrape)
			}
		})
	}
}

// rename puts a prefix before the labels that a scrape without honor_labels renames.
func rename(page, prefix string) string {
	return strings.NewReplacer(`{instance=`, "{"+prefix+"instance=", `,pod=`, ","+prefix+"pod=",
		`{pod=`, "{"+prefix+"pod=", `,job=`, ","+prefix+"job=").Replace(page)
}

// Metrics of another model than that of the turns are left out. Where no metric names the model, all stay.
func TestOtherModelsAreLeftOut(t *testing.T) {
	frontend := func(name string, inflight, cached, input int) string {
		return fmt.Sprintf(strings.NewReplacer("F_", "dynamo_frontend_", "{}", "{model=%[1]q}").Replace(
			"F_inflight_requests{} %[2]d\nF_cached_tokens_sum{} %[3]d\nF_cached_tokens_count{} %[3]d\n"+
				"F_input_sequence_tokens_sum{} %[4]d\n"),
			name, inflight, cached, input)
	}
	engine := func(name string, running int) string {
		return fmt.Sprintf("vllm:num_requests_running{model_name=%q} %d\n", name, running)
	}
	read := func(wanted string, reading int) api.Cluster {
		pages := func(n int) scene {
			return scene{
				"frontend:8000": frontend("m", 2, 75*n, 100*n) + frontend("other", 50, 0, 1000*n),
				"one:8081":      workerPage("a", 2) + engine("m", 2),
				"two:8081":      workerPage("b", 50) + engine("other", 50),
			}
		}
		h, c := &history{}, api.Cluster{}
		for i := range reading {
			s := pages(i + 1)
			direct, err := NewDirect("http://frontend:8000", []string{"http://one:8081", "http://two:8081"},
				&http.Client{Transport: s})
			require.NoError(t, err)
			samples, err := direct.Fetch(t.Context())
			require.NoError(t, err)
			samples = h.add(start.Add(time.Duration(i)*time.Second), samples)
			c = summarize(t.Context(), ofModel(samples, wanted), api.SpeculationOff)
		}
		return c
	}
	for _, name := range []string{"m", "M"} {
		c := read(name, 2)
		require.Len(t, c.Workers, 1, name)
		near(t, 2, c.Inflight, name)
		near(t, .75, c.KV.HitRatio, name)
	}
	for _, name := range []string{"", "an alias"} {
		c := read(name, 2)
		require.Len(t, c.Workers, 2, name)
		near(t, 52, c.Inflight, name)
	}
	samples := ofModel([]Sample{
		{Name: "dynamo_frontend_inflight_requests", Labels: model.LabelSet{"model": "adapter"}},
		{Name: "vllm:num_requests_running", Labels: model.LabelSet{"model_name": "base"}},
	}, "adapter")
	require.Len(t, samples, 2, "an engine may have another name for the model than its frontend")
}
