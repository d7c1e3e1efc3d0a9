package dashboards

import (
	"cmp"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"kvbooth/sidecar/api"
)

const (
	rulesFile  = "../provisioning/alerting/rules.yaml"
	appFile    = "../provisioning/plugins/kvbooth.yaml"
	sourceFile = "../provisioning/datasources/prometheus.yaml"
	manifest   = "../src/plugin.json"

	variableUID = "${datasource}"
	liveUID     = "grafana" // the data source of live channels, part of every Grafana
	sourceUID   = "kvbooth-prometheus"
)

var files = []string{"booth.json", "gtc-demo.json", "benchmarks.json", "routers.json"}

// The parts of a dashboard that the tests look at.
type (
	dashboard struct {
		UID, Title  string
		Revision    int
		Time        struct{ From string }
		Panels      []panel
		Templating  struct{ List []variable }
		Annotations struct {
			List []struct {
				Name, Expr string
				BuiltIn    int
				Target     target
			}
		}
	}
	source struct{ Type, UID string }
	panel  struct {
		ID                       int
		Type, Title, Description string
		Datasource               source
		Targets                  []target
		GridPos                  struct{ X, Y, W, H int }
		FieldConfig              fieldConfig
		Transformations          []transformation
		Panels                   []panel // of a row that is collapsed
		Options                  struct {
			ReduceOptions struct{ Calcs []string }
		}
	}
	fieldConfig struct {
		Defaults struct {
			Unit, NoValue string
		}
		Overrides []struct {
			Matcher    struct{ Options string }
			Properties []struct {
				ID    string
				Value any
			}
		}
	}
	transformation struct {
		ID      string
		Options struct {
			Regex, RenamePattern string
			RenameByName         map[string]string
		}
	}
	target struct {
		RefID, Expr, Channel, LegendFormat string
		Datasource                         source
		Filter                             struct{ Fields []string }
	}
	variable struct {
		Name, Type string
		Query      json.RawMessage
		IncludeAll bool
		AllValue   string
		Current    struct{ Value string }
	}
)

// alerting is the file of alert rules, as far as the tests look at it.
type alerting struct {
	Groups []struct {
		Folder string
		Rules  []rule
	}
	ContactPoints, Policies []any
}

type rule struct {
	UID, Title, Condition, For string
	NoDataState                string
	Labels, Annotations        map[string]string
	Data                       []struct {
		RefID, DatasourceUID string
		Model                struct {
			Expr       string
			Conditions []struct {
				Evaluator struct {
					Type   string
					Params []float64
				}
			}
		}
	}
}

// read parses a file of YAML or JSON.
func read[T any](t *testing.T, file string) (v T) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &v), file)
	return v
}

// load reads a dashboard, with the panels of a collapsed row behind those that are in sight.
func load(t *testing.T, file string) dashboard {
	d := read[dashboard](t, file)
	for _, p := range d.Panels {
		d.Panels = append(d.Panels, p.Panels...)
	}
	return d
}

func rules(t *testing.T) []rule {
	file := read[alerting](t, rulesFile)
	require.Len(t, file.Groups, 1)
	return file.Groups[0].Rules
}

const (
	oneNamespace  = "dynamo-workload"
	allNamespaces = ".*" // what the dashboards' All stands for
)

// variables are what the tests put in the place of a dashboard's variables.
var variables = choosing(oneNamespace)

// choosing replaces a dashboard's variables where the namespace is chosen.
func choosing(namespace string) *strings.Replacer {
	return strings.NewReplacer("$levels", "0", "$namespace", namespace, "$lane", "main", "$slo_ttft", "600ms",
		"$slo_tpot", "60ms")
}

// query is an expression with where it stands.
type query struct{ where, expr string }

// queries are all that Prometheus is asked, variables replaced.
func queries(t *testing.T) []query { return queriesWith(t, variables) }

// inAllNamespaces are those that depend on the choice of a namespace, for All.
func inAllNamespaces(t *testing.T) []query {
	all, one := queriesWith(t, choosing(allNamespaces)), queries(t)
	var depend []query
	for i, q := range all {
		if q != one[i] {
			depend = append(depend, q)
		}
	}
	return depend
}

func queriesWith(t *testing.T, variables *strings.Replacer) (all []query) {
	add := func(expr string, where ...string) {
		if expr != "" {
			all = append(all, query{strings.Join(where, ": "), variables.Replace(expr)})
		}
	}
	for _, file := range files {
		d := load(t, file)
		for _, p := range d.Panels {
			for _, q := range p.Targets {
				add(q.Expr, d.UID, p.Title, q.RefID)
			}
		}
		for _, a := range d.Annotations.List {
			add(a.Expr, d.UID, "annotation", a.Name)
		}
		for _, v := range d.Templating.List {
			add(v.expr(t), d.UID, "variable", v.Name)
		}
	}
	for _, r := range rules(t) {
		add(r.Data[0].Model.Expr, "alert", r.UID)
	}
	return all
}

// expr is the query of a variable that shows a query's result or the values of a label,
// "" for another one.
func (v variable) expr(t *testing.T) string {
	if v.Type != "query" {
		return ""
	}
	var q struct{ Query string }
	require.NoError(t, json.Unmarshal(v.Query, &q))
	if values := regexp.MustCompile(`^label_values\((.+), (\w+)\)$`).FindStringSubmatch(q.Query); values != nil {
		return "count by (" + values[2] + ") (" + values[1] + ")"
	}
	inner, ok := strings.CutPrefix(q.Query, "query_result(")
	require.True(t, ok, "a variable of another kind: %s", q.Query)
	return strings.TrimSuffix(inner, ")")
}

func parse(t *testing.T, expr string) parser.Expr {
	t.Helper()
	e, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	require.NoError(t, err, expr)
	return e
}

// selectors are the series that an expression reads.
func selectors(t *testing.T, expr string) (all []*parser.VectorSelector) {
	t.Helper()
	parser.Inspect(parse(t, expr), func(n parser.Node, _ []parser.Node) error {
		if s, ok := n.(*parser.VectorSelector); ok {
			all = append(all, s)
		}
		return nil
	})
	return all
}

// Every query is valid, with no variable that nothing replaces.
//
//   - Whatever is per lane is asked of the lane that is chosen, or of every lane by its label: with two lanes a figure
//     of neither is shown as one's. An alert covers all lanes.
//   - An alert reads the load generator's own figures alone: Grafana replaces no variables in a rule's query, so that
//     no rule could be restricted to the namespace of the serving cluster.
//   - A hit rate of unreported tokens is absent or NaN, never 0: each query divides by the reported tokens, or by the
//     number of reports.
func TestQueriesAreValid(t *testing.T) {
	all := queries(t)
	assert.Greater(t, len(all), 60)
	for _, q := range all {
		assert.NotRegexp(t, `\$\{?[a-z_]`, q.expr, "%s: a variable that nothing replaces", q.where)
		isAlert := strings.HasPrefix(q.where, "alert: ")
		for _, s := range selectors(t, q.expr) {
			perLane := strings.HasPrefix(s.Name, "loadgen_") && !strings.HasPrefix(s.Name, "loadgen_client_")
			named := slices.ContainsFunc(s.LabelMatchers, func(m *labels.Matcher) bool { return m.Name == "lane" })
			assert.True(t, isAlert || named || !perLane, "%s: %s names no lane", q.where, s)
			assert.True(t, !isAlert || strings.HasPrefix(s.Name, "loadgen_"), "%s reads %s", q.where, s)
		}
		if strings.Contains(q.expr, "loadgen_cached_tokens_total") {
			assert.NotContains(t, q.expr, "loadgen_input_tokens_total", q.where)
		}
		if strings.Contains(q.expr, "dynamo_frontend_cached_tokens_sum") {
			assert.Contains(t, q.expr, `/ rate(dynamo_frontend_cached_tokens_count{namespace=~"dynamo-workload"}[1m]) <= 1`, q.where)
		}
	}
}

// The demo's queries all stand in the panels that are named, alone or as a part; the
// choice of a lane may be added. Its one namespace is one choice of the dashboard's.
func TestDemoQueries(t *testing.T) {
	d := load(t, "gtc-demo.json")
	text, err := os.ReadFile("testdata/demo.promql")
	require.NoError(t, err)
	_, text2, _ := strings.Cut(string(text), "\n\n") // the heading
	var titles []string
	n := 0
	for line := range strings.Lines(text2) {
		line = strings.TrimSpace(line)
		if names, ok := strings.CutPrefix(line, "# "); ok {
			titles = strings.Split(names, ", ")
		} else if line != "" {
			n++
			assert.True(t, asked(t, d, titles, parse(t, line).String()), "%v does not ask %s", titles, line)
		}
	}
	assert.Equal(t, 13, n)
	assert.Equal(t, "GTC Demo: Optimized LLM Inference", d.Title, "a promise")
	assert.Equal(t, "now-30m", d.Time.From)
}

// asked says whether one of the panels asks what is wanted.
func asked(t *testing.T, d dashboard, titles []string, wanted string) (found bool) {
	for _, p := range d.Panels {
		if !slices.Contains(titles, variables.Replace(p.Title)) {
			continue
		}
		for _, q := range p.Targets {
			if q.Expr == "" {
				continue
			}
			e := parse(t, variables.Replace(q.Expr))
			parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
				if s, ok := n.(*parser.VectorSelector); ok {
					s.LabelMatchers = slices.DeleteFunc(s.LabelMatchers, func(m *labels.Matcher) bool { return m.Name == "lane" })
					for i, m := range s.LabelMatchers {
						if m.Type == labels.MatchRegexp && slices.Equal(m.SetMatches(), []string{oneNamespace}) {
							s.LabelMatchers[i] = labels.MustNewMatcher(labels.MatchEqual, m.Name, oneNamespace)
						}
					}
				}
				return nil
			})
			parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
				found = found || n != nil && n.String() == wanted
				return nil
			})
		}
	}
	return found
}

// legend is how a series is called: its labels in the format, then every renaming, as
// Grafana does it.
func (p panel) legend(t *testing.T, format string, labels ...string) string {
	t.Helper()
	name := strings.NewReplacer(labels...).Replace(format)
	for _, change := range p.Transformations {
		if change.ID == "renameByRegex" {
			pattern := regexp.MustCompile(`\$(\d)`).ReplaceAllString(change.Options.RenamePattern, "$${$1}")
			name = regexp.MustCompile(change.Options.Regex).ReplaceAllString(name, pattern)
		}
	}
	return name
}

// Every panel with a baseline draws each phase as a line of its own, whose name says
// the phase and whether it was recorded or measured here.
func TestReferenceLines(t *testing.T) {
	drawn := map[string]bool{}
	for _, p := range load(t, "gtc-demo.json").Panels {
		for _, q := range p.Targets {
			metric := regexp.MustCompile(`loadgen_baseline_\w+`).FindString(q.Expr)
			if metric == "" {
				continue
			}
			drawn[metric] = true
			for state, want := range map[string]string{
				"round_robin/off": "phase 1: round-robin", "kv/off": "phase 2: KV",
				"kv/draft": "phase 3a: KV, draft model", "kv/eagle3": "phase 3b: KV, EAGLE-3",
				"round_robin/not_recorded": "round-robin", "kv/not_recorded": "KV",
				"least_loaded/off": "least-loaded, off", "round_robin/draft": "round-robin, draft",
			} {
				mode, speculation, _ := strings.Cut(state, "/")
				for _, source := range []string{"Recorded", "Measured"} {
					name := p.legend(t, q.LegendFormat, "{{source}}", source, "{{mode}}", mode, "{{speculation}}", speculation)
					assert.Regexp(t, "^"+source+"( p50)? "+want+"$", name, p.Title)
				}
			}
		}
	}
	for _, metric := range []string{"ttft_seconds", "tpot_seconds", "itl_seconds", "latency_seconds", "kv_hit_ratio"} {
		assert.True(t, drawn["loadgen_baseline_"+metric], metric)
	}
}

func TestStructure(t *testing.T) {
	want := map[string]string{
		"booth.json": "kvbooth-booth", "gtc-demo.json": "gtc-demo",
		"benchmarks.json": "kvbooth-benchmarks", "routers.json": "kvbooth-routers",
	}
	for _, file := range files {
		d := load(t, file)
		assert.Equal(t, want[file], d.UID)
		assert.Positive(t, d.Revision, "by which Grafana sees that a new version of the app has another one")
		defaults := map[string]string{}
		for _, v := range d.Templating.List {
			defaults[v.Name] = v.Current.Value
		}
		assert.Subset(t, defaults, map[string]string{"datasource": sourceUID, "namespace": "$__all", "lane": "main"})
		for _, a := range d.Annotations.List {
			assert.True(t, a.BuiltIn != 0 || a.Expr == a.Target.Expr, a.Name)
		}
		checkPanels(t, d)
	}
}

func checkPanels(t *testing.T, d dashboard) {
	ids, taken := map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		assert.False(t, ids[p.ID], "%s: id %d is taken", p.Title, p.ID)
		ids[p.ID] = true
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				assert.Less(t, at[0], 24, p.Title)
				assert.Empty(t, taken[at], "%s lies on another panel", p.Title)
				taken[at] = p.Title + " "
			}
		}
		if p.Type == "row" {
			continue
		}
		assert.GreaterOrEqual(t, strings.Count(p.Description+" ", ". "), 2,
			"%s: what it shows, and where that comes from", p.Title)
		assert.Contains(t, []string{variableUID, liveUID}, p.Datasource.UID, p.Title)
		for _, q := range p.Targets {
			assert.Equal(t, p.Datasource.UID, q.Datasource.UID, p.Title)
			assert.NotEqual(t, q.Expr == "", q.Channel == "", "%s %s: a query, or a channel", p.Title, q.RefID)
		}
		if !strings.HasPrefix(p.Type, "kvbooth-") {
			checkFields(t, p)
		}
	}
}

// channels of the app's backend.
var channels = []string{"kpi", "ttft-by-turn", "workers", "state"}

// checkFields looks at how a core panel shows its figures.
func checkFields(t *testing.T, p panel) {
	assert.NotEmpty(t, p.Targets, p.Title)
	assert.NotEmpty(t, p.FieldConfig.Defaults.NoValue, "%s: what it says without data", p.Title)
	units := p.FieldConfig.Defaults.Unit != ""
	for _, o := range p.FieldConfig.Overrides {
		for _, property := range o.Properties {
			units = units || property.ID == "unit"
		}
	}
	if calcs := p.Options.ReduceOptions.Calcs; calcs != nil {
		assert.Equal(t, []string{"last"}, calcs, "%s would show an old number after a loss", p.Title)
	}
	for _, q := range p.Targets {
		if q.Channel != "" {
			name, ok := strings.CutPrefix(q.Channel, "plugin/kvbooth-inference-app/$lane/")
			assert.True(t, ok && slices.Contains(channels, name), "%s: %s", p.Title, q.Channel)
			units = units || name == "state" // words
		}
	}
	assert.True(t, units, "%s shows numbers without a unit", p.Title)
}

// figuresOf are the figures that series show, by the beginning of the series' names, by their keys in [api.Figures].
var figuresOf = map[string]string{
	"loadgen_ttft_":                                          "ttft",
	"loadgen_baseline_level_ttft_":                           "ttft",
	"loadgen_baseline_ttft_":                                 "ttft",
	"loadgen_tpot_":                                          "tpot",
	"loadgen_baseline_level_tpot_":                           "tpot",
	"loadgen_baseline_tpot_":                                 "tpot",
	"loadgen_itl_":                                           "itl",
	"loadgen_baseline_level_itl_":                            "itl",
	"loadgen_baseline_itl_":                                  "itl",
	"loadgen_latency_":                                       "latency",
	"loadgen_baseline_level_latency_":                        "latency",
	"loadgen_baseline_latency_":                              "latency",
	"dynamo_frontend_request_duration_seconds":               "latency",
	"dynamo_frontend_requests_total":                         "requests_per_second",
	"loadgen_output_tokens_total":                            "output_tokens_per_second",
	"dynamo_frontend_output_tokens_total":                    "output_tokens_per_second",
	"loadgen_cached_tokens_total":                            "kv_hit_ratio",
	"loadgen_kv_hit_ratio":                                   "kv_hit_ratio",
	"loadgen_output_tokens_per_second":                       "output_tokens_per_second",
	"loadgen_shadow_hit_ratio":                               "kv_hit_ratio",
	"loadgen_baseline_level_kv_hit_ratio":                    "kv_hit_ratio",
	"loadgen_baseline_level_output_tokens":                   "output_tokens_per_second",
	"loadgen_baseline_level_requests_per":                    "requests_per_second",
	"loadgen_baseline_kv_hit_ratio":                          "kv_hit_ratio",
	"dynamo_frontend_cached_tokens":                          "kv_hit_ratio",
	"dynamo_component_router_kv_hit_rate_sum":                "kv_predicted_ratio",
	"dynamo_component_router_kv_best_eligible_cached_prefix": "kv_achievable_ratio",
	"dynamo_frontend_queued_requests":                        "queued",
	"dynamo_frontend_inflight_requests":                      "inflight",
	"loadgen_inflight_requests":                              "inflight",
	"loadgen_errors_total":                                   "error_ratio",
	"loadgen_active_conversations":                           "concurrency",
	"trtllm_spec_decode_num_accepted_tokens":                 "acceptance_rate",
	"trtllm_spec_decode_acceptance_length":                   "tokens_per_step",
	"DCGM_FI_DEV_FB_USED":                                    "gpu_memory_bytes",
}

// otherNames are what the demonstration calls figures, in the panels that its documents name.
var otherNames = map[string]string{
	"Request Rate": "requests_per_second", "Output Tokens/s": "output_tokens_per_second", "Inflight": "inflight",
	"Latency": "latency", "KV Cache": "kv_hit_ratio",
}

// A figure has one name on all dashboards and in numbers.md: that of [api.Figures]. It stands in the title of a panel,
// in the legend, or above the column of a table.
func TestFiguresHaveOneName(t *testing.T) {
	seen := map[*api.Figure]bool{}
	for _, file := range files {
		d := load(t, file)
		for _, p := range d.Panels {
			for _, q := range p.Targets {
				if q.Expr == "" || q.LegendFormat == "objective" {
					continue
				}
				f := figureOf(t, variables.Replace(q.Expr))
				if f == nil || otherNames[p.Title] == f.Key || otherNames[q.LegendFormat] == f.Key {
					continue
				}
				seen[f] = true
				shown := p.Title + "\n" + q.LegendFormat
				if column := p.column(q.RefID); column != "" {
					shown = column
				}
				assert.Regexp(t, f.Name+"|"+f.InSentence(), shown, "%s: %s %s", file, p.Title, q.RefID)
			}
			for name, f := range liveNames(p) {
				seen[f] = true
				assert.Regexp(t, "^"+f.Name+"(, 60 s)?$", name, p.Title)
			}
		}
	}
	numbers, err := os.ReadFile("../docs/numbers.md")
	require.NoError(t, err)
	var rows []string
	for _, row := range regexp.MustCompile(`(?m)^\| ([^|]+) \|`).FindAllStringSubmatch(string(numbers), -1) {
		rows = append(rows, strings.Split(row[1], ", ")...)
	}
	for f := range seen {
		assert.True(t, slices.Contains(rows, f.InSentence()), "numbers.md has no row %q", f.InSentence())
	}
	assert.Greater(t, len(seen), 12)
}

// column is the name of a table's column with the values of a query, "" in another panel.
func (p panel) column(ref string) string {
	if p.Type != "table" {
		return ""
	}
	for _, change := range p.Transformations {
		if name := change.Options.RenameByName["Value #"+ref]; name != "" {
			return name
		}
	}
	return ""
}

// figureOf is the figure that a query shows, by the first series that it reads, or nil.
func figureOf(t *testing.T, expr string) *api.Figure {
	for _, s := range selectors(t, expr)[:1] {
		for series, key := range figuresOf {
			if strings.HasPrefix(s.Name, series) {
				f := api.FigureOf(key)
				require.NotNil(t, f, key)
				return f
			}
		}
	}
	return nil
}

// liveNames are the figures of a panel on the channel of key figures by the names that they are shown with.
func liveNames(p panel) map[string]*api.Figure {
	renamed := map[string]string{}
	for _, o := range p.FieldConfig.Overrides {
		for _, property := range o.Properties {
			if property.ID == "displayName" {
				renamed[o.Matcher.Options], _ = property.Value.(string)
			}
		}
	}
	all := map[string]*api.Figure{}
	for _, q := range p.Targets {
		for _, f := range api.Figures {
			if strings.HasSuffix(q.Channel, "/kpi") && f.Frame.Name != "" && slices.Contains(q.Filter.Fields, f.Frame.Name) {
				all[cmp.Or(renamed[f.Frame.Title], f.Frame.Title)] = f
			}
		}
	}
	return all
}

// What is delivered with the app, and only so.
func TestIncludes(t *testing.T) {
	got := map[string]string{}
	plugin := read[struct {
		Includes []struct{ Type, Name, Path string }
	}](t, manifest)
	for _, include := range plugin.Includes {
		if include.Type == "dashboard" {
			got[include.Path] = include.Name
		}
	}
	want := map[string]string{}
	for _, file := range files {
		want["dashboards/"+file] = load(t, file).Title
	}
	assert.Equal(t, want, got)
	found, err := filepath.Glob("*.json")
	require.NoError(t, err)
	assert.ElementsMatch(t, files, found)
}

func TestAlertRules(t *testing.T) {
	file := read[alerting](t, rulesFile)
	assert.Empty(t, file.ContactPoints)
	assert.Empty(t, file.Policies)
	require.Len(t, file.Groups, 1)
	assert.Equal(t, "KV Booth", file.Groups[0].Folder)

	panels := map[string]map[int]bool{}
	for _, file := range files {
		d := load(t, file)
		panels[d.UID] = map[int]bool{}
		for _, p := range d.Panels {
			panels[d.UID][p.ID] = true
		}
	}
	seen := map[string]bool{}
	for _, r := range file.Groups[0].Rules {
		assert.False(t, seen[r.UID], r.UID)
		seen[r.UID] = true
		checkRule(t, r, panels)
	}
	assert.Equal(t, []string{
		"kvbooth-acceptance", "kvbooth-client", "kvbooth-errors", "kvbooth-hit-rate", "kvbooth-queue",
		"kvbooth-tpot-slo", "kvbooth-ttft-slo",
	}, slices.Sorted(maps.Keys(seen)))
}

func checkRule(t *testing.T, r rule, panels map[string]map[int]bool) {
	assert.Equal(t, "OK", r.NoDataState, "%s: silence is no alarm", r.UID)
	assert.NotEmpty(t, r.Annotations["summary"], r.UID)
	assert.GreaterOrEqual(t, strings.Count(r.Annotations["description"]+" ", ". "), 2,
		"%s: what is wrong, and what to do", r.UID)
	var panel int
	require.NoError(t, json.Unmarshal([]byte(r.Annotations["__panelId__"]), &panel), r.UID)
	assert.True(t, panels[r.Annotations["__dashboardUid__"]][panel], "%s: a panel that does not exist", r.UID)
	require.Len(t, r.Data, 2, r.UID)
	assert.Equal(t, "$KVBOOTH_PROMETHEUS_UID", r.Data[0].DatasourceUID, "a Grafana's own data source has another uid")
	assert.Equal(t, r.Data[1].RefID, r.Condition)

	assert.Equal(t, "0s", r.For, "%s: Grafana marks the panel where a rule is pending", r.UID)

	// Silent while stopped or settling, and until both have lasted: the outermost operators keep what has both.
	guards := 0
	expr := parse(t, r.Data[0].Model.Expr)
	for {
		e, ok := expr.(*parser.BinaryExpr)
		if !ok || e.Op != parser.LAND {
			break
		}
		right := e.RHS.String()
		if regexp.MustCompile(
			`\(min_over_time\(loadgen_workload_running\[.+\) == 1|\(max_over_time\(loadgen_settling\[.+\) == 0`,
		).MatchString(right) {
			guards++
		}
		expr = e.LHS
	}
	assert.Equal(t, 2, guards, r.UID)
}

// The app is switched on with the address of the load generator. A Grafana that has a default data source keeps it: the
// project's own does not make itself one, and the dashboards find it by its uid. Where there is none of that uid,
// Grafana takes the first Prometheus.
func TestProvisioning(t *testing.T) {
	type app struct {
		Type                     string
		Disabled                 bool
		JSONData, SecureJSONData map[string]string
	}
	assert.Equal(t, []app{{
		Type: read[struct{ ID string }](t, manifest).ID, JSONData: map[string]string{"sidecarUrl": "$KVBOOTH_SIDECAR_URL"},
		SecureJSONData: map[string]string{"token": "$KVBOOTH_SIDECAR_URL $KVBOOTH_SIDECAR_TOKEN"},
	}}, read[struct{ Apps []app }](t, appFile).Apps)

	type source struct {
		UID, Type string
		IsDefault bool
	}
	assert.Equal(t, []source{{UID: sourceUID, Type: "prometheus"}},
		read[struct{ Datasources []source }](t, sourceFile).Datasources)
}

// ofCluster finds what an expression reads of the serving cluster, save what it takes
// away from something that has a namespace.
func ofCluster(t *testing.T, expr string, each func(s *parser.VectorSelector, namespace *labels.Matcher)) {
	parser.Inspect(parse(t, expr), func(n parser.Node, path []parser.Node) error {
		s, ok := n.(*parser.VectorSelector)
		if !ok || strings.HasPrefix(s.Name, "loadgen_") || s.Name == "" { // the variable's own query has no name
			return nil
		}
		if above, ok := path[len(path)-1].(*parser.BinaryExpr); ok && above.Op == parser.LUNLESS && above.RHS == n {
			return nil
		}
		for _, m := range s.LabelMatchers {
			if m.Name == "namespace" || m.Name == "exported_namespace" {
				each(s, m)
				return nil
			}
		}
		assert.Fail(t, "any namespace", "%s", s)
		return nil
	})
}

// The dashboards offer the namespaces that Prometheus has, and All, which takes series
// without one too.
func TestNamespaces(t *testing.T) {
	for _, file := range files {
		d := load(t, file)
		i := slices.IndexFunc(d.Templating.List, func(v variable) bool { return v.Name == "namespace" })
		require.GreaterOrEqual(t, i, 0, file)
		v := d.Templating.List[i]
		assert.Equal(t, "query", v.Type)
		assert.True(t, v.IncludeAll, file)
		assert.Equal(t, allNamespaces, v.AllValue, file)
	}
	matches := func(q query, want map[string]bool) (seen int) {
		ofCluster(t, q.expr, func(s *parser.VectorSelector, namespace *labels.Matcher) {
			seen++
			for value, match := range want {
				assert.Equal(t, match, namespace.Matches(value), "%s: %q by %s", q.where, value, s)
			}
		})
		return seen
	}
	all, one := 0, 0
	for _, q := range inAllNamespaces(t) {
		all += matches(q, map[string]bool{"": true, oneNamespace: true, "another": true})
	}
	for _, q := range queries(t) {
		if !strings.HasPrefix(q.where, "alert: ") {
			one += matches(q, map[string]bool{"": false, oneNamespace: true, "another": false})
		}
	}
	assert.Greater(t, all, 40)
	assert.Equal(t, all, one, "what reads the cluster depends on the choice")
}
