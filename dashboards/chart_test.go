package dashboards

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const chartFiles = "../deploy/chart/kvbooth/files"

// Helm delivers nothing from outside of a chart's folder, but follows links out of it: dashboards and
// provisioning are there by links, so that there is one of each.
func TestChartDeliversTheOriginals(t *testing.T) {
	originals := map[string]string{"provisioning/alerting.yaml": rulesFile, "provisioning/datasource.yaml": sourceFile}
	for _, file := range files {
		originals["dashboards/"+file] = file
	}
	for link, original := range originals {
		want, err := os.Stat(original)
		require.NoError(t, err)
		have, err := os.Stat(filepath.Join(chartFiles, link))
		require.NoError(t, err)
		assert.True(t, os.SameFile(want, have), "%s is a link to %s", link, original)
		// A ConfigMap holds 1 MiB, and kubectl apply keeps a copy of up to 256 KiB in an annotation.
		assert.Less(t, have.Size(), int64(256<<10), link)
	}
	there, err := filepath.Glob(chartFiles + "/*/*")
	require.NoError(t, err)
	assert.Len(t, there, len(originals), "nothing that is not one of the originals")
}

// promRule is a rule of Prometheus.
type promRule struct {
	Record, Alert, Expr, For string
	Labels, Annotations      map[string]string
}

func promRules(t *testing.T) (records, alerts []promRule) {
	groups := read[struct{ Groups []struct{ Rules []promRule } }](t, chartFiles+"/rules.yaml").Groups
	require.Len(t, groups, 2)
	return groups[0].Rules, groups[1].Rules
}

// The alert rules of the chart are Grafana's, in the form of Prometheus: the same
// expression held against the same threshold, for as long, in the same words.
func TestChartAlertRules(t *testing.T) {
	grafana := rules(t)
	_, alerts := promRules(t)
	require.Len(t, alerts, len(grafana))
	operator := map[string]string{"gt": ">", "lt": "<"}
	for i, want := range grafana {
		have := alerts[i]
		limit := want.Data[1].Model.Conditions[0].Evaluator
		require.Contains(t, operator, limit.Type)
		require.Len(t, limit.Params, 1)
		expr := "(" + want.Data[0].Model.Expr + ") " + operator[limit.Type] + " " + strconv.FormatFloat(limit.Params[0],
			'g', -1, 64)
		assert.Equal(t, parse(t, expr).String(), parse(t, have.Expr).String(), have.Alert)
		assert.Equal(t, want.For, have.For, have.Alert)
		assert.Equal(t, want.Labels, have.Labels, have.Alert)
		assert.Equal(t, map[string]string{
			"title": want.Title, "description": want.Annotations["description"],
			"summary": prometheusTemplate(want.Annotations["summary"]),
		}, have.Annotations, have.Alert)
		assert.Regexp(t, `^KVBooth[A-Za-z]+$`, have.Alert)
	}
}

// prometheusTemplate is a text of Grafana's as Prometheus fills it in.
func prometheusTemplate(text string) string {
	return strings.NewReplacer("{{ with $values.A }}", "", "{{ end }}", "", "{{ .Value", "{{ $value").Replace(text)
}

// Recording rules are named by what they are summed over, what they count and how, as
// Prometheus advises, and the labels that are left are those of the name.
func TestChartRecordingRules(t *testing.T) {
	records, _ := promRules(t)
	require.NotEmpty(t, records)
	name := regexp.MustCompile(`^(lane|namespace):[a-z_]+:(ratio_rate1m|rate1m)$`)
	for _, r := range records {
		match := name.FindStringSubmatch(r.Record)
		require.NotNil(t, match, r.Record)
		ratio := false
		parser.Inspect(parse(t, r.Expr), func(n parser.Node, _ []parser.Node) error {
			switch n := n.(type) {
			case *parser.AggregateExpr:
				assert.Equal(t, []string{match[1]}, n.Grouping, r.Record)
			case *parser.BinaryExpr:
				ratio = ratio || n.Op == parser.DIV
			case *parser.VectorSelector:
				assert.Regexp(t, `^(loadgen|dynamo_frontend)_`, n.Name, r.Record)
			}
			return nil
		})
		assert.Equal(t, match[2] == "ratio_rate1m", ratio, r.Record)
	}
}
