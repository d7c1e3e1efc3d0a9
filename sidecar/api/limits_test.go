package api_test

import (
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

var update = flag.Bool("update", false, "rewrite limits.ts, figures.ts and workload.ts of src/client")

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
	const rate = "more than 0, up to 1000 conversations per second"
	long := strings.Repeat("x", 201)
	fine := body{
		Turns: api.Range{Min: 1, Max: 50}, StartRate: 1000, Pause: time.Hour, Title: strings.Repeat("ü", 200),
		Tokens: new(131072), Mode: "kv", Own: -1,
	}
	require.NoError(t, api.CheckLimits(fine))
	require.NoError(t, api.CheckLimits(body{Turns: api.Range{Min: 50, Max: 50}, StartRate: .001}))
	for _, tt := range []struct {
		change func(*body)
		want   string
	}{
		{func(b *body) { b.Turns.Min = 0 }, "turns.min: 0 is not allowed: 1 to 1000"},
		{func(b *body) { b.Turns = api.Range{Min: 6, Max: 5} }, "turns.min: 6 is not allowed: 1 to 5"},
		{func(b *body) { b.Turns.Max = 1001 }, "turns.max: 1001 is not allowed: 1 to 1000"},
		{func(b *body) { b.StartRate = 0 }, "start_rate: 0 is not allowed: " + rate},
		{func(b *body) { b.StartRate = math.NaN() }, "start_rate: NaN is not allowed: " + rate},
		{func(b *body) { b.Pause = -time.Second }, "think_time: -1s is not allowed: 0 to 3600 seconds"},
		{func(b *body) { b.Tokens = new(131073) }, "max_tokens: 131073 is not allowed: 1 to 131072 tokens"},
		{func(b *body) { b.Mode = "random" }, `mode: "random" is not allowed: one of kv, round_robin, least_loaded, unknown`},
		{func(b *body) { b.Title = long }, `title: "` + long[:40] + `"… is not allowed: at most 200 characters`},
	} {
		b := fine
		tt.change(&b)
		require.EqualError(t, api.CheckLimits(b), tt.want)
	}
}

// The bounds that other packages use are those of the fields.
func TestBoundsAreThoseOfFields(t *testing.T) {
	for name, most := range map[string]float64{
		"concurrency": api.MaxConcurrency, "turns.max": api.MaxTurns, "max_tokens": api.MaxTokens,
		"openings": api.MaxOpenings, "title": api.MaxLine,
	} {
		require.Equal(t, most, api.Limits[name].Max, name)
	}
}

// requireGenerated requires that a file of the front end has the text that follows from the API, and writes it with
// -update.
func requireGenerated(t *testing.T, file, text string) {
	t.Helper()
	want := "// Written by `go test ./sidecar/api -update`, as part of `npm run generate`.\n" + text
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(want), 0o644))
	}
	got, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, want, string(got), "npm run generate writes it anew")
}

// The front end's limits are these.
func TestTypeScriptHasLimits(t *testing.T) {
	const file = "../../src/client/limits.ts"
	var text strings.Builder
	text.WriteString(`
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
		fmt.Fprintf(&text, "  %s: { min: %v, max: %.0f%s },\n", key, l.Min, l.Max, above)
	}
	text.WriteString(`} satisfies Record<string, Limit>;

/** The path of a field, as the API's problems name it, or a parameter. */
export type LimitName = keyof typeof table;

/** What the API allows. Times are in seconds. */
export const limits: Record<LimitName, Limit> = table;
`)
	requireGenerated(t, file, text.String())
}
