//go:build grafana

package grafana

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/booth/local"
)

// The parts of a dashboard with its queries.
type (
	dashboard struct {
		UID        string
		Panels     []panel
		Templating struct {
			List []struct {
				Name, AllValue string
				Current        struct{ Value any }
			}
		}
	}
	panel struct {
		Type, Title string
		Targets     []target
		Panels      []panel // of a row that is collapsed
		FieldConfig struct{ Defaults struct{ NoValue string } }
	}
	target struct {
		RefID, Expr, Channel, Format string
		Instant                      bool
	}
)

// checkDashboards waits until each panel of all dashboards has data, from the same queries through Grafana and the
// same live channels. The panels in without must show the given reason, which must be true.
func (e *existing) checkDashboards(without map[string]string) {
	e.t.Helper()
	e.checkReasons(slices.Collect(maps.Values(without)))
	channels := map[string]bool{"plugin/" + local.AppID + "/main/snapshot": true} // of our own panels
	empty := map[string]panel{}
	for _, uid := range []string{"kvbooth-booth", "gtc-demo", "kvbooth-benchmarks", "kvbooth-routers"} {
		d := e.dashboard(uid)
		for _, p := range d.Panels {
			for _, q := range p.Targets {
				if q.Channel != "" {
					channels[d.fill(q.Channel)] = true
				}
			}
			for i := range p.Targets {
				p.Targets[i].Expr = d.fill(p.Targets[i].Expr)
			}
			empty[uid+": "+p.Title] = p
		}
	}
	maps.DeleteFunc(empty, func(_ string, p panel) bool {
		return !slices.ContainsFunc(p.Targets, func(q target) bool { return q.Expr != "" })
	})
	wait.Eventually(e.t, "every panel shows data or a true reason", func() (any, bool) {
		var reasons []error
		for name, p := range empty {
			got, err := e.query(p.Targets)
			require.NoError(e.t, err, name)
			if len(got) > 0 {
				delete(empty, name)
			} else if shown := p.FieldConfig.Defaults.NoValue; shown != without[name] {
				reasons = append(reasons, fmt.Errorf("%s shows %q", name, shown))
			}
		}
		return errors.Join(reasons...), len(reasons) == 0
	})
	for name := range without {
		assert.Contains(e.t, empty, name, "it shows data")
	}
	e.checkLive(channels)
}

// checkReasons verifies the reasons of panels without data with queries to Prometheus.
func (e *existing) checkReasons(reasons []string) {
	e.t.Helper()
	proofs := map[string]string{
		"no DCGM exporter is scraped":                 `sum(up{job="dcgm-exporter"}) == 0`,
		"not scraped, or not reported by this engine": `min(up{job="dynamo-worker"}) == 1`, // scraped, but not reported
	}
	for _, reason := range reasons {
		wait.Eventually(e.t, "it is true that "+reason, func() (any, bool) {
			got, err := e.query([]target{{RefID: "A", Expr: proofs[reason], Instant: true}})
			return fmt.Sprint(got, err), err == nil && got["A"]
		})
	}
}

// dashboard returns a dashboard of the app, with the panels of collapsed rows.
func (e *existing) dashboard(uid string) (d dashboard) {
	e.t.Helper()
	wait.Eventually(e.t, "the dashboard "+uid+" is there", func() (any, bool) {
		var answer struct{ Dashboard dashboard }
		err := e.ask("GET", "/api/dashboards/uid/"+uid, nil, &answer)
		d = answer.Dashboard
		return err, err == nil
	})
	for _, p := range d.Panels {
		d.Panels = append(d.Panels, p.Panels...)
	}
	return d
}

// variable matches a variable in a query, such as $lane, ${lane} or ${lane:regex}.
var variable = regexp.MustCompile(`\$(?:(\w+)|\{(\w+)(?::\w+)?\})`)

// fill replaces the variables by the values of a user who follows the page.
func (d dashboard) fill(text string) string {
	chosen := map[string]string{}
	for _, v := range d.Templating.List {
		value, _ := v.Current.Value.(string)
		switch {
		case v.AllValue != "":
			value = v.AllValue
		case v.Name == "namespace":
			value = "dynamo"
		}
		chosen[v.Name] = value
	}
	return variable.ReplaceAllStringFunc(text, func(found string) string {
		match := variable.FindStringSubmatch(found)
		if value, ok := chosen[match[1]+match[2]]; ok {
			return value
		}
		return found
	})
}

// query queries the existing data source through Grafana, as a panel does, and returns which queries gave a number.
func (e *existing) query(targets []target) (map[string]bool, error) {
	var queries []map[string]any
	for _, q := range targets {
		if q.Expr != "" {
			queries = append(queries, map[string]any{
				"refId": q.RefID, "expr": q.Expr, "instant": q.Instant, "range": !q.Instant, "format": q.Format,
				"datasource": map[string]string{"type": "prometheus", "uid": theirs}, "intervalMs": 1000, "maxDataPoints": 600,
			})
		}
	}
	var answer struct {
		Results map[string]struct {
			Error  string
			Frames []frame
		}
	}
	err := e.ask("POST", "/api/ds/query", map[string]any{"from": "now-5m", "to": "now", "queries": queries}, &answer)
	got := map[string]bool{}
	for name, result := range answer.Results {
		if result.Error != "" {
			err = errors.Join(err, fmt.Errorf("%s: %s", name, result.Error))
		}
		if slices.ContainsFunc(result.Frames, frame.hasNumber) {
			got[name] = true
		}
	}
	return got, err
}

// frame is a data frame.
type frame struct {
	Schema struct{ Fields []struct{ Type string } }
	Data   struct{ Values [][]any }
}

// hasNumber reports whether a number field has a value.
func (f frame) hasNumber() bool {
	for i, values := range f.Data.Values {
		isNumber := i < len(f.Schema.Fields) && f.Schema.Fields[i].Type == "number"
		if isNumber && slices.ContainsFunc(values, func(v any) bool { return v != nil }) {
			return true
		}
	}
	return false
}

// hasFigure reports whether a message has a figure: a snapshot always, a frame if it has a field beside its time.
func hasFigure(message json.RawMessage) bool {
	var snapshot api.Snapshot
	if json.Unmarshal(message, &snapshot) == nil && len(snapshot.Lanes) > 0 {
		return true
	}
	var f frame
	return json.Unmarshal(message, &f) == nil && len(f.Data.Values) > 1 &&
		slices.ContainsFunc(f.Data.Values[1:],
			func(values []any) bool { return slices.ContainsFunc(values, func(v any) bool { return v != nil }) })
}

// checkLive subscribes to channels as panels do, and waits for a message on each.
func (e *existing) checkLive(channels map[string]bool) {
	e.t.Helper()
	request, err := http.NewRequestWithContext(e.t.Context(), "GET", e.grafana, nil)
	require.NoError(e.t, err)
	request.SetBasicAuth("admin", password)
	request.Header.Set("Origin", e.grafana)
	live := strings.Replace(e.grafana, "http", "ws", 1) + "/api/live/ws"
	conn, response, err := websocket.DefaultDialer.DialContext(e.t.Context(), live, request.Header)
	require.NoError(e.t, err)
	defer conn.Close()
	defer response.Body.Close()
	require.NoError(e.t, conn.SetReadDeadline(time.Now().Add(wait.Limit)))
	require.NoError(e.t, conn.WriteMessage(websocket.TextMessage, []byte(`{"id": 1, "connect": {"name": "test"}}`)))
	id := 1
	for channel := range channels {
		id++
		subscribe := fmt.Appendf(nil, `{"id": %d, "subscribe": {"channel": "1/%s"}}`, id, channel)
		require.NoError(e.t, conn.WriteMessage(websocket.TextMessage, subscribe))
	}
	for len(channels) > 0 {
		_, text, err := conn.ReadMessage()
		require.NoError(e.t, err, "no message on %v", slices.Sorted(maps.Keys(channels)))
		for line := range strings.Lines(string(text)) {
			var message struct {
				Error json.RawMessage
				Push  struct {
					Channel string
					Pub     struct{ Data json.RawMessage }
				}
			}
			require.NoError(e.t, json.Unmarshal([]byte(line), &message))
			require.Nil(e.t, message.Error, "a channel is refused: %s", line)
			if line = strings.TrimSpace(line); line == "{}" { // a ping
				require.NoError(e.t, conn.WriteMessage(websocket.TextMessage, []byte("{}")))
			}
			if hasFigure(message.Push.Pub.Data) {
				delete(channels, strings.TrimPrefix(message.Push.Channel, "1/"))
			}
		}
	}
}
