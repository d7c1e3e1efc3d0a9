package api_test

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

var update = flag.Bool("update", false, "rewrite src/client/limits.ts")

// Both ends of a range are in, and what lies beyond is out.
func TestCheckLimits(t *testing.T) {
	type body struct {
		Turns     api.Range     `json:"turns"`
		StartRate float64       `json:"start_rate"`
		Pause     time.Duration `json:"think_time"`
		Title     string        `json:"title"`
		Tokens    *int          `json:"max_tokens"`
		Mode      api.Mode      `json:"mode,omitempty"`
		Own       int           `json:"own"` // which the API does not know
	}
	fine := body{Turns: api.Range{Min: 1, Max: 50}, StartRate: 1000, Pause: time.Hour, Title: strings.Repeat("ü", 200), Tokens: new(131072), Mode: "kv", Own: -1}
	require.NoError(t, api.CheckLimits(fine))
	require.NoError(t, api.CheckLimits(body{Turns: api.Range{Min: 50, Max: 50}, StartRate: .001}))
	for want, change := range map[string]func(*body){
		"turns.min: 0 is not allowed: 1 to 50":                                             func(b *body) { b.Turns.Min = 0 },
		"turns.min: 6 is not allowed: 1 to 5":                                              func(b *body) { b.Turns = api.Range{Min: 6, Max: 5} },
		"turns.max: 51 is not allowed: 1 to 50":                                            func(b *body) { b.Turns.Max = 51 },
		"start_rate: 0 is not allowed: more than 0, up to 1000 conversations per second":   func(b *body) { b.StartRate = 0 },
		"start_rate: NaN is not allowed: more than 0, up to 1000 conversations per second": func(b *body) { b.StartRate = math.NaN() },
		"think_time: -1s is not allowed: 0 to 3600 seconds":                                func(b *body) { b.Pause = -time.Second },
		"max_tokens: 131073 is not allowed: 1 to 131072":                                   func(b *body) { b.Tokens = new(131073) },
		`mode: "random" is not allowed: one of kv, round_robin, least_loaded, unknown`:     func(b *body) { b.Mode = "random" },
		`title: "` + strings.Repeat("x", 40) + `"… is not allowed: at most 200 characters`: func(b *body) { b.Title = strings.Repeat("x", 201) },
	} {
		b := fine
		change(&b)
		require.EqualError(t, api.CheckLimits(b), want)
	}
}

// Each field of each body is held against the limit of its name: a limit's ends are allowed, and what lies beyond
// is not.
func TestBodiesAreHeldAgainstLimits(t *testing.T) {
	held := map[string]bool{}
	var fields func(prefix string, typ reflect.Type, check func(body string) error)
	fields = func(prefix string, typ reflect.Type, check func(body string) error) {
		for f := range typ.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			path, of := prefix+name, f.Type
			if of.Kind() == reflect.Pointer {
				of = of.Elem()
			}
			within := func(value string) error { return check(`{` + siblings(prefix, typ) + `"` + name + `":` + value + `}`) }
			if of.Kind() == reflect.Struct {
				fields(path+".", of, within)
				continue
			}
			l, limited := api.Limits[path]
			if !limited {
				continue
			}
			held[path] = true
			beyond := []string{fmt.Sprint(int(l.Min) - 1), fmt.Sprint(int(l.Max) + 1)}
			if l.Above {
				beyond = append(beyond, fmt.Sprint(l.Min))
			}
			if of.Kind() == reflect.String {
				beyond = []string{`"` + strings.Repeat("ü", int(l.Max)+1) + `"`}
				require.NoError(t, within(`"`+strings.Repeat("ü", int(l.Max))+`"`), path)
			}
			for _, value := range beyond {
				var field *api.FieldError
				require.ErrorAs(t, within(value), &field, "%s: %s", path, value)
				require.Equal(t, path, field.Field)
				require.Equal(t, l.String(), field.Allowed)
			}
		}
	}
	for _, body := range []any{
		new(api.StartRequest), new(api.StopRequest), new(api.WorkloadPatch), new(api.ModeRequest), new(api.SettingsPatch),
	} {
		fields("", reflect.TypeOf(body).Elem(), func(text string) error {
			v := reflect.New(reflect.TypeOf(body).Elem())
			require.NoError(t, json.Unmarshal([]byte(text), v.Interface()))
			return api.CheckLimits(v.Elem().Interface())
		})
	}
	require.Len(t, held, 16)
}

// siblings are the fields of a part of a body, which must all be there, as far as they have a limit.
func siblings(prefix string, typ reflect.Type) (fields string) {
	for f := range typ.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if l, ok := api.Limits[prefix+name]; ok && prefix != "" {
			fields += fmt.Sprintf("%q:%v,", name, l.Max)
		}
	}
	return fields
}

// requireLimit holds a number or a text of the document against a limit.
func requireLimit(t *testing.T, name string, l api.Limit, s *openapi3.Schema) {
	t.Helper()
	if s.Type.Is("array") {
		s = s.Items.Value
	}
	if s.Type.Is("string") {
		require.NotNil(t, s.MaxLength, name)
		require.EqualValues(t, l.Max, *s.MaxLength, name)
		return
	}
	least := cmp.Or(s.ExclusiveMin.Value, s.Min)
	require.NotNil(t, least, name)
	require.NotNil(t, s.Max, name)
	require.Equal(t, l.Min, *least, name)
	require.Equal(t, l.Max, *s.Max, name)
	require.Equal(t, l.Above, s.ExclusiveMin.Value != nil, name)
	if l.Default != 0 {
		require.EqualValues(t, l.Default, s.Default, name)
	}
}

// The OpenAPI document has the limits, and no others where the API checks them.
func TestDocumentHasLimits(t *testing.T) {
	doc := document(t)
	seen := map[string]bool{}
	holds := func(name string, s *openapi3.Schema) {
		seen[name] = true
		l, ok := api.Limits[name]
		if !ok {
			require.True(t, s.Min == nil && s.Max == nil && s.MaxLength == nil, "%s has a limit in the document alone", name)
			return
		}
		requireLimit(t, name, l, s)
	}
	var body func(prefix string, s *openapi3.Schema)
	body = func(prefix string, s *openapi3.Schema) {
		for name, p := range s.Properties {
			switch {
			case strings.HasSuffix(p.Ref, "/Range"): // which answers have, too, with other limits
				for _, end := range []string{".min", ".max"} {
					seen[prefix+name+end] = true
					require.Contains(t, string(api.OpenAPI), fmt.Sprintf("%s: {$ref: '%s', description: '%s'}", name, p.Ref, api.Limits[prefix+name+end]))
				}
			case p.Value.Type.Is("object"):
				body(prefix+name+".", p.Value)
			default:
				holds(prefix+name, p.Value)
			}
		}
	}
	for _, name := range []string{"StartRequest", "StopRequest", "WorkloadPatch", "ModeRequest", "SettingsPatch"} {
		body("", doc.Components.Schemas[name].Value)
	}
	for url, item := range doc.Paths.Map() {
		for _, call := range item.Operations() {
			for _, p := range call.Parameters {
				if name := p.Value.Name; name == "limit" {
					holds(path.Base(url)+".limit", p.Value.Schema.Value)
				} else if _, ok := api.Limits[name]; ok && p.Value.In == "query" {
					holds(name, p.Value.Schema.Value)
				}
			}
		}
	}
	for name := range api.Limits {
		elsewhere := strings.HasPrefix(name, "output_tokens.") || name == "think_time" || name == "opening_tokens" // of the configuration alone
		require.True(t, seen[name] != elsewhere, name)
	}
}

// The document has the limits of a trial, of a sweep and of a simulation, and the lengths of their lists.
func TestDocumentHasLimitsOfRequests(t *testing.T) {
	schemas := document(t).Components.Schemas
	for name, limits := range map[string]map[string]api.Limit{"SweepRequest": api.SweepLimits, "SimulationRequest": api.SimulationLimits} {
		properties := schemas[name].Value.Properties
		for path, l := range limits {
			name, part, deeper := strings.Cut(path, ".")
			require.Contains(t, properties, name)
			s := properties[name].Value
			switch {
			case !deeper:
				requireLimit(t, path, l, s)
			case name == "slo":
				requireLimit(t, path, l, s.Properties[part].Value)
			default: // of types that others have, too, with other limits
				require.Contains(t, s.Properties, part)
			}
		}
		for name, p := range properties {
			if p.Value.Type.Is("integer") || p.Value.Type.Is("number") {
				require.Contains(t, limits, name)
			}
		}
	}
	property := func(schema, name string) *openapi3.Schema { return schemas[schema].Value.Properties[name].Value }
	for _, tt := range []struct {
		want int
		have *uint64
	}{
		{api.MaxToken, property("SessionRequest", "token").MaxLength},
		{api.MaxLine, property("SweepBaselineRequest", "title").MaxLength},
		{api.MaxSweepModes, property("SweepRequest", "modes").MaxItems},
		{api.MaxSimulationModes, property("SimulationRequest", "modes").MaxItems},
		{api.MaxSweepLevels, property("SweepRequest", "levels").MaxItems},
		{api.MaxSimulationLevels, property("SimulationRequest", "levels").MaxItems},
		{api.MaxLogin, document(t).Components.Parameters["user"].Value.Schema.Value.MaxLength},
	} {
		require.EqualValues(t, tt.want, *tt.have)
	}
	require.EqualValues(t, api.MaxConcurrency, *property("BaselineRow", "concurrency").Max)
	require.Contains(t, property("SweepRequest", "levels").Description, "1,000 at most")
	require.Equal(t, 1_000, api.MaxSweepSpans)
	require.Contains(t, property("SimulationRequest", "levels").Description, "150,000")
	require.Equal(t, 150_000, api.MaxSimulationWork)
	require.Equal(t, property("Baseline", "name").Pattern, property("SweepBaselineRequest", "name").Pattern)
	require.ElementsMatch(t, api.SweepMetrics, property("SweepRequest", "primary").Enum)
}

// The front end's limits are these.
func TestTypeScriptHasLimits(t *testing.T) {
	const file = "../../src/client/limits.ts"
	var text strings.Builder
	text.WriteString("// Written by `go test ./sidecar/api -update`, as part of `npm run generate`.\n" + `
/** What a number may be, or how long a text in characters: from min to max, both included. */
export interface Limit {
  readonly min: number;
  readonly max: number;
  /** Min itself is too little. */
  readonly above?: boolean;
}

const table = {
`)
	for _, name := range slices.Sorted(maps.Keys(api.Limits)) {
		l, key, above := api.Limits[name], name, ""
		if strings.Contains(name, ".") {
			key = "'" + name + "'"
		}
		if l.Above {
			above = ", above: true"
		}
		fmt.Fprintf(&text, "  %s: { min: %v, max: %v%s },\n", key, l.Min, l.Max, above)
	}
	text.WriteString(`} satisfies Record<string, Limit>;

/** The path of a field, as the API's problems name it, or a parameter. */
export type LimitName = keyof typeof table;

/** What the API allows. Times are in seconds. */
export const limits: Record<LimitName, Limit> = table;
`)
	want := text.String()
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(want), 0o644))
	}
	got, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, want, string(got), "npm run generate writes it anew")
}
