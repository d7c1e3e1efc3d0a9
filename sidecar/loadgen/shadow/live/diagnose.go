package live

import (
	"fmt"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/shadow"
)

// Thresholds of the rules.
const (
	hitRateGap   = .05 // difference of two hit rates of one minute
	hitRateDrop  = .03 // fall of the hit rate from one concurrency to a higher one
	enoughTurns  = 100 // turns that are needed at a concurrency
	watchSeconds = 180 // time over which the busiest worker is observed
	mostlySame   = .9  // share of watchSeconds with the same busiest worker
	muchBusier   = 1.5 // load in multiples of the mean
	herdShare    = .3  // share of the turns with the same opening
	fullCache    = .95
	keptTurns    = 1024
	keptLevels   = 64
	openingSize  = 1024 // tokens that identify an opening
)

// coldFor is the time without a diagnosis after the caches were empty. Many turns with the same
// opening are routed before the first of them has been computed, so that predicted and measured
// hits differ on every cluster.
const coldFor = 2 * shadow.Window

// rules holds the observations that the diagnoses need beside the shadow's figures.
type rules struct {
	levels  []level
	turns   [keptTurns]placement // a ring
	n       int                  // turns added
	seconds [watchSeconds]second // a ring
	seen    int                  // seconds added

	openings map[uint64]*opening // by their last block
}

// level holds the measurements at one concurrency since the caches were empty.
type level struct {
	concurrency    int
	turns          int
	prompt, cached int64
}

func (l *level) hit() float64 { return ratio(l.cached, l.prompt) }

// placement is the worker and the opening of a turn.
type placement struct {
	worker, opening uint64
	at              time.Time // when it ended
	prompt          int       // tokens of it
	uncached        int       // of these; −1: unknown
}

// second is the busiest worker of a second, and the load of the workers.
type second struct {
	busiest    string // id; empty where there is no single busiest worker
	name       string
	most, mean float64
}

// ended adds a turn that ended without an error.
func (r *rules) ended(at time.Time, t *Turn, result *Result) {
	if len(t.blocks) > 0 {
		p := placement{worker: result.Worker, opening: t.opening, at: at, uncached: -1}
		if result.CachedTokens >= 0 && result.PromptTokens > 0 {
			p.prompt, p.uncached = result.PromptTokens, result.PromptTokens-result.CachedTokens
		}
		r.turns[r.n%keptTurns] = p
		r.n++
	}
	if result.CachedTokens < 0 || result.PromptTokens <= 0 || t.Concurrency <= 0 {
		return
	}
	found := -1
	for i := range r.levels {
		if r.levels[i].concurrency == t.Concurrency {
			found = i
		}
	}
	if found < 0 {
		if len(r.levels) == keptLevels {
			r.levels = r.levels[1:]
		}
		r.levels = append(r.levels, level{concurrency: t.Concurrency})
		found = len(r.levels) - 1
	}
	l := &r.levels[found]
	l.turns++
	l.prompt += int64(result.PromptTokens)
	l.cached += int64(result.CachedTokens)
}

// observe records the busiest worker. It is called once a second.
func (r *rules) observe(c api.Cluster, running bool) {
	s := second{}
	sum, n := 0.0, 0
	for _, w := range c.Workers {
		if w.Inflight == nil {
			return
		}
		v := *w.Inflight
		sum += v
		n++
		switch {
		case v > s.most:
			s.most = v
			s.busiest = w.ID
			s.name = w.Name
		case v == s.most:
			s.busiest = ""
		}
	}
	if n < 2 || !running {
		return
	}
	s.mean = sum / float64(n)
	r.seconds[r.seen%watchSeconds] = s
	r.seen++
}

// diagnose returns the findings of all rules.
func (a *account) diagnose(mode api.Mode, c api.Cluster, concurrency int, f *shadow.Figures) (found []api.Diagnosis) {
	for _, d := range []struct{ rule, text string }{
		{"predicted_above_reported", a.predictedAboveReported(mode, c, f)},
		{"one_worker_busiest", a.rules.oneWorkerBusiest()},
		{"hit_rate_falls_with_concurrency", a.fallsWithConcurrency(concurrency, f)},
	} {
		if d.text != "" {
			found = append(found, api.Diagnosis{Rule: d.rule, Text: d.text})
		}
	}
	return found
}

// predictedAboveReported compares the hits that the router predicted with those that the workers
// reported, over the last minute.
func (a *account) predictedAboveReported(mode api.Mode, c api.Cluster, f *shadow.Figures) string {
	p := c.KV.PredictedRatio
	r := f.Recent
	if mode != api.ModeKV || p == nil || r.Requests < api.MinMeasured || *p-r.MeasuredRatio() <= hitRateGap {
		return ""
	}
	text := fmt.Sprintf("The router predicts that %s of the prompts are cached; the workers found %s (%d turns of the "+
		"last 60 s). ", percent(*p), percent(r.MeasuredRatio()), r.Requests)
	use, reporting := 0.0, 0
	for _, w := range c.Workers {
		if w.CacheUse != nil {
			use += *w.CacheUse
			reporting++
		}
	}
	modeled := ratio(r.HitTokens, r.PromptTokens)
	switch {
	case reporting > 0 && use/float64(reporting) >= fullCache:
		return text + fmt.Sprintf("The caches are %s full: blocks are evicted before they are asked for again, faster than "+
			"the router is notified.", percent(use/float64(reporting)))
	case r.Error() <= api.MaxCacheError:
		return text + fmt.Sprintf("KV Booth's cache model, which does not use events, gives %s: so the router's view of "+
			"the caches is out of date. Workers' KV events are being lost, or the router's block size is not the workers' "+
			"(the metrics report %d tokens).", percent(modeled), a.size.tokens)
	}
	return text + fmt.Sprintf("KV Booth's cache model gives %s, so the caches hold less than both assume: they may be "+
		"smaller than the %d blocks that the metrics report, or prefix caching is disabled on some workers.",
		percent(modeled), f.Capacity)
}

// oneWorkerBusiest looks for a worker that has been the busiest for watchSeconds.
func (r *rules) oneWorkerBusiest() string {
	if r.seen < watchSeconds {
		return ""
	}
	busiest := map[string]int{}
	for _, s := range r.seconds {
		busiest[s.busiest]++
	}
	delete(busiest, "")
	for id, n := range busiest {
		if float64(n) < mostlySame*watchSeconds {
			continue
		}
		most := 0.0
		mean := 0.0
		name := id
		for _, s := range r.seconds {
			if mean += s.mean / watchSeconds; s.busiest == id {
				most, name = most+s.most/float64(n), s.name
			}
		}
		if most < muchBusier*mean {
			return ""
		}
		return fmt.Sprintf("Worker %s was the busiest for %d of the last %d s, with %.1f requests in flight where the mean "+
			"of all workers was %.1f.", name, n, watchSeconds, most, mean)
	}
	return ""
}

// fallsWithConcurrency compares the present concurrency with lower ones on the same caches.
func (a *account) fallsWithConcurrency(concurrency int, f *shadow.Figures) string {
	var now, before *level
	for i := range a.rules.levels {
		l := &a.rules.levels[i]
		switch {
		case l.turns < enoughTurns:
		case l.concurrency == concurrency:
			now = l
		case l.concurrency < concurrency && (before == nil || l.hit() > before.hit()):
			before = l
		}
	}
	if now == nil || before == nil || before.hit()-now.hit() <= hitRateDrop {
		return ""
	}
	perPrompt := now.prompt / int64(now.turns) / int64(a.size.tokens)
	return fmt.Sprintf("At %d conversations %s of the prompts were cached (%d turns), at %d it was %s (%d turns). "+
		"With %d blocks a prompt on average, %d conversations in progress need about %d blocks of each worker's %d, "+
		"besides what is kept for openings and finished conversations: capacity is the limit.",
		now.concurrency, percent(now.hit()), now.turns, before.concurrency, percent(before.hit()), before.turns,
		perPrompt, now.concurrency, perPrompt*int64(now.concurrency)/int64(max(f.Workers, 1)), f.Capacity)
}
