package live

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// collector computes the figures at the scrape.
type collector struct{ live *Live }

// Collector returns the metrics of a lane's shadow, all with the label lane. The policy measured
// is the router's real choice. While figures are withheld, a policy's gauges are absent and its
// counters continue.
func (l *Live) Collector() prometheus.Collector {
	return prometheus.WrapCollectorWith(prometheus.Labels{"lane": l.opts.Lane}, &collector{l})
}

var (
	descHit = prometheus.NewDesc("loadgen_shadow_hit_ratio",
		"Share of prompt tokens a policy would have found in the caches over the last 60 s; policy measured: share "+
			"actually found.", []string{"policy"}, nil)
	descSpread = prometheus.NewDesc("loadgen_shadow_inflight_spread",
		"Maximum minus minimum requests in flight per worker, mean over the last 60 s.", []string{"policy"}, nil)
	descPrefill = prometheus.NewDesc("loadgen_shadow_prefill_tokens_total",
		"Prompt tokens a policy would have had to prefill since the caches were last empty; policy measured: tokens "+
			"actually prefilled.", []string{"policy"}, nil)
	descPrompt = prometheus.NewDesc("loadgen_shadow_prompt_tokens_total",
		"Prompt tokens of the turns that the shadow has followed since the caches were empty.", nil, nil)
	descMeasured = prometheus.NewDesc("loadgen_shadow_measured_prompt_tokens_total",
		"Prompt tokens of the tracked turns that reported cached tokens.", nil, nil)
)

const measured = "measured"

// Describe implements [prometheus.Collector].
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descHit, descSpread, descPrefill, descPrompt, descMeasured} {
		ch <- d
	}
}

// Collect implements [prometheus.Collector].
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	s := c.live.Shadow(time.Now())
	gauges := func(policy string, hit, spread *float64) {
		for desc, v := range map[*prometheus.Desc]*float64{descHit: hit, descSpread: spread} {
			if v != nil {
				ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, *v, policy)
			}
		}
	}
	gauges(measured, s.Measured.HitRatio, s.Measured.InflightSpread)
	if s.Withheld == "" {
		for _, p := range s.Policies {
			gauges(p.Policy, p.Figures.HitRatio, p.Figures.InflightSpread)
		}
	}
	c.live.counters(func(desc *prometheus.Desc, v int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(v), labels...)
	})
}

// counters emits the sums since the caches were empty.
func (l *Live) counters(emit func(desc *prometheus.Desc, v int64, labels ...string)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.account == nil {
		return
	}
	f := l.account.figures(time.Now())
	if !f.AnswersSure { // a later inference would change the counters
		return
	}
	for _, p := range f.Policies[1:] {
		emit(descPrefill, p.Total.PrefillTokens(), p.Policy.Name)
	}
	emit(descPrefill, f.Counted.PromptTokens-f.Counted.MeasuredTokens, measured)
	emit(descPrompt, f.Policies[0].Total.PromptTokens)
	emit(descMeasured, f.Counted.PromptTokens)
}
