package main

import (
	"slices"
	"strings"
)

type object = map[string]any

// A dashboard has the variables data source, namespace and lane, and those of its own.
type dashboard struct {
	uid, title, description string
	revision                int
	refresh, from           string
	variables               []object
	panels                  []panel
}

type panel struct {
	id                       int
	kind, title, description string
	at                       grid
	live                     bool // from the live channels
	lines                    []line
	targets                  []object // behind the queries of the lines
	unit, noValue            string
	defaults, options        object
	overrides                []object // behind the styles of the lines
	transformations          []object
	panels                   []panel // of a collapsed row
}

// grid is x, y, width and height; a dashboard is 24 wide.
type grid [4]int

// A line is a query, and how what it gives is drawn. Its ref is a letter where none is given.
type line struct {
	name, expr string
	style      []property
	ref        string
	settles    lanes // drawn dotted and gray while the step of a lane settles
}

// A property replaces a default of some fields.
type property struct {
	ID    string `json:"id"`
	Value any    `json:"value"`
}

var (
	prometheus = object{"type": "prometheus", "uid": "${datasource}"}
	grafana    = object{"type": "datasource", "uid": "grafana"}
)

func (d dashboard) json() object {
	return object{
		"id": nil, "uid": d.uid, "title": d.title, "description": d.description, "tags": []string{"kvbooth", "llm", "dynamo"},
		"schemaVersion": 42, "version": 1, "revision": d.revision, "editable": true, "graphTooltip": 1,
		"fiscalYearStartMonth": 0, "preload": false, "timezone": "browser", "weekStart": "", "liveNow": false,
		"refresh": d.refresh, "time": object{"from": d.from, "to": "now"},
		"timepicker":  object{"refresh_intervals": []string{"5s", "10s", "30s", "1m", "5m"}},
		"templating":  object{"list": append([]object{dataSource, namespace, lane}, d.variables...)},
		"annotations": object{"list": annotations},
		"links": []object{
			topLink("KV Booth", "dashboard", "d/kvbooth-booth?var-lane=${lane}"),
			topLink("Conversations", "doc", app+"conversations"+shownTime), topLink("Events", "bolt", app+"events"+shownTime),
			topLink("Stage view", "external link", app+"stage"),
			with(topLink("Dashboards", "dashboard", ""), object{
				"type": "dashboards", "tags": []string{"kvbooth"}, "asDropdown": true, "includeVars": true,
			}),
		},
		"panels": encoded(d.panels),
	}
}

// Links to the app, and to its pages of what happened at the time of a point, or of the whole dashboard.
const (
	app       = "a/kvbooth-inference-app/"
	pointTime = "?lane=${lane}&from=${__value.time}&to=${__value.time}"
	shownTime = "?lane=${lane}&from=${__from}&to=${__to}"
)

// topLink is one of the links at the top.
func topLink(title, icon, url string) object {
	return object{
		"type": "link", "title": title, "icon": icon, "url": url, "tags": []string{}, "asDropdown": false,
		"includeVars": false, "keepTime": false, "targetBlank": false, "tooltip": "",
	}
}

// whatHappened links a value to the conversations and events of a time. The conversations may be those of a status.
func whatHappened(time, status string) property {
	return property{"links", []object{
		{"title": "Conversations of this time", "url": app + "conversations" + time + status, "targetBlank": false},
		{"title": "Events of this time", "url": app + "events" + time, "targetBlank": false},
	}}
}

func encoded(panels []panel) []object {
	all := []object{}
	for _, p := range panels {
		all = append(all, p.json())
	}
	return all
}

func (p panel) json() object {
	all := object{
		"id": p.id, "type": p.kind, "title": p.title,
		"gridPos": object{"x": p.at[0], "y": p.at[1], "w": p.at[2], "h": p.at[3]},
	}
	if p.kind == "row" {
		all["collapsed"] = p.panels != nil
		all["panels"] = encoded(p.panels)
		return all
	}
	targets, overrides := []object{}, []object{}
	for i, l := range p.lines {
		if l.ref == "" {
			l.ref = string(rune('A' + i))
		}
		expr := l.expr
		if l.settles != (lanes{}) {
			settling := "(loadgen_settling{lane" + l.settles.matcher + "} == 1)"
			expr = "(" + l.expr + ") unless on (" + l.settles.on + ") " + settling
			// The dotted line goes on to the first point of the other one.
			targets = append(targets, query(l.ref+"_settling", l.name+", settling",
				"("+l.expr+") and on ("+l.settles.on+") max_over_time("+settling+"[5s:1s])"))
		}
		targets = append(targets, query(l.ref, l.name, expr))
		if l.style != nil {
			overrides = append(overrides, override(l.name, l.style...))
		}
	}
	source := prometheus
	if p.live {
		source = grafana
	}
	all["description"] = p.description
	all["datasource"] = source
	all["options"] = p.options
	all["targets"] = append(targets, p.targets...)
	if p.transformations != nil {
		all["transformations"] = p.transformations
	}
	defaults := with(object{}, p.defaults)
	if p.unit != "" {
		defaults["unit"] = p.unit
	}
	if p.noValue != "" {
		defaults["noValue"] = p.noValue
	}
	overrides = append(overrides, p.overrides...)
	if slices.ContainsFunc(p.lines, func(l line) bool { return l.settles != lanes{} }) {
		overrides = append(overrides, override("~.*, settling$", color(gray), dash(2, 5), fill(0), noSteps, outOfLegend))
	}
	all["fieldConfig"] = object{"defaults": defaults, "overrides": overrides}
	return all
}

// lanes are those of a line, and the label by which its series belong to one.
type lanes struct{ matcher, on string }

var (
	thisLane = lanes{matcher: `="$lane"`}
	eachLane = lanes{matcher: `=~".+"`, on: "lane"}
)

// with is an object with more fields, or others.
func with(base object, more ...object) object {
	all := object{}
	for _, each := range append([]object{base}, more...) {
		for key, value := range each {
			all[key] = value
		}
	}
	return all
}

// query asks for a range.
func query(ref, legend, expr string) object {
	return object{
		"refId": ref, "datasource": prometheus, "editorMode": "code", "expr": expr, "legendFormat": legend,
		"instant": false, "range": true,
	}
}

// instant asks for what is now.
func instant(ref, legend, expr string) object {
	return with(query(ref, legend, expr), object{"instant": true, "range": false})
}

// table asks for what is now as rows.
func table(ref, expr string) object {
	return with(instant(ref, "__auto", expr), object{"format": "table"})
}

// channel reads fields of a live channel.
func channel(name string, buffer int, fields ...string) []object {
	target := object{
		"refId": "A", "datasource": grafana, "queryType": "measurements",
		"channel": "plugin/kvbooth-inference-app/$lane/" + name,
		"filter":  object{"fields": append([]string{"time"}, fields...)},
	}
	if buffer > 0 {
		target["buffer"] = buffer
	}
	return []object{target}
}

// override is of the fields of a name, or of those that a pattern matches: "~" and the pattern.
func override(fields string, properties ...property) object {
	id := "byName"
	if pattern, ok := strings.CutPrefix(fields, "~"); ok {
		id, fields = "byRegexp", pattern
	}
	return object{"matcher": object{"id": id, "options": fields}, "properties": properties}
}

func fixed(color string) object { return object{"mode": "fixed", "fixedColor": color} }

func thresholds(color string, more ...object) object {
	return object{"mode": "absolute", "steps": append([]object{{"color": color, "value": nil}}, more...)}
}

func color(name string) property         { return property{"color", fixed(name)} }
func custom(name string, v any) property { return property{"custom." + name, v} }
func fill(percent int) property          { return custom("fillOpacity", percent) }
func width(pixels int) property          { return custom("lineWidth", pixels) }
func decimals(n int) property            { return property{"decimals", n} }
func unit(name string) property          { return property{"unit", name} }
func named(name string) property         { return property{"displayName", name} }
func dash(on, off int) property {
	return custom("lineStyle", object{"fill": "dash", "dash": []int{on, off}})
}

var (
	dashed = dash(10, 10)
	// outOfLegend leaves a line's name to the tooltip.
	outOfLegend = custom("hideFrom", object{"legend": true, "tooltip": false, "viz": false})
	noSteps     = custom("thresholdsStyle", object{"mode": "off"})
	// objective is how a limit is drawn.
	objective = []property{color("red"), fill(0), width(1), dashed}
)

// texts are the words in the place of values, in the order of a legend.
func texts(pairs ...string) property {
	words := object{}
	for i := 0; i < len(pairs); i += 2 {
		words[pairs[i]] = object{"text": pairs[i+1], "index": i / 2}
	}
	return property{"mappings", []object{{"type": "value", "options": words}}}
}

func transform(id string, options object) object { return object{"id": id, "options": options} }

// only has a transformation change the results of one query, or of those that a pattern matches.
func only(query string, t object) object {
	return with(t, object{"filter": object{"id": "byRefId", "options": query}})
}

func sortBy(field string) object {
	return transform("sortBy", object{"fields": object{}, "sort": []object{{"field": field, "desc": false}}})
}

func organize(exclude []string, index, rename object) object {
	excluded := object{}
	for _, name := range exclude {
		excluded[name] = true
	}
	return transform("organize", object{
		"excludeByName": excluded, "includeByName": object{}, "indexByName": index, "renameByName": rename,
	})
}

// times is a new field, a field times a factor.
func times(field, factor, alias string) object {
	return calculate(alias, "*", field, object{"fixed": factor})
}

func calculate(alias, operator, left string, right object) object {
	return transform("calculateField", object{
		"mode": "binary", "alias": alias, "replaceFields": false,
		"binary": object{"left": fieldNamed(left), "operator": operator, "right": right},
	})
}

func fieldNamed(name string) object {
	return object{"matcher": object{"id": "byName", "options": name}}
}

// steps takes the thresholds of some fields from a query's fields, each as the start of a color.
func steps(query string, applyTo object, fieldsAndColors ...string) object {
	mappings := []object{}
	for i := 0; i < len(fieldsAndColors); i += 2 {
		mappings = append(mappings, object{
			"fieldName": fieldsAndColors[i], "handlerKey": "threshold1", "reducerId": "lastNotNull",
			"handlerArguments": object{"threshold": object{"color": fieldsAndColors[i+1]}},
		})
	}
	return transform("configFromData", object{
		"configRefId": query, "applyTo": applyTo["matcher"], "mappings": mappings,
	})
}

const missed = "1.000000001" // a value that equals its objective meets it

// firstOf is the first alternative that has data: a pattern with each of the names.
func firstOf(pattern string, names ...string) string {
	var all []string
	for _, name := range names {
		all = append(all, strings.ReplaceAll(pattern, "NAME", name))
	}
	return strings.Join(all, " or ")
}

// inNamespace restricts a metric to the namespace that is chosen.
func inNamespace(metric string) string { return metric + `{namespace=~"$namespace"}` }

// perSecond is the sum of a counter's rates in the namespace over the last minute.
func perSecond(counter string) string { return "sum(rate(" + inNamespace(counter) + "[1m]))" }
