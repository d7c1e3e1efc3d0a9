package report

import (
	"fmt"
	"path/filepath"
	"strconv"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/report/chart"
	"kvbooth/sidecar/loadgen/shadow"
	"kvbooth/sidecar/trace"
)

// Shadow is the report on the replay of a trace: the cache hits that other routers would have had on its requests.
type Shadow struct {
	Program     string         `json:"program"`
	Trace       ShadowTrace    `json:"trace"`
	Assumptions []string       `json:"assumptions"`
	Setting     ShadowSetting  `json:"setting"`
	Policies    []ShadowPolicy `json:"policies"`
	Account     *ShadowAccount `json:"account,omitempty"`
	Choices     *ShadowChoices `json:"choices,omitempty"`
	// ByCapacity varies the blocks of a cache, and ByWorkers the number of workers. All else is as in Setting.
	ByCapacity []ShadowPoint `json:"by_capacity,omitempty"`
	ByWorkers  []ShadowPoint `json:"by_workers,omitempty"`
}

// ShadowTrace describes the trace and the lines that were read.
type ShadowTrace struct {
	File       string   `json:"file"`
	Form       string   `json:"form"`
	Requests   int64    `json:"requests"`
	Seconds    float64  `json:"seconds"`         // from the first request to the last end
	Arrivals   float64  `json:"arrival_seconds"` // from the first request to the last one
	Lines      int64    `json:"lines"`
	Unused     int64    `json:"unused_lines"`
	Notes      []string `json:"unused_notes,omitempty"` // reasons for the first unused lines
	Disordered int64    `json:"disordered_lines"`
	Cut        bool     `json:"cut"`
}

// ShadowSetting is the size of the caches.
type ShadowSetting struct {
	Workers     int `json:"workers"`
	Blocks      int `json:"blocks"` // capacity of one worker's cache
	BlockTokens int `json:"block_tokens"`
}

// ShadowPolicy holds the figures of one routing policy.
type ShadowPolicy struct {
	Policy        string  `json:"policy"`
	Requests      int64   `json:"requests"`
	PromptTokens  int64   `json:"prompt_tokens"`
	HitTokens     int64   `json:"hit_tokens"`
	HitRatio      float64 `json:"hit_ratio"`
	PrefillTokens int64   `json:"prefill_tokens"`
	// Spread is the most less the fewest requests in progress on a worker, averaged over time. It is absent for "best".
	Spread  *float64 `json:"inflight_spread,omitempty"`
	Crowded int64    `json:"crowded_requests"` // requests without room in their worker's cache
}

// ShadowAccount compares the modeled with the measured hit ratio, for the router's real choices. Error is their
// difference.
type ShadowAccount struct {
	Requests      int64   `json:"requests"`
	MeasuredRatio float64 `json:"measured_ratio"`
	ModeledRatio  float64 `json:"modelled_ratio"`
	Error         float64 `json:"error"`
}

// ShadowChoices counts the turns for which the model of the router chose the router's worker. Agreement is over the
// clear turns, Coverage is their share.
type ShadowChoices struct {
	Turns     int     `json:"turns"`
	Agreed    int     `json:"agreed"`
	Tied      int     `json:"tied"`
	Clear     int     `json:"clear"`
	Agreement float64 `json:"clear_agreement"`
	Coverage  float64 `json:"clear_coverage"`
}

// ShadowPoint holds the hit ratios of all policies for one size of the caches.
type ShadowPoint struct {
	Workers int                `json:"workers"`
	Blocks  int                `json:"blocks"`
	Hit     map[string]float64 `json:"hit_ratio"` // by policy
}

// MaxCacheError is the limit of [ShadowAccount.Error]. Above it, the figures of other policies are not reliable.
const MaxCacheError = .03

// NewShadow returns the report on a replay, without assumptions and curves.
func NewShadow(program, file string, s trace.Summary, f shadow.Figures, blockTokens int) *Shadow {
	r := &Shadow{
		Program: program,
		Trace: ShadowTrace{
			File: filepath.Base(file), Form: string(s.Form), Requests: s.Requests, Seconds: f.At.Seconds(),
			Arrivals: s.Arrivals.Seconds(), Lines: s.Lines,
			Unused: s.Unused, Disordered: s.Disordered, Cut: s.Cut,
		},
		Setting: ShadowSetting{f.Workers, f.Capacity, blockTokens},
	}
	for _, n := range s.Notes {
		r.Trace.Notes = append(r.Trace.Notes, n.Error())
	}
	for _, p := range f.Policies {
		if p.Policy.Kind == shadow.Actual && p.Total.Requests == 0 {
			continue // the real workers are unknown
		}
		row := ShadowPolicy{
			Policy: p.Policy.Name, Requests: p.Total.Requests, PromptTokens: p.Total.PromptTokens, HitTokens: p.Total.HitTokens,
			HitRatio: p.Total.HitRatio(), PrefillTokens: p.Total.PrefillTokens(), Crowded: p.Total.Crowded,
		}
		if p.Policy.Kind != shadow.Best {
			row.Spread = new(p.Total.Spread())
		}
		r.Policies = append(r.Policies, row)
	}
	if a := f.Account; a.Requests > 0 {
		r.Account = &ShadowAccount{a.Requests, a.MeasuredRatio(), float64(a.HitTokens) / float64(a.PromptTokens), a.Error()}
	}
	if c := f.Choices; c.Turns > 0 {
		r.Choices = &ShadowChoices{c.Turns, c.Agreed, c.Tied, c.Clear, c.Agreement(), c.Coverage()}
	}
	return r
}

// NewShadowPoint returns the point of the curves for a replay with o.
func NewShadowPoint(o shadow.Options, f shadow.Figures) ShadowPoint {
	p := ShadowPoint{Workers: len(o.Workers), Blocks: o.Capacity, Hit: map[string]float64{}}
	for _, policy := range f.Policies {
		if policy.Policy.Kind != shadow.Actual {
			p.Hit[policy.Policy.Name] = policy.Total.HitRatio()
		}
	}
	return p
}

// Formats implements [Readable].
func (r *Shadow) Formats() Formats { return ShadowFormats }

// Records implements [Readable].
func (r *Shadow) Records() [][]string {
	number := func(v float64) string { return strconv.FormatFloat(v, 'f', 6, 64) }
	all := [][]string{{
		"part", "policy", "workers", "blocks", "hit_ratio", "prefill_tokens", "inflight_spread", "crowded_requests",
	}}
	for _, p := range r.Policies {
		spread := ""
		if p.Spread != nil {
			spread = number(*p.Spread)
		}
		all = append(all, []string{
			"policies", p.Policy, strconv.Itoa(r.Setting.Workers), strconv.Itoa(r.Setting.Blocks), number(p.HitRatio),
			api.Count(p.PrefillTokens), spread, strconv.FormatInt(p.Crowded, 10),
		})
	}
	for _, curve := range r.curves() {
		for _, p := range curve.points {
			for _, name := range policyNames(p) {
				all = append(all, []string{
					curve.part, name, strconv.Itoa(p.Workers), strconv.Itoa(p.Blocks), number(p.Hit[name]), "", "", "",
				})
			}
		}
	}
	return all
}

// policyNames returns the policies of a point in the order of [shadow.DefaultPolicies].
func policyNames(p ShadowPoint) (names []string) {
	for _, policy := range shadow.DefaultPolicies() {
		if _, ok := p.Hit[policy.Name]; ok {
			names = append(names, policy.Name)
		}
	}
	return names
}

// shadowCurve is the curve by capacity or by workers. at returns the position of a point on the x axis.
type shadowCurve struct {
	part, title, across string
	points              []ShadowPoint
	at                  func(ShadowPoint) int
}

func (r *Shadow) curves() (all []shadowCurve) {
	s := r.Setting
	if len(r.ByCapacity) > 0 {
		all = append(all, shadowCurve{
			"by_capacity", fmt.Sprintf("Hit rate by cache capacity, %s", plural(s.Workers, "worker")), "blocks per worker",
			r.ByCapacity,
			func(p ShadowPoint) int { return p.Blocks },
		})
	}
	if len(r.ByWorkers) > 0 {
		all = append(all, shadowCurve{
			"by_workers", fmt.Sprintf("Hit rate by number of workers, %d blocks each", s.Blocks), "workers", r.ByWorkers,
			func(p ShadowPoint) int { return p.Workers },
		})
	}
	return all
}

// facts returns sentences on the trace, the caches and the assumptions.
func (r *Shadow) facts() []string {
	t, s := r.Trace, r.Setting
	origin := fmt.Sprintf("read from %d lines (%s format)", t.Lines, t.Form)
	if t.Lines == 0 {
		origin = t.Form
	}
	facts := []string{
		fmt.Sprintf("%s requests in %s s (they arrive over %s s), %s.", api.Count(t.Requests), whole(t.Seconds),
			tenths(t.Arrivals), origin),
		fmt.Sprintf("%s with a KV cache of %s blocks of %s tokens each (%s tokens).", plural(s.Workers, "worker"),
			api.Count(s.Blocks), api.Count(s.BlockTokens), api.Count(s.Blocks*s.BlockTokens)),
	}
	return append(facts, r.Assumptions...)
}

// doubts returns sentences on the limits of the figures.
func (r *Shadow) doubts() (doubts []string) {
	t := r.Trace
	if t.Unused > 0 {
		doubts = append(doubts, fmt.Sprintf("%d of %d lines were unusable. The first ones:", t.Unused, t.Lines))
		doubts = append(doubts, t.Notes...)
	}
	if t.Cut {
		doubts = append(doubts, "The trace is truncated; everything before the last, incomplete line was used.")
	}
	if t.Disordered > 0 {
		doubts = append(doubts, fmt.Sprintf("%d lines were out of order and were sorted into place.", t.Disordered))
	}
	if a := r.Account; a != nil {
		doubts = append(doubts, fmt.Sprintf("Cache model: with the real choices the modeled hit rate is %s; the workers "+
			"reported %s (%s requests, error %s points).",
			api.Percent(a.ModeledRatio), api.Percent(a.MeasuredRatio), api.Count(a.Requests), tenths(100*a.Error)))
		if a.Error > MaxCacheError {
			doubts = append(doubts, fmt.Sprintf("That is more than %s points: do not trust the figures of the other "+
				"policies. Check the cache capacity and --answers.", whole(100*MaxCacheError)))
		}
	}
	if c := r.Choices; c != nil {
		doubts = append(doubts, fmt.Sprintf("Choice model: in %s of the %d turns with a clear margin, the router chose the "+
			"worker that the kv formula predicts (%s of turns are clear; %d of all %d agree, %d are ties).",
			api.Percent(c.Agreement), c.Clear, api.Percent(c.Coverage), c.Agreed, c.Turns, c.Tied))
	}
	for _, p := range r.Policies {
		if crowded := float64(p.Crowded) / float64(max(p.Requests, 1)); crowded > .01 {
			doubts = append(doubts, fmt.Sprintf("%s: for %s of the requests the cache had no room besides those in progress. "+
				"A real engine would have queued them.", p.Policy, api.Percent(crowded)))
		}
	}
	return doubts
}

// Document implements [Readable].
func (r *Shadow) Document() Document {
	return Document{
		Title: "Other routers on " + r.Trace.File, Sections: append(r.findings(), r.Curves()...),
		Foot: "Written by the load generator, " + r.Program + ". In-flight spread: most requests in progress on a worker " +
			"less the fewest, averaged over time.",
	}
}

// findings returns the facts, the table of policies and the doubts.
func (r *Shadow) findings() []Section {
	t := &Table{Head: []string{"policy", "hit rate", "tokens to prefill", "in-flight spread"}}
	for _, p := range r.Policies {
		spread := "–"
		if p.Spread != nil {
			spread = tenths(*p.Spread)
		}
		t.add(p.Policy, api.Percent(p.HitRatio), api.Count(p.PrefillTokens), spread)
	}
	return filled([]Section{{Items: unnamed(r.facts())}, {Table: t}, {Items: unnamed(r.doubts())}})
}

func unnamed(sentences []string) (all []Item) {
	for _, text := range sentences {
		all = append(all, Item{Text: text})
	}
	return all
}

// Curves returns a section for each curve of the report.
func (r *Shadow) Curves() (all []Section) {
	for _, c := range r.curves() {
		names := policyNames(c.points[0])
		t := &Table{Head: append([]string{c.across}, names...)}
		series := make([]chart.Series, len(names))
		for _, p := range c.points {
			row := []string{strconv.Itoa(c.at(p))}
			for i, name := range names {
				row = append(row, api.Percent(p.Hit[name]))
				series[i].Name = name
				series[i].Points = append(series[i].Points, chart.Point{Level: float64(c.at(p)), Value: 100 * p.Hit[name]})
			}
			t.add(row...)
		}
		drawn := chart.Levels("Hit rate", "%", 0, series...)
		drawn.XName = c.across
		all = append(all, Section{Title: c.title, Charts: []chart.Chart{drawn}, Table: t})
	}
	return all
}
